"""Which dimensions of a program are one, and into which parts its reshapes take them apart.

    Q[i, h, d] = P[i, h*64 + d]     dimension 1 of P is the pair of dimensions 1 and 2 of Q, and so it is wherever else it is used

Dimensions are joined where one index runs over them. A split of one of them holds for all, and several splits of one dimension are
taken together: (12, 64) and (24, 32) make it (12, 2, 32). A split that has no common parts with those before it, or that a compressed
level forbids, is left out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TypeAlias

from fuseflow.einsum.nodes import Access, Einsum, Program, Split, accesses
from fuseflow.einsum.verify import extents, shapes

Axis: TypeAlias = tuple[str, str | int]
"""A dimension of a tensor (its position) or an index of an Einsum (its name). Names of tensors and Einsums may agree, these do not."""


@dataclass(slots=True)
class Dimensions:
    """The dimensions of a program, joined where they are the same one.

    `cuts` holds for a dimension, by its representative, the sizes of its inner parts: {32, 64} of 768 makes it (12, 2, 32). `names` what
    its parts are called, where a split of the program names them.
    """

    extent: dict[Axis, int] = field(default_factory=dict)
    cuts: dict[Axis, frozenset[int]] = field(default_factory=dict)
    names: dict[Axis, tuple[Axis, Axis]] = field(default_factory=dict)
    unsplit: set[Axis] = field(default_factory=set)
    _parent: dict[Axis, Axis] = field(default_factory=dict)
    _splits: dict[Axis, list[tuple[Axis, Axis]]] = field(default_factory=dict)
    _within: dict[Axis, list[Axis]] = field(default_factory=dict)

    def find(self, place: Axis) -> Axis:
        while (above := self._parent.get(place, place)) != place:
            self._parent[place] = self._parent.get(above, above)
            place = above
        return place

    def join(self, a: Axis, b: Axis) -> None:
        self._parent[self.find(b)] = self.find(a)

    def parts(self, place: Axis) -> tuple[int, ...]:
        """The extents of the parts of a dimension, outermost first; its own extent alone if it is in one piece.

        >>> dims = Dimensions({("T", 0): 768}, {("T", 0): frozenset({32, 64})})
        >>> dims.parts(("T", 0))
        (12, 2, 32)
        """
        root = self.find(place)
        steps = [self.extent[root], *sorted(self.cuts.get(root, ()), reverse=True), 1]
        return tuple(above // below for above, below in pairwise(steps))

    def labels(self, place: Axis) -> tuple[str, ...]:
        """What the parts of a dimension are called in the program, () if its splits do not say."""
        names = tuple(name for part in self.names.get(self.find(place), ()) for name in self._label(part))
        return names if len(names) == len(self.parts(place)) else ()

    def _label(self, place: Axis) -> tuple[str, ...]:
        return self.labels(place) if len(self.parts(place)) > 1 else (str(place[1]),)

    def split(self, place: Axis, outer: Axis, inner: Axis) -> bool:
        """Take a dimension apart, and all that follows from it; False, and nothing changes, if that cannot be."""
        whole, pair = self.find(place), (self.find(outer), self.find(inner))
        before = dict(self.cuts)
        self._splits.setdefault(whole, []).append(pair)
        for part in pair:
            self._within.setdefault(part, []).append(whole)
        if self._settled(whole):
            self.names.setdefault(whole, (outer, inner))
            return True
        self.cuts = before
        self._splits[whole].pop()
        for part in pair:
            self._within[part].pop()
        return False

    def _settled(self, start: Axis) -> bool:
        """Carry cuts between dimensions and their parts until they agree."""
        todo = [start]
        while todo:
            at = todo.pop()
            for whole in (at, *self._within.get(at, ())):
                for outer, inner in self._splits.get(whole, ()):
                    found = self._exchanged(whole, outer, inner)
                    if found is None:
                        return False
                    todo += found
        return True

    def _exchanged(self, whole: Axis, outer: Axis, inner: Axis) -> list[Axis] | None:
        """Make the cuts of a dimension and of the two parts of one split agree: what has new ones, None if they cannot."""
        size = self.extent[inner]
        before = {place: self.cuts.get(place, frozenset()) for place in (whole, outer, inner)}
        cuts = before[whole] | before[inner] | {size} | {size * cut for cut in before[outer]}
        if any(big % small for small, big in pairwise(sorted(cuts))):
            return None
        due = {**before, whole: cuts}
        due[outer] |= {cut // size for cut in cuts if cut > size}
        due[inner] |= {cut for cut in cuts if cut < size}
        changed = [place for place in due if due[place] != before[place]]
        if not self.unsplit.isdisjoint(changed):
            return None
        self.cuts |= due
        return changed


def unify_dimensions(program: Program, whole: Collection[str] = ()) -> Dimensions:
    """The dimensions of a program, with all its splits that can be. Tensors in `whole` stay as they are."""
    dims, sizes, shape = Dimensions(), extents(program), shapes(program)
    for name, lengths in shape.items():
        dims.extent |= {(name, position): size for position, size in enumerate(lengths)}
    for einsum in program.einsums:
        dims.extent |= {(einsum.name, index): size for index, size in sizes[einsum.name].items()}
        for access in _accesses(einsum):
            for position, index in enumerate(access.indices):
                if isinstance(index, str):
                    dims.join((access.tensor, position), (einsum.name, index))
    splits = [split for einsum in program.einsums for split in _splits(einsum, dims)]
    _join_parts(dims, splits)
    for tensor in program.tensors:
        pairs = zip(tensor.format.levels, tensor.format.order, strict=True) if tensor.format is not None else ()
        dims.unsplit |= {dims.find((tensor.name, position)) for level, position in pairs if not level.full}
    dims.unsplit |= {dims.find((name, position)) for name in whole for position in range(len(shape.get(name, ())))}
    for place, outer, inner in splits:
        dims.split(place, outer, inner)
    return dims


def _splits(einsum: Einsum, dims: Dimensions) -> Iterator[tuple[Axis, Axis, Axis]]:
    """The dimensions that come apart, with their parts: not those where a part has a single value, or none."""
    for access in _accesses(einsum):
        for position, index in enumerate(access.indices):
            if isinstance(index, Split) and index.size > 1 and dims.extent[einsum.name, index.outer] > 1:
                yield (access.tensor, position), (einsum.name, index.outer), (einsum.name, index.inner)


def _join_parts(dims: Dimensions, splits: list[tuple[Axis, Axis, Axis]]) -> None:
    """What comes apart in the same way has the same parts."""
    joined = True
    while joined:
        joined, known = False, dict[tuple[Axis, int], tuple[Axis, Axis]]()
        for place, *parts in splits:
            first = known.setdefault((dims.find(place), dims.extent[parts[1]]), (parts[0], parts[1]))
            for mine, its in zip(parts, first, strict=True):
                if dims.find(mine) != dims.find(its):
                    dims.join(its, mine)
                    joined = True


def split_axes(einsum: Einsum) -> Iterator[Axis]:
    """The dimensions that an Einsum sees as two indices."""
    for access in _accesses(einsum):
        yield from ((access.tensor, position) for position, index in enumerate(access.indices) if isinstance(index, Split))


def _accesses(einsum: Einsum) -> tuple[Access, ...]:
    """Left side first."""
    return (Access(einsum.name, einsum.indices), *accesses(einsum.body))
