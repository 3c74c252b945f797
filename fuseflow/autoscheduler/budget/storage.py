"""How the inputs of a program may be stored: their formats, and blocks of their dimensions.

Neither changes the results of a program, but which zeros it multiplies, and how many values one operator takes at once. A
dimension is in blocks together with all dimensions that its index runs over: dense ones, or sparse ones whose entries come in
blocks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

import numpy as np

from fuseflow.autoscheduler.budget.settings import SETTINGS
from fuseflow.costs.statistics import stored_statistics
from fuseflow.einsum.blocks import BlockAxis, block_axes
from fuseflow.einsum.nodes import Program
from fuseflow.frontend.source import Source
from fuseflow.schedule import Schedule
from fuseflow.tensors import Tensor

MATRIX_FORMATS = ("dense", "csr", "csc", "dcsr")
"""The formats that an input of two dimensions may have."""
DENSE_ROWS = {"dcsr": "csr", "dcsc": "csc"}
"""Formats of matrices whose outer level is compressed, each with the same format with a dense outer level, by short names."""
BY_COLUMNS = ("csc", "dcsc")
"""The formats of matrices whose outer level is that of the columns."""


@dataclass(frozen=True, slots=True)
class Blocking:
    """Blocks of `size` values along the dimensions of `axis`, and the inputs that are stored dense for that."""

    axis: BlockAxis
    size: int
    dense: tuple[str, ...]

    def scheduled(self, schedule: Schedule, program: Program) -> Schedule:
        """Return the schedule with these blocks added, or as it is if a tensor would be in blocks along too many dimensions."""
        blocks: dict[str, list[int]] = {name: list(sizes) for name, sizes in schedule.blocks}
        for name, position in self.axis.dimensions:
            sizes = blocks.setdefault(name, [1] * len(program.declared[name].shape))
            sizes[position] = self.size
        if any(sum(size > 1 for size in sizes) > SETTINGS.most_blocked for sizes in blocks.values()):
            return schedule
        for name in self.dense:
            schedule = schedule.format(name, "dense")
        for name, sizes in blocks.items():
            schedule = schedule.block(name, *sizes)
        return schedule


def other_kinds(source: Source, base: Schedule) -> dict[str, tuple[str, ...]]:
    """Return, as `input_formats` does, few formats of each input: "", dense for a compressed one or compressed by rows for a
    dense one, and for a large compressed input the format that begins with its other dimension, which other loop orders read."""
    kinds = {}
    for name, (own, *others) in input_formats(source, base).items():
        wanted = ["dense" if _is_sparse(source, name) else "csr"]
        if _is_sparse(source, name) and _is_large(source, name):
            wanted.append("csr" if _order(source, name) == (1, 0) else "csc")
        kinds[name] = (own, *(format for format in others if format in wanted))
    return kinds


def turned_formats(source: Source, base: Schedule, current: Schedule) -> Iterator[tuple[str, str]]:
    """Yield, for each large compressed input, the format by rows or by columns that it does not have under the schedule
    `current`. Inputs that the schedule `base` names stay as they are."""
    now = dict(current.formats)
    for name, formats in input_formats(source, base).items():
        declared = source.program.declared[name].format
        if len(formats) == 1 or declared is None or not _is_sparse(source, name) or not _is_large(source, name):
            continue
        is_by_columns = (now.get(name) or declared.short()) in BY_COLUMNS
        yield name, "csr" if is_by_columns else "csc"


def listed_rows(source: Source, base: Schedule) -> dict[str, str]:
    """Return formats with a dense outer level for inputs whose outer level is compressed and stores most of its coordinates. Then
    no array of coordinates is read, and a locate need not keep it. Inputs that the schedule names are left out."""
    decided = {name for name, _ in (*base.formats, *base.blocks)}
    formats = {}
    for declared in source.program.inputs:
        format = declared.format and DENSE_ROWS.get(declared.format.short())
        if format and declared.name not in decided and not declared.block:
            statistics = stored_statistics(source.tensors[declared.name], declared)
            if statistics.fanouts[0] >= SETTINGS.listed_share * statistics.sizes[0]:
                formats[declared.name] = format
    return formats


def input_formats(source: Source, base: Schedule) -> dict[str, tuple[str, ...]]:
    """Return the formats to try of each input of two dimensions, first "" for the format that it has; the largest inputs first.
    Inputs that the schedule names have no other format."""
    program = source.program
    names = [t.name for t in program.inputs if len(t.shape) == 2 and not t.block]
    names.sort(key=lambda name: (-prod(program.declared[name].shape), name))
    return {name: _formats(source, name, base) for name in names}


def _formats(source: Source, name: str, base: Schedule) -> tuple[str, ...]:
    if name in dict(base.formats) or name in dict(base.blocks):
        return ("",)
    share = stored_share(source.tensors[name])
    dense, compressed = MATRIX_FORMATS[:1], MATRIX_FORMATS[1:]
    return ("", *(dense if share >= SETTINGS.dense_share else ()), *(compressed if share <= SETTINGS.sparse_share else ()))


def stored_share(tensor: Tensor) -> float:
    """Return the share of the elements of a tensor that are not zero."""
    return float(np.count_nonzero(tensor.values) / max(1, prod(tensor.shape)))


def blockings(source: Source, program: Program, base: Schedule) -> tuple[Blocking, ...]:
    """Return the blocks to try, one size for each group of dimensions that are in blocks together. `program` is without reshapes.

    If the schedule names the format or the blocks of an input, its dimensions stay as they are.
    """
    decided = {name for name, _ in (*base.formats, *base.blocks)}
    choices = []
    for axis in block_axes(program):
        names = {name for name, _ in axis.dimensions}
        if names & decided or not names <= source.tensors.keys() or any(source.program.declared[n].block for n in names):
            continue
        size = _size(source, axis)
        if size > 1:
            choices.append(
                Blocking(axis, size, tuple(sorted(n for n in names if _is_sparse(source, n) and _may_be_dense(source, n))))
            )
    return tuple(choices)


def _size(source: Source, axis: BlockAxis) -> int:
    """Return the size of blocks along the dimensions of `axis`, 1 if they get none."""
    sparse = [name for name in dict(axis.dimensions) if _is_sparse(source, name) and not _may_be_dense(source, name)]
    large, short = SETTINGS.large_block, SETTINGS.short_block
    if sparse:
        sizes = (size for size in (large, large // 2, short, short // 2) if axis.extent % size == 0)
        return next((size for size in sizes if all(_comes_in_blocks(source, axis, name, size) for name in sparse)), 1)
    return large if axis.extent > large and axis.extent % large == 0 else min(short, axis.extent)


def _comes_in_blocks(source: Source, axis: BlockAxis, name: str, size: int) -> bool:
    """Return whether most elements of the blocks of an input that hold any entry are stored, for blocks of `size` along
    `axis`."""
    tensor = source.tensors[name]
    along = {position for tensor_name, position in axis.dimensions if tensor_name == name}
    coordinates, values = tensor.entries()
    stored = coordinates[:, values != 0].T
    tiles = np.unique(stored // [size if d in along else 1 for d in range(stored.shape[1])], axis=0)
    return len(stored) >= SETTINGS.full_share * len(tiles) * float(size) ** len(along)


def _is_sparse(source: Source, name: str) -> bool:
    format = source.program.declared[name].format
    return format is not None and not format.all_dense


def _is_large(source: Source, name: str) -> bool:
    """Return whether an input stores a large share of the values of all inputs."""
    return source.tensors[name].stored >= SETTINGS.large_share * sum(source.tensors[t.name].stored for t in source.program.inputs)


def _order(source: Source, name: str) -> tuple[int, ...]:
    format = source.program.declared[name].format
    return (0, 1) if format is None else format.order


def _may_be_dense(source: Source, name: str) -> bool:
    return stored_share(source.tensors[name]) >= SETTINGS.dense_share
