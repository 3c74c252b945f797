"""The number of cycles of a region on a machine with `rules: comal`."""

from __future__ import annotations

from collections.abc import Iterable

from fuseflow.machine.comal import ENDING_OPS
from fuseflow.sim.outcome.statistics import NodeStatistics


def region_cycles(nodes: Iterable[NodeStatistics]) -> int:
    """Return the cycles of a region with these nodes, which ends with its last node. The firing on `D` is the last of a node, and
    takes a cycle in roots and value writers only."""
    return max(node.last + (node.op in ENDING_OPS) for node in nodes)
