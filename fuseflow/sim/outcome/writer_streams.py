"""The streams that the writers of a tensor received, in a form that all simulators share."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from fuseflow.errors import SimulationError
from fuseflow.samml.lane_writers import LaneWriter, WriteLaneLevel, lane_part
from fuseflow.samml.nodes import Graph, TensorDecl

Column: TypeAlias = "array[Any] | npt.NDArray[np.integer[Any]] | npt.NDArray[np.floating[Any]]"
"""A column holds numbers in the order in which they were written, of any sufficient width. `np.asarray` reads every kind of
column."""


@dataclass(slots=True)
class WriterStream:
    """The streams written to one tensor. `crd` holds the coordinates of each level. `pos` holds, at the end of each fiber of a level,
    the number of coordinates so far, after a 0 before the first. `values` holds the values, with tiles row by row."""

    crd: dict[int, Column] = field(default_factory=dict)
    pos: dict[int, Column] = field(default_factory=dict)
    values: Column = field(default_factory=lambda: array("d"))
    lanes: dict[str, Column] = field(default_factory=dict)
    """The entries that each writer of a lane received, by the name of its node."""


def with_lanes_gathered(graph: Graph, written: Mapping[str, WriterStream]) -> Mapping[str, WriterStream]:
    """Return the streams of each output, with the entries of all lanes in the order in which a single writer would have received
    them.

    Raises `SimulationError` if a lane received too few or too many entries.
    """
    parts: dict[tuple[str, int | None], list[LaneWriter]] = {}
    for node in graph.nodes:
        if isinstance(node, LaneWriter):
            parts.setdefault((node.tensor, node.level if isinstance(node, WriteLaneLevel) else None), []).append(node)
    for (name, level), writers in parts.items():
        stream, decl = written[name], graph.declared[name]
        gathered = _gathered(decl, writers, stream.lanes)
        if level is None:
            stream.values = gathered
        else:
            stream.crd[level] = gathered
            stream.pos[level] = decl.size(level) * np.arange(prod(map(decl.size, range(level))) + 1)
    for stream in written.values():
        stream.lanes.clear()
    return written


def _gathered(decl: TensorDecl, writers: Sequence[LaneWriter], lanes: Mapping[str, Column]) -> npt.NDArray[Any]:
    """Return the entries of all lanes of one level, or of the values, in the order of a single writer."""
    first = writers[0]
    levels, words = (first.level + 1, 1) if isinstance(first, WriteLaneLevel) else (decl.format.rank, prod(decl.tile))
    run = lane_part(first, decl).run
    received = [np.asarray(lanes[node.name]) for node in writers]
    runs = prod(map(decl.size, range(levels - first.levels)))
    gathered = np.empty((runs, run * words), received[0].dtype)
    for node, entries in zip(writers, received, strict=True):
        places = gathered[node.lane :: node.lanes]
        if entries.size != places.size:
            counts = f"{entries.size // words} of {places.size // words} entries"
            raise SimulationError(f"tensor `{decl.name}`: `{node.name}` received {counts}")
        places[:] = entries.reshape(places.shape)
    return gathered.reshape(-1)
