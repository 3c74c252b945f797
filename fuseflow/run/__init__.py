"""Runs a compiled program in a simulator, and holds its results."""
