"""The bytes of the resident tensors of a graph, from the statistics of their levels. They are exact where the statistics were measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from operator import mul

from fuseflow.costs.statistics import TensorStatistics
from fuseflow.samml.nodes import Graph, TensorDecl
from fuseflow.tensors.levels import Level
from fuseflow.tensors.levels.base import bytes_of


def expected_configuration_bytes(graph: Graph, statistics: Mapping[str, TensorStatistics]) -> int:
    """Return the bytes of all arrays of the resident tensors of a graph."""
    return sum(stored_bytes(decl, statistics[decl.name]) for decl in graph.tensors if decl.resident)


def stored_bytes(decl: TensorDecl, statistics: TensorStatistics) -> int:
    """Return the bytes of all arrays of a tensor."""
    return sum(array_bytes(decl, statistics).values())


def array_bytes(decl: TensorDecl, statistics: TensorStatistics) -> dict[tuple[int, str], int]:
    """Return the bytes of every array of a tensor, by its level (-1 for the values) and its kind."""
    levels, arrays, fibers = decl.format.levels, dict[tuple[int, str], int](), 1
    elements = list(accumulate(statistics.fanouts, mul))
    for p, level in enumerate(levels):
        room = decl.size(p) if level.full else decl.room(p)
        entries = round(elements[_last_follower(levels, p)]) if room is None else fibers * room
        for array in decl.stored_arrays(p):
            arrays[p, array.kind] = bytes_of(round(array.count(fibers, entries)), array.bits)
        fibers = entries
    return {**arrays, (-1, "val"): bytes_of(fibers, decl.value_bits)}


def _last_follower(levels: Sequence[Level], p: int) -> int:
    """Return the last level behind level p that has one entry for each entry of p; p itself if the next level does not."""
    while p + 1 < len(levels) and levels[p + 1].follows:
        p += 1
    return p
