"""The passes over a graph, one in each file. A pass may assume a verified graph, and returns a verified graph."""

from fuseflow.transform.fiber_fifos import mark_fiber_fifos
from fuseflow.transform.parallelize import LaneGraph, parallelize

__all__ = ["LaneGraph", "mark_fiber_fifos", "parallelize"]
