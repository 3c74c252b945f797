"""The sparsifier that keeps what training moves away from zero."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from fuseflow.errors import SparsityError
from fuseflow.selection import Kind
from fuseflow.sparsity.arrays import mask_of, values_of
from fuseflow.sparsity.sparsifiers.sparsifier import Sparsifier, kept_count, require_fraction

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True)
class Movement(Sparsifier):
    """Keeps the entries that training moves away from 0: all but the `fraction` with the smallest scores, rounded down.

    The score of an entry is the sum of -weight * gradient over the steps so far (Sanh et al., "Movement Pruning", 2020), which the trainer
    gathers. The first of equal scores is kept, and NaN is largest.
    """

    name = "movement"
    kind: ClassVar[Kind] = "materializing"
    needs_scores: ClassVar[bool] = True

    fraction: float

    def __post_init__(self) -> None:
        require_fraction(self.name, self.fraction)

    def select(self, tensor: torch.Tensor, scores: torch.Tensor | None = None) -> torch.Tensor:
        if scores is None:
            raise SparsityError(
                f"`{self}` ranks entries by what training did to them, and nothing was trained yet",
                hint="use it with `sp.attach(model, spec, optimizer, when='new')`, or prune by `magnitude`",
            )
        numbers = values_of(scores).astype(np.float64).reshape(-1)
        ranked = np.lexsort((-numbers, ~np.isnan(numbers)))
        mask = np.zeros(numbers.size, dtype=bool)
        mask[ranked[: kept_count(self.fraction, numbers.size)]] = True
        return mask_of(mask.reshape(tensor.shape), tensor)
