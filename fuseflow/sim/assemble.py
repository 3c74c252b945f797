"""From written streams to tensors: coordinates and positions of each level, values where the levels address them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fuseflow.errors import SimulationError
from fuseflow.samml.nodes import TensorDecl
from fuseflow.sim.written import Written
from fuseflow.tensors import DTYPES, Tensor, from_coordinates
from fuseflow.tensors.levels import Compressed, Dense, Fibers
from fuseflow.tensors.levels.base import Ints, segments
from fuseflow.tensors.levels.compressed import CompressedFibers
from fuseflow.tensors.levels.dense import DenseFibers


def assemble(decl: TensorDecl, written: Written) -> Tensor:
    """The tensor that was written, in the declared format and dtype.

    Raises `SimulationError` if the streams do not fit together, if a dense level above a stored one lacks coordinates (the stored one
    appends a fiber for each, in order), or if a value does not fit the dtype.
    """
    values = rounded(decl, np.asarray(written.values, dtype=np.float64).reshape(-1, *decl.tile))
    if all(isinstance(level, Dense) or level == Compressed() for level in decl.format.levels):
        levels, refs = _levels(decl, written)
        _fits(decl, "the values", len(values), len(refs))
        stored = np.tile(rounded(decl, np.array([decl.fill])), (levels[-1].entries if levels else 1, *decl.tile))
        stored[refs] = values
        return Tensor(decl.shape, decl.format, levels, stored, decl.fill)
    coordinates = _coordinates(decl, written)
    _fits(decl, "the values", len(values), coordinates.shape[1])
    return from_coordinates(decl.shape, coordinates, values, decl.format, decl.fill)


def rounded(decl: TensorDecl, values: npt.NDArray[np.float64]) -> npt.NDArray[np.generic]:
    """Values as the declared dtype holds them: floats to the nearest (beyond the largest: infinity), integers to the nearest."""
    dtype = DTYPES[decl.dtype]
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            return values.astype(dtype)
    whole, limits = np.rint(values), np.iinfo(dtype)
    outside = ~((whole >= limits.min) & (whole < limits.max + 1))  # max + 1 is exact as a float, the largest i64 is not
    if outside.any():
        raise SimulationError(f"tensor `{decl.name}`: the value {values[outside][0]:g} does not fit its dtype {decl.dtype}")
    return whole.astype(dtype)


def _levels(decl: TensorDecl, written: Written) -> tuple[tuple[Fibers, ...], Ints]:
    """The storage of every level, and the reference of every element of the last."""
    refs = np.zeros(1, dtype=np.int64)
    parents = 1
    levels: list[Fibers] = []
    for p, (kind, dimension) in enumerate(zip(decl.format.levels, decl.format.order, strict=True)):
        pos, crd = _received(decl, written, p, len(refs))
        size = decl.shape[dimension]
        if isinstance(kind, Dense):
            owner, _ = segments(np.diff(pos))
            levels.append(DenseFibers(size, parents))
            refs = refs[owner] * size + crd
        else:
            if len(refs) != parents:
                raise SimulationError(
                    f"tensor `{decl.name}`: the dense level above level {p} received {len(refs)} of {parents} coordinates",
                    hint="a dense level above a compressed one is written in full: declare that level compressed",
                )
            levels.append(CompressedFibers(size, pos, crd))
            refs = np.arange(len(crd), dtype=np.int64)
        parents = levels[-1].entries
    return tuple(levels), refs


def _coordinates(decl: TensorDecl, written: Written) -> Ints:
    """Coordinates of every written value, [rank, n] in dimension order."""
    columns: list[Ints] = []
    count = 1
    for p in range(decl.format.rank):
        pos, crd = _received(decl, written, p, count)
        owner, _ = segments(np.diff(pos))
        columns = [column[owner] for column in columns] + [crd]
        count = len(crd)
    out = np.empty((decl.format.rank, count), dtype=np.int64)
    for dimension, column in zip(decl.format.order, columns, strict=True):
        out[dimension] = column
    return out


def _received(decl: TensorDecl, written: Written, level: int, parents: int) -> tuple[Ints, Ints]:
    """Positions and coordinates of a level, checked against its parents and its dimension."""
    pos, crd = (np.asarray(found[level], dtype=np.int64) for found in (written.pos, written.crd))
    _fits(decl, f"level {level}", len(pos) - 1, parents, "fibers")
    size = decl.shape[decl.format.order[level]]
    if len(crd) and not (crd.min() >= 0 and crd.max() < size):
        worst = crd.min() if crd.min() < 0 else crd.max()
        raise SimulationError(f"tensor `{decl.name}`: coordinate {worst} of level {level} is outside 0..{size - 1}")
    return pos, crd


def _fits(decl: TensorDecl, what: str, got: int, due: int, unit: str = "elements") -> None:
    if got != due:
        raise SimulationError(f"tensor `{decl.name}`: {what} received {got} {unit} for {due} parents")
