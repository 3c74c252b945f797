"""Circuits: every graph as hardware that takes the cycles of the simulator.

`circuit` builds the circuit of a graph from the firing rules in `primitives`, and `evaluate` runs it in Python.
"""
