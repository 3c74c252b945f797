"""Masks of tensors in four forms: everywhere the same, the same along some dimensions, an element for each, or at listed coordinates."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from fuseflow.errors import AttributesError
from fuseflow.propagation.contraction import MAX_POINTS
from fuseflow.tensors.levels.base import Ints

Bits = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class TensorMask:
    """A mask of a tensor of a shape.

    Without `crds`, `bits` has an axis for each dimension, of extent 1 where nothing changes along it. With `crds`, `bits` has an element
    for each of these coordinates, and the mask is `elsewhere` at all others.
    """

    shape: tuple[int, ...]
    bits: Bits
    crds: Ints | None = None
    elsewhere: bool = False

    def __invert__(self) -> TensorMask:
        return replace(self, bits=~self.bits, elsewhere=not self.elsewhere)

    @property
    def size(self) -> int:
        """The number of elements of the tensor."""
        return math.prod(self.shape)

    def count(self) -> int:
        """Return the number of elements at which the mask is true."""
        true = int(np.count_nonzero(self.bits))
        if self.crds is None:
            return true * (self.size // self.bits.size) if self.bits.size else 0
        return true + (self.size - self.bits.size if self.elsewhere else 0)

    def along(self, mode: int) -> Bits:
        """Return at which coordinates of a dimension the mask is true for any element."""
        extent = self.shape[mode]
        if self.crds is None:
            others = tuple(axis for axis in range(self.bits.ndim) if axis != mode)
            return np.broadcast_to(self.bits.any(axis=others), (extent,)) if self.size else np.zeros(extent, dtype=bool)
        listed = np.bincount(self.crds[mode], minlength=extent) if self.elsewhere else np.zeros(extent, dtype=np.int64)
        any_of = self.elsewhere & (listed < self.size // max(1, extent))
        any_of[self.crds[mode][self.bits]] = True
        return any_of

    def at(self, crds: Ints) -> Bits:
        """Return the mask at some coordinates, an array [rank, n]."""
        if self.crds is None:
            places = [c if extent > 1 else np.zeros_like(c) for c, extent in zip(crds, self.bits.shape, strict=True)]
            return np.broadcast_to(self.bits[tuple(places)], crds.shape[1:])
        own, asked = np.ravel_multi_index(tuple(self.crds), self.shape), np.ravel_multi_index(tuple(crds), self.shape)
        order = np.argsort(own, kind="stable")
        place = np.minimum(np.searchsorted(own[order], asked), max(0, len(own) - 1))
        if not len(own):
            return np.full(asked.shape, self.elsewhere)
        return np.where(own[order][place] == asked, self.bits[order][place], self.elsewhere)

    def whole(self, name: str = "the tensor") -> Bits:
        """Return the mask as an array of the shape of the tensor. Raise `AttributesError` for one at listed coordinates of a tensor that
        has more than 2^26 elements."""
        if self.crds is None:
            return np.broadcast_to(self.bits, self.shape)
        if self.size > MAX_POINTS:
            raise AttributesError(
                f"`{name}` has {self.size:,} elements, and its mask lists coordinates", hint="ask `mask` for it"
            )
        array = np.full(self.shape, self.elsewhere)
        array[tuple(self.crds)] = self.bits
        return array
