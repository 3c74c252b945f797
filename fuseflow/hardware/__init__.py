"""Circuits: a graph becomes hardware that takes exactly the cycles of the simulator.

`circuit` builds the circuit of a graph from the firing rules in `primitives`, and `evaluate` runs it in Python.
"""
