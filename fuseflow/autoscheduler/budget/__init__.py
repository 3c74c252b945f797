"""Schedules under a budget: the fewest cycles within stated resources, and how far they are from a bound that no schedule beats.

`cut_graph` has every range of units in every order as an edge between two cuts. `deals` says what lanes cost without building
them, and `costs` what a region costs exactly. `cheapest_paths` joins edges to programs, and `search` goes through them.
"""
