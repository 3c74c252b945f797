"""Passes over a graph: one pass, one file, one name. A pass may assume a verified graph and leaves a verified graph."""

from fuseflow.transform.fiber_fifos import fifos
from fuseflow.transform.parallelize import LaneGraph, parallelize

__all__ = ["LaneGraph", "fifos", "parallelize"]
