"""Assembly of tensors from written streams: the coordinates and positions of each level, and the values where the levels address them."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from fuseflow.errors import SimulationError, TensorError
from fuseflow.samml.nodes import Graph, TensorDecl
from fuseflow.samml.writers import LaneWriter, WriteLaneLevel, lane_part
from fuseflow.tensors import DTYPES, Tensor, from_coordinates, pack
from fuseflow.tensors.dtypes import EXACT_INTEGERS
from fuseflow.tensors.levels import Fibers, Level
from fuseflow.tensors.levels.base import Ints, Overfull

Column: TypeAlias = "array[Any] | npt.NDArray[np.integer[Any]] | npt.NDArray[np.floating[Any]]"
"""A column holds numbers in the order of writing, of any sufficient width. `np.asarray` reads every kind of column."""


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


IntegerArray: TypeAlias = npt.NDArray[np.integer[Any]]


def assemble(decl: TensorDecl, written: WriterStream, structure: Tensor | None = None) -> Tensor:
    """Return the tensor that was written, in the declared format and dtype. The tensor shares those arrays of `written` that need
    no conversion. `structure` is the tensor that it is like, None for a tensor with levels of its own.

    Raises `SimulationError` if the streams do not fit together, if a dense level above a stored level lacks coordinates (the
    stored level appends a fiber for each, in order), or if a value does not fit the dtype.
    """
    values = round_to_dtype(
        decl,
        np.asarray(written.values).reshape(-1, *decl.tile),
        lambda: _coordinates(decl, written) if structure is None else structure.coordinates(),
    )
    if structure is not None and decl.flat:
        _fits(decl, "the values", len(values), structure.stored)
        return replace(structure, values=values, type=DTYPES[decl.dtype])
    if structure is not None:
        _, places = structure.places()
        _fits(decl, "the values", len(values), len(places))
        return replace(structure, values=_stored(decl, places, values, structure.stored), type=DTYPES[decl.dtype])
    if all(level.written for level in decl.format.levels):
        levels, refs = _levels(decl, written)
        entries = levels[-1].entries if levels else 1
        _fits(decl, "the values", len(values), entries if refs is None else len(refs))
        values = values if refs is None else _stored(decl, refs, values, entries)
        return Tensor(decl.shape, decl.format, levels, values, decl.fill, DTYPES[decl.dtype])
    coordinates = _coordinates(decl, written)
    _fits(decl, "the values", len(values), coordinates.shape[1])
    return from_coordinates(decl.shape, coordinates, values, decl.format, decl.fill, DTYPES[decl.dtype])


def as_declared(graph: Graph, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return tensors as a graph declares them: of one that it reads as a vector, the values alone. Raises `TensorError` if they are more or
    fewer than it declares."""
    read = dict(tensors)
    for decl in graph.tensors:
        if decl.flat and decl.name in tensors and tensors[decl.name].shape != decl.shape:
            values, (size,) = tensors[decl.name].values, decl.shape
            if len(values) != size:
                message = f"graph `{graph.name}` is for {size:,} entries of `{decl.name}`, and it stores {len(values):,}"
                raise TensorError(message, hint="compile the program for these tensors")
            read[decl.name] = pack(values, decl.format, copy=False, type=DTYPES[decl.dtype])
    return read


def _stored(decl: TensorDecl, refs: Ints, values: npt.NDArray[Any], entries: int) -> npt.NDArray[Any]:
    """Return an array of this many entries, with values at some of its positions, and else the implicit value."""
    stored = np.tile(round_to_dtype(decl, np.array([decl.fill])), (entries, *decl.tile))
    stored[refs] = values
    return stored


def round_to_dtype(decl: TensorDecl, values: npt.NDArray[Any], coordinates: Callable[[], Ints] | None = None) -> npt.NDArray[Any]:
    """Return values converted to the declared dtype. Floats are rounded to the nearest (beyond the largest to infinity), and
    integers to the nearest. A narrow integer type saturates.

    Raises `SimulationError` if a value is outside the range of a wide integer dtype, or so large that it may have been rounded in
    64-bit floats, and for NaN, 0 or a sign in a narrow dtype without them. `coordinates` returns the coordinates of the values, for
    the error; None if there are none."""
    dtype = DTYPES[decl.dtype]
    if dtype.narrow:
        _refuse_unholdable(decl, values, coordinates)
    if dtype.narrow or not dtype.is_integer:
        return dtype.hold(values)
    whole: npt.NDArray[Any] = np.rint(values)
    least, greatest = dtype.range
    outside = ~((whole >= least) & (whole < greatest + 1))  # greatest + 1 is exact as a float, the largest i64 is not
    if outside.any():
        raise SimulationError(f"tensor `{decl.name}`: the value {values[outside][0]:g} does not fit its dtype {decl.dtype}")
    rounded = np.abs(whole) >= EXACT_INTEGERS
    if rounded.any():
        raise SimulationError(
            f"tensor `{decl.name}`: the value {values[rounded][0]:g} is 2^53 or more in magnitude, and may be a rounded integer: "
            "values are computed in 64-bit floats",
            hint="declare it `f64` and accept the rounding, or scale the inputs down",
        )
    return whole.astype(dtype.holder)


def _refuse_unholdable(decl: TensorDecl, values: npt.NDArray[Any], coordinates: Callable[[], Ints] | None) -> None:
    wrong = DTYPES[decl.dtype].unholdable(values)
    if not wrong.any():
        return
    first = int(np.flatnonzero(wrong)[0])
    place = "" if coordinates is None else f" at ({', '.join(map(str, coordinates()[:, first // prod(decl.tile)]))})"
    kind = "tile" if place and decl.tile else "value"
    value = float(values.reshape(-1)[first])
    shown = "not a number" if np.isnan(value) else f"{value:g}"
    message = f"tensor `{decl.name}`: the {kind}{place} is {shown}, which its dtype {decl.dtype} cannot hold"
    raise SimulationError(message, hint="declare it with a floating-point dtype of 16 bits or more")


def _levels(decl: TensorDecl, written: WriterStream) -> tuple[tuple[Fibers, ...], Ints | None]:
    """Return the fibers of every level, and the reference of every element of the last level. The references are None if they are
    complete and in order.

    They are complete below compressed levels, and below dense levels that were written in full; then no array of references is
    made. They are not below levels that pad, since the stored entries include pads.
    """
    refs: Ints | None = None
    parents = 1
    levels: list[Fibers] = []
    for p, (kind, dimension) in enumerate(zip(decl.format.levels, decl.format.order, strict=True)):
        pos, crd = _received(decl, written, p, parents if refs is None else len(refs))
        size = decl.shape[dimension]
        if refs is not None and not kind.full:
            raise SimulationError(
                f"tensor `{decl.name}`: the dense level above level {p} received {len(refs)} of {parents} coordinates",
                hint="a dense level above a compressed one is written in full: declare that level compressed",
            )
        if kind.pads:
            fibers, refs = _padded(decl, p, kind, parents, pos, crd)
            levels.append(fibers)
            parents = fibers.entries
            continue
        levels.append(kind.append(size, parents, pos, crd))
        if kind.full and (refs is not None or not _complete(pos, crd, size)):
            refs = np.repeat((np.arange(parents) if refs is None else refs) * size, np.diff(pos))
            refs += crd
        parents = levels[-1].entries
    return tuple(levels), refs


def _padded(decl: TensorDecl, p: int, kind: Level, parents: int, pos: Ints, crd: IntegerArray) -> tuple[Fibers, Ints]:
    """Return the fibers of level `p`, which pads its fibers, and the reference of every received coordinate. Raise
    `SimulationError` if a fiber has too many."""
    owners = np.repeat(np.arange(parents), np.diff(pos))
    try:
        return kind.pack(decl.shape[decl.format.order[p]], parents, owners, owners, crd.astype(np.int64))
    except Overfull as error:
        raise SimulationError(
            f"tensor `{decl.name}`: level {p} ({kind.text}), from coordinate {error.start} of fiber {owners[error.entry]} on: {error.why}",
            hint="write it behind a `select` that keeps as many entries of each group, or store it `compressed`",
        ) from None


def _complete(pos: Ints, crd: IntegerArray, size: int) -> bool:
    """Return whether every fiber has all coordinates of the dimension, in order."""
    return bool((np.diff(pos) == size).all() and (crd.reshape(len(pos) - 1, size) == np.arange(size)).all())


def _coordinates(decl: TensorDecl, written: WriterStream) -> Ints:
    """Return the coordinates of every written value as an array of shape [rank, n], with the dimensions in the order of the shape."""
    columns: list[IntegerArray] = []
    count = 1
    for p in range(decl.format.rank):
        pos, crd = _received(decl, written, p, count)
        columns = [np.repeat(column, np.diff(pos)) for column in columns] + [crd]
        count = len(crd)
    out = np.empty((decl.format.rank, count), dtype=np.int64)
    for dimension, column in zip(decl.format.order, columns, strict=True):
        out[dimension] = column
    return out


def _received(decl: TensorDecl, written: WriterStream, level: int, parents: int) -> tuple[Ints, IntegerArray]:
    """Return the positions and coordinates of a level. Raises `SimulationError` if they do not fit its parents or its dimension."""
    pos, crd = np.asarray(written.pos[level], dtype=np.int64), np.asarray(written.crd[level])
    _fits(decl, f"level {level}", len(pos) - 1, parents, "fibers")
    size = decl.shape[decl.format.order[level]]
    if len(crd) and not (crd.min() >= 0 and crd.max() < size):
        worst = crd.min() if crd.min() < 0 else crd.max()
        raise SimulationError(f"tensor `{decl.name}`: coordinate {worst} of level {level} is outside 0..{size - 1}")
    return pos, crd


def _fits(decl: TensorDecl, part: str, received: int, expected: int, unit: str = "elements") -> None:
    if received != expected:
        raise SimulationError(f"tensor `{decl.name}`: {part} received {received} {unit} for {expected} parents")
