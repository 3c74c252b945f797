"""Passes over a graph: one pass, one file, one name. A pass may assume a verified graph and leaves a verified graph."""

from fuseflow.transform.fiber_fifos import mark_fiber_fifos
from fuseflow.transform.parallelize import LaneGraph, parallelize

__all__ = ["LaneGraph", "mark_fiber_fifos", "parallelize"]
