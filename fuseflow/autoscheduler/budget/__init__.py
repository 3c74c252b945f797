"""Schedules under a budget: the fewest cycles within stated resources, and how far they are from a bound that no schedule beats.

`cut_graph` has every range of units in every order as an edge between two cuts. `deals` computes what lanes cost without building
their graphs, and `costs` the exact cost of a region. `search` joins edges to programs, and looks for the best ones.
"""
