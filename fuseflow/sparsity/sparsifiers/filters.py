"""The sparsifier that keeps whole filters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from fuseflow import selection
from fuseflow.errors import SparsityError
from fuseflow.selection import Kind
from fuseflow.sparsity.arrays import mask_of, values_of
from fuseflow.sparsity.sparsifiers.sparsifier import Sparsifier, kept_count, require_fraction

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True)
class Filter(Sparsifier):
    """Keeps the filters that have the largest sums of magnitudes: all but a `fraction` of them, rounded down.

    A filter is all that has one coordinate of the first dimension: a row of a linear layer's weight, an output channel of a convolution's.
    """

    name = "filter"
    kind: ClassVar[Kind] = "materializing"
    least_rank: ClassVar[int] = 1

    fraction: float

    def __post_init__(self) -> None:
        require_fraction(self.name, self.fraction)

    def select(self, tensor: torch.Tensor, scores: torch.Tensor | None = None) -> torch.Tensor:
        values = values_of(tensor)
        if not values.ndim:
            raise SparsityError(f"`{self}`: a number has no filters", hint="filters are the rows of a matrix or more")
        sums = np.abs(values.astype(np.float64)).sum(axis=tuple(range(1, values.ndim)))
        kept = selection.largest(sums, kept_count(self.fraction, sums.size))
        whole = np.broadcast_to(kept.reshape(-1, *(1,) * (values.ndim - 1)), values.shape)
        return mask_of(whole.copy(), tensor)
