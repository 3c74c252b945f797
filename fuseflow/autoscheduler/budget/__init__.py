"""Schedules under a budget: the fewest cycles within stated resources, and how far that is from what no schedule could beat.

`cut_graph` has every range of units in every order as an edge between two cuts, `deals` says what lanes give without building them,
`costs` what a region takes exactly, and `cheapest_paths` joins edges to programs. `search` is the walk through them.
"""
