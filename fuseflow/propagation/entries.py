"""Masks that are true at listed coordinates alone, so that nothing dense is made of a large sparse tensor.

If only the pattern of a sparse tensor is known, its numbers are unknown at the coordinates of its entries, and 0 elsewhere. A
mask of the tensor is then only computed at these coordinates.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from fuseflow.propagation.labeled import Labeled, union
from fuseflow.tensors.levels.base import Ints

_CHUNK = 1 << 22
"""The most elements of an array that is made for some of the entries at a time."""


@dataclass(frozen=True, slots=True, eq=False)
class Entries:
    """A mask over indices that is true at some of the listed coordinates: `crds[n]` are the coordinates of the index `names[n]`,
    and `mask` says where it is true."""

    crds: Ints
    mask: npt.NDArray[np.bool_]
    names: tuple[str, ...] = ()

    def same_place(self, other: Entries) -> bool:
        """Return whether another mask has the same array of coordinates, for the same indices."""
        return self.crds is other.crds and self.names == other.names

    def at(self, mask: Labeled | Entries) -> npt.NDArray[np.bool_]:
        """Return a mask at the listed coordinates. If the mask has indices that this one lacks, it counts as true where it is
        true for any of them. If it lists other coordinates, it counts as true."""
        match mask:
            case Labeled():
                extra = tuple(axis for axis, name in enumerate(mask.names) if name not in self.names)
                array = np.asarray(mask.array.any(axis=extra)) if extra else mask.array
                names = [name for name in mask.names if name in self.names]
                return np.broadcast_to(array[tuple(self.crds[self.names.index(name)] for name in names)], self.mask.shape)
            case Entries():
                return mask.mask if self.same_place(mask) else np.ones(self.mask.shape, dtype=bool)

    def both(self, mask: Labeled | Entries) -> Entries:
        """Return this mask where `mask` is true, too, in the sense of `at`."""
        return replace(self, mask=self.mask & self.at(mask))

    def whole(self, sizes: Mapping[str, int]) -> Labeled:
        """Return the mask as an array over its indices."""
        array = np.zeros([sizes[name] for name in self.names], dtype=bool)
        array[tuple(self.crds[:, self.mask])] = True
        return Labeled(array, self.names)

    def any_over(self, names: Sequence[str], sizes: Mapping[str, int], most: int) -> Labeled | Entries:
        """Return the mask over some of its indices: whether it is true for any of the others. It is true everywhere if it would have more
        elements than `most`."""
        kept = [number for number, name in enumerate(self.names) if name in names]
        if len(kept) == len(self.names):
            return self
        shape = tuple(sizes[self.names[number]] for number in kept)
        if math.prod(shape) > most:
            return Labeled(np.asarray(True))
        array = np.zeros(shape, dtype=bool)
        array[tuple(self.crds[number][self.mask] for number in kept)] = True
        return Labeled(array, tuple(self.names[number] for number in kept))


def sampled(entries: Entries, others: Sequence[Labeled | Entries], sizes: Mapping[str, int]) -> Entries:
    """Return the listed coordinates at which all masks are true for some element of the indices that `entries` lack."""
    dense, mask = [], entries.mask.copy()
    for other in others:
        if isinstance(other, Entries) or set(other.names) <= set(entries.names):
            mask &= entries.at(other)
        else:
            dense.append(other)
    extra = tuple(name for name in union(*dense) if name not in entries.names)
    width = math.prod(sizes[name] for name in extra)
    places = np.flatnonzero(mask)
    for first in range(0, len(places), step := max(1, _CHUNK // max(1, width))):
        some = places[first : first + step]
        mask[some] = _product(entries, dense, extra, some).any(axis=tuple(range(1, len(extra) + 1)))
    return replace(entries, mask=mask)


def _product(entries: Entries, masks: Sequence[Labeled], extra: Sequence[str], places: Ints) -> npt.NDArray[np.bool_]:
    """Return where all masks are true, at the listed coordinates numbered `places`, with one more axis for each `extra` index."""
    product = np.ones((len(places), *[1] * len(extra)), dtype=bool)
    for mask in masks:
        own = [name for name in mask.names if name in entries.names]
        array = mask.over([*own, *extra])
        gathered = array[tuple(entries.crds[entries.names.index(name)][places] for name in own)]
        product = product & (gathered if own else gathered[None])
    return product


def flat_numbers(entries: Entries, names: Sequence[str], sizes: Mapping[str, int]) -> tuple[Ints, int]:
    """Return the number of each true coordinate of `entries` among all points of the indices `names`, and their number."""
    number = np.zeros(int(entries.mask.sum()), dtype=np.int64)
    for name in names:
        number = number * sizes[name] + entries.crds[entries.names.index(name)][entries.mask]
    return number, math.prod(sizes[name] for name in names)
