"""Passes over a graph: one pass, one file, one name. A pass may assume a verified graph and leaves a verified graph."""

from collections.abc import Callable

from fuseflow.samml.nodes import Graph
from fuseflow.transform.fiber_fifos import fifos
from fuseflow.transform.parallelize import LaneGraph, parallelize
from fuseflow.transform.prune import prune

PASSES: dict[str, Callable[[Graph], Graph]] = {"prune": prune, "fifos": fifos}

"""Those that need nothing but the graph."""

__all__ = ["PASSES", "LaneGraph", "fifos", "parallelize", "prune"]
