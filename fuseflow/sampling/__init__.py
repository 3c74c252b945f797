"""Sampling: the cycles of a region, from runs of some coordinates of its outermost loop, with an interval that says how exact
they are."""
