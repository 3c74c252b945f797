"""The dimensions of a program: which of them are the same, and into which parts its reshapes take them apart.

    Q[i, h, d] = P[i, h*64 + d]     dimension 1 of P is the pair of dimensions 1 and 2 of Q, wherever else it is used

Dimensions are joined where one index runs over them. A split of one of them holds for all of them. Several splits of one dimension are
combined: (12, 64) and (24, 32) make it (12, 2, 32). A split is left out if it has no common parts with earlier splits, or if a
compressed level or a `keep` over the dimension forbids it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TypeAlias

from fuseflow.einsum.nodes import Access, Einsum, Keep, Program, Split
from fuseflow.einsum.verify import shapes_and_extents

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

    def split(self, axis: Axis, outer: Axis, inner: Axis) -> bool:
        """Take a dimension apart into `outer` and `inner`, and every dimension that this concerns. Return False, without a change, if that
        is impossible.
        """
        whole, pair = self.find(axis), (self.find(outer), self.find(inner))
        previous_cuts = dict(self.cuts)
        self._splits.setdefault(whole, []).append(pair)
        for part in pair:
            self._within.setdefault(part, []).append(whole)
        if self._settled(whole):
            self.names.setdefault(whole, (outer, inner))
            return True
        self.cuts = previous_cuts
        self._splits[whole].pop()
        for part in pair:
            self._within[part].pop()
        return False

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
        """Make the cuts of a dimension agree with the cuts of the two parts of one split. Return the axes that got new cuts, or
        None if they cannot agree.
        """
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
        for access in all_accesses(einsum):
            for position, index in enumerate(access.indices):
                if isinstance(index, str):
                    dims.join((access.tensor, position), (einsum.name, index))
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
    for access in all_accesses(einsum):
        for position, index in enumerate(access.indices):
            if isinstance(index, Split) and index.size > 1 and dims.extent[einsum.name, index.outer] > 1:
                yield (access.tensor, position), (einsum.name, index.outer), (einsum.name, index.inner)


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


def split_axes(einsum: Einsum) -> Iterator[Axis]:
    """Yield the dimensions that an Einsum sees as two indices."""
    for access in all_accesses(einsum):
        yield from ((access.tensor, position) for position, index in enumerate(access.indices) if isinstance(index, Split))


def all_accesses(einsum: Einsum) -> tuple[Access, ...]:
    """Return all accesses of an Einsum, the left side first."""
    return (Access(einsum.name, einsum.indices), *einsum.accesses)
