"""The run of a compiled program in a simulator, and its results."""
