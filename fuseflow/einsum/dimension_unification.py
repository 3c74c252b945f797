"""The dimensions of a program: which of them are the same, and into which parts its reshapes take them apart.

    Q[i, h, d] = P[i, h*64 + d]     dimension 1 of P is the pair of dimensions 1 and 2 of Q, wherever else it is used

Dimensions are joined where one index runs over them. A split of one of them holds for all of them. Several splits of one dimension are
combined: (12, 64) and (24, 32) make it (12, 2, 32). A split is left out if it has no common parts with earlier splits, or if a
compressed level or a `keep` over the dimension forbids it.

An index can also be split in one region only: a loop becomes two, and no value is stored elsewhere.

    T[i, h] = sum(k) A[i, k] * X[k, h]     i in parts of 4     T.split[i0, i1, h] = sum(k) A.split[i0, i1, k] * X[k, h]

Tensors that the region reads and writes are seen in parts there, and whole everywhere else. So lanes of `i0` take runs of four rows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TypeAlias

from fuseflow.einsum.nodes import Access, Einsum, Index, Keep, Program, Split, index_names
from fuseflow.einsum.verify import shapes_and_extents
from fuseflow.errors import ProgramError, did_you_mean

Axis: TypeAlias = tuple[str, str | int]
"""An axis is a dimension of a tensor (the tensor and its position) or an index of an Einsum (the Einsum and the name of the index). A
tensor and an Einsum may have the same name, but a position never equals an index name.
"""


@dataclass(frozen=True, slots=True)
class OwnParts:
    """The parts of an axis in one region only; other axes of its dimension stay whole. The index `name`, such as `n`, is split
    into `n0` and `n1`."""

    name: str
    sizes: tuple[int, ...]

    @property
    def labels(self) -> tuple[str, ...]:
        """The index names of the parts."""
        return tuple(f"{self.name}{k}" for k in range(len(self.sizes)))


@dataclass(slots=True)
class Dimensions:
    """The dimensions of a program: a union-find structure over axes, which joins axes that are the same dimension.

    `extent` is the extent of every axis. `cuts` gives the sizes of the inner parts of a dimension, by its representative: {32, 64} of 768
    makes it (12, 2, 32). `names` gives the two axes that a dimension comes apart into, where a split of the program names them. `unsplit`
    holds the dimensions that must stay whole. `own` has the axes that are in parts of their own, in one region.
    """

    extent: dict[Axis, int] = field(default_factory=dict)
    cuts: dict[Axis, frozenset[int]] = field(default_factory=dict)
    names: dict[Axis, tuple[Axis, Axis]] = field(default_factory=dict)
    unsplit: set[Axis] = field(default_factory=set)
    own: dict[Axis, OwnParts] = field(default_factory=dict)
    _parent: dict[Axis, Axis] = field(default_factory=dict)
    _splits: dict[Axis, list[tuple[Axis, Axis]]] = field(default_factory=dict)
    _within: dict[Axis, list[Axis]] = field(default_factory=dict)

    def find(self, axis: Axis) -> Axis:
        """Return the axis that represents the dimension of `axis`."""
        parents = self._parent
        while (parent := parents.get(axis)) is not None:
            above = parents.get(parent)
            if above is None:
                return parent
            parents[axis] = axis = above
        return axis

    def join(self, a: Axis, b: Axis) -> None:
        """State that two axes are the same dimension."""
        root, other = self.find(a), self.find(b)
        if other != root:
            self._parent[other] = root

    def parts(self, axis: Axis) -> tuple[int, ...]:
        """Return the extents of the parts of a dimension, outermost first. A dimension in one piece has its own extent alone.

        >>> dims = Dimensions({("T", 0): 768}, {("T", 0): frozenset({32, 64})})
        >>> dims.parts(("T", 0))
        (12, 2, 32)
        """
        if axis in self.own:
            return self.own[axis].sizes
        root = self.find(axis)
        if not self.cuts.get(root):
            return (self.extent[root],)
        steps = [self.extent[root], *sorted(self.cuts[root], reverse=True), 1]
        return tuple(above // below for above, below in pairwise(steps))

    def labels(self, axis: Axis) -> tuple[str, ...]:
        """Return the names that the program gives to the parts of a dimension, or () if its splits do not name them all."""
        if axis in self.own:
            return self.own[axis].labels
        names = tuple(name for part in self.names.get(self.find(axis), ()) for name in self._label(part))
        return names if len(names) == len(self.parts(axis)) else ()

    def _label(self, axis: Axis) -> tuple[str, ...]:
        return self.labels(axis) if len(self.parts(axis)) > 1 else (str(axis[1]),)

    def split(self, axis: Axis, outer: Axis, inner: Axis) -> None:
        """Take a dimension apart into `outer` and `inner`, and every dimension that this concerns, unless that is impossible."""
        whole, pair = self.find(axis), (self.find(outer), self.find(inner))
        previous_cuts = dict(self.cuts)
        self._splits.setdefault(whole, []).append(pair)
        for part in pair:
            self._within.setdefault(part, []).append(whole)
        if self._settled(whole):
            self.names.setdefault(whole, (outer, inner))
            return
        self.cuts = previous_cuts
        self._splits[whole].pop()
        for part in pair:
            self._within[part].pop()

    def _settled(self, start: Axis) -> bool:
        """Carry cuts between dimensions and their parts until they agree, from `start` on. Return False if they cannot."""
        pending = [start]
        while pending:
            axis = pending.pop()
            for whole in (axis, *self._within.get(axis, ())):
                for outer, inner in self._splits.get(whole, ()):
                    changed = self._exchanged(whole, outer, inner)
                    if changed is None:
                        return False
                    pending += changed
        return True

    def _exchanged(self, whole: Axis, outer: Axis, inner: Axis) -> list[Axis] | None:
        """Make the cuts of a dimension and of the two parts of a split agree. Return the axes with new cuts, None if they cannot."""
        size = self.extent[inner]
        old = {axis: self.cuts.get(axis, frozenset()) for axis in (whole, outer, inner)}
        cuts = old[whole] | old[inner] | {size} | {size * cut for cut in old[outer]}
        if any(big % small for small, big in pairwise(sorted(cuts))):
            return None
        new = {**old, whole: cuts}
        new[outer] |= {cut // size for cut in cuts if cut > size}
        new[inner] |= {cut for cut in cuts if cut < size}
        changed = [axis for axis in new if new[axis] != old[axis]]
        if not self.unsplit.isdisjoint(changed):
            return None
        self.cuts |= new
        return changed


def unify_dimensions(program: Program, whole: Collection[str] = ()) -> Dimensions:
    """Compute the dimensions of a program, with all splits that are possible. The tensors in `whole` are not split."""
    dims, (shape_by_tensor, extents_by_einsum) = Dimensions(), shapes_and_extents(program)
    for name, lengths in shape_by_tensor.items():
        dims.extent |= {(name, position): size for position, size in enumerate(lengths)}
    for einsum in program.einsums:
        dims.extent |= {(einsum.name, index): size for index, size in extents_by_einsum[einsum.name].items()}
        for axis, index in axes_of(einsum):
            if isinstance(index, str):
                dims.join(axis, (einsum.name, index))
    splits = [split for einsum in program.einsums if einsum.reshapes for split in _splits(einsum, dims)]
    _join_parts(dims, splits)
    for tensor in program.tensors:
        pairs = zip(tensor.format.levels, tensor.format.order, strict=True) if tensor.format is not None else ()
        dims.unsplit |= {dims.find((tensor.name, position)) for level, position in pairs if not level.full}
    keeps = ((einsum.name, einsum.body) for einsum in program.einsums if isinstance(einsum.body, Keep))
    dims.unsplit |= {dims.find((name, v)) for name, keep in keeps for v in keep.over}
    dims.unsplit |= {dims.find((name, position)) for name in whole for position in range(len(shape_by_tensor.get(name, ())))}
    for axis, outer, inner in splits:
        dims.split(axis, outer, inner)
    return dims


def _splits(einsum: Einsum, dims: Dimensions) -> Iterator[tuple[Axis, Axis, Axis]]:
    """Yield each dimension of an Einsum that is split, with its two parts. A split with a part of one value is left out."""
    for axis, index in axes_of(einsum):
        if isinstance(index, Split) and index.size > 1 and dims.extent[einsum.name, index.outer] > 1:
            yield axis, (einsum.name, index.outer), (einsum.name, index.inner)


def _join_parts(dims: Dimensions, splits: list[tuple[Axis, Axis, Axis]]) -> None:
    """Join the parts of equal dimensions that are split in the same way. A split is a dimension with its two parts."""
    joined = True
    while joined:
        joined, parts_by_split = False, dict[tuple[Axis, int], tuple[Axis, Axis]]()
        for axis, *parts in splits:
            first = parts_by_split.setdefault((dims.find(axis), dims.extent[parts[1]]), (parts[0], parts[1]))
            for part, first_part in zip(parts, first, strict=True):
                if dims.find(part) != dims.find(first_part):
                    dims.join(first_part, part)
                    joined = True


def axes_of(einsum: Einsum) -> Iterator[tuple[Axis, Index]]:
    """Yield each dimension that an Einsum writes or reads, with the index that runs over it, the left side first."""
    for access in (Access(einsum.name, einsum.indices), *einsum.accesses):
        for position, index in enumerate(access.indices):
            yield (access.tensor, position), index


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
    indices = index_names(tuple(index for _, index in axes_of(program.defined[split.einsum])))
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
        for axis, index in axes_of(einsum):
            if isinstance(index, str):
                within.join(axis, (einsum.name, index))
                axes |= {axis, (einsum.name, index)}
    return frozenset(axis for axis in axes if within.find(axis) == within.find(start))


def _refuse_whole(
    program: Program, dims: Dimensions, kept: Collection[str], einsums: Iterable[Einsum], axes: Collection[Axis]
) -> None:
    """Raise `ProgramError` if something needs the dimension of `axes` whole, or in other parts."""
    for tensor in program.tensors:
        for level, position in zip(tensor.format.levels, tensor.format.order, strict=True) if tensor.format is not None else ():
            if not level.full and (tensor.name, position) in axes:
                raise ProgramError(f"`{tensor.name}` stores it {level.text}", hint="store it in a dense level")
    for einsum in einsums:
        keep = einsum.body if isinstance(einsum.body, Keep) else None
        if keep is not None and any((einsum.name, index) in axes for index in keep.over):
            raise ProgramError(f"`{keep}` of `{einsum.name}` compares along it")
        for axis, index in axes_of(einsum):
            concerned = {axis, *((einsum.name, name) for name in index_names((index,)))}
            if not isinstance(index, str) and not concerned.isdisjoint(axes):
                raise ProgramError(f"`{einsum.name}` reads it as `{index}` of `{axis[0]}`")
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
