"""The splits of indices in one region: a loop becomes two, and no value is stored elsewhere.

    T[i, h] = sum(k) A[i, k] * X[k, h]     i in parts of 4     T.split[i0, i1, h] = sum(k) A.split[i0, i1, k] * X[k, h]

Tensors that the region reads and writes are seen in parts there, and whole everywhere else. So lanes of `i0` take runs of four rows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from fuseflow.einsum.dimensions import Axis, Dimensions, OwnParts, all_accesses
from fuseflow.einsum.nodes import Einsum, Keep, Program, index_names
from fuseflow.errors import ProgramError, did_you_mean


@dataclass(frozen=True, slots=True)
class RegionSplit:
    """The index `index` of the Einsum `einsum`, and all that shares it in the Einsums of the `region`, in parts of `size` coordinates."""

    einsum: str
    index: str
    size: int
    region: frozenset[str]


def split_in_region(program: Program, dims: Dimensions, kept: Collection[str], split: RegionSplit) -> Mapping[Axis, OwnParts]:
    """Return the parts of all axes that the split concerns. Tensors in `kept` keep the dimensions in which they are stored.
    Raises `ProgramError` where an index cannot be in such parts."""
    einsums = [einsum for einsum in program.einsums if einsum.name in split.region]
    indices = index_names(tuple(i for a in all_accesses(program.defined[split.einsum]) for i in a.indices))
    if split.index not in indices:
        raise ProgramError(f"`{split.einsum}` has no such index", hint=did_you_mean(split.index, indices))
    axes = _shared_axes(einsums, (split.einsum, split.index))
    extent = dims.extent[split.einsum, split.index]
    if extent % split.size or not 1 < split.size < extent:
        raise ProgramError(f"{extent:,} coordinates are not several parts of {split.size:,}", hint=_divisors(extent, split.size))
    _refuse_whole(program, dims, kept, einsums, axes)
    sizes = extent // split.size, split.size
    by_index = {axis: OwnParts(axis[1], sizes) for axis in axes if isinstance(axis[1], str)}
    results = {
        (e.name, position): by_index[e.name, index]
        for e in einsums
        for position, index in enumerate(e.indices)
        if isinstance(index, str) and (e.name, index) in by_index
    }
    return by_index | results


def _shared_axes(einsums: Iterable[Einsum], start: Axis) -> frozenset[Axis]:
    """Return the axes that are the same dimension as `start` in these Einsums."""
    within = Dimensions()
    axes = {start}
    for einsum in einsums:
        for access in all_accesses(einsum):
            for position, index in enumerate(access.indices):
                if isinstance(index, str):
                    within.join((access.tensor, position), (einsum.name, index))
                    axes |= {(access.tensor, position), (einsum.name, index)}
    return frozenset(axis for axis in axes if within.find(axis) == within.find(start))


def _refuse_whole(
    program: Program, dims: Dimensions, kept: Collection[str], einsums: Iterable[Einsum], axes: Collection[Axis]
) -> None:
    """Raise `ProgramError` if something needs the dimension of `axes` whole, or in other parts: a level, a `keep`, a view or a
    tensor in `kept`."""
    for tensor in program.tensors:
        for level, position in zip(tensor.format.levels, tensor.format.order, strict=True) if tensor.format is not None else ():
            if not level.full and (tensor.name, position) in axes:
                raise ProgramError(f"`{tensor.name}` stores it {level.text}", hint="store it in a dense level")
    for einsum in einsums:
        keep = einsum.body if isinstance(einsum.body, Keep) else None
        if keep is not None and any((einsum.name, index) in axes for index in keep.over):
            raise ProgramError(f"`{keep}` of `{einsum.name}` compares along it")
        for access in all_accesses(einsum):
            for position, index in enumerate(access.indices):
                concerned = {(access.tensor, position), *((einsum.name, name) for name in index_names((index,)))}
                if not isinstance(index, str) and not concerned.isdisjoint(axes):
                    raise ProgramError(f"`{einsum.name}` reads it as `{index}` of `{access.tensor}`")
    stored = next((name for name, position in axes if name in kept and isinstance(position, int)), None)
    if stored is not None:
        raise ProgramError(f"`{stored}` is stored in the dimensions that it has")
    if any(len(dims.parts(axis)) > 1 for axis in axes if isinstance(axis[1], str)):
        raise ProgramError("it is in parts already, by a reshape or another split")


def _divisors(size: int, wanted: int) -> str:
    """Return a hint that names the sizes of parts nearest to the one that is wanted."""
    divisors = [n for n in range(2, size // 2 + 1) if size % n == 0]
    nearest = sorted(sorted(divisors, key=lambda n: abs(n - wanted))[:2])
    return f"parts of {' or '.join(f'{n:,}' for n in nearest)}" if nearest else "leave it whole"
