"""Explanations of a program as values: which Einsums are fused and why, in which orders loops run, and which nodes take the
cycles.

`fuseflow.report` renders them.
"""
