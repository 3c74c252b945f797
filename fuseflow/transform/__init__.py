"""Passes over a graph: one pass, one file, one name. A pass may assume a verified graph and leaves a verified graph."""

from fuseflow.transform.fifos import fifos
from fuseflow.transform.parallelize import Parallel, parallelize

__all__ = ["Parallel", "fifos", "parallelize"]
