"""The sparsifier that keeps the largest entries of a tensor, or of all tensors of a model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from fuseflow import selection
from fuseflow.errors import SparsityError
from fuseflow.selection import Kind
from fuseflow.sparsity.arrays import mask_of, values_of
from fuseflow.sparsity.sparsifiers.sparsifier import KeepRule, Sparsifier, kept_count, require_fraction

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True)
class Magnitude(Sparsifier):
    """Keeps the entries of largest magnitude: all but the `fraction` of smallest magnitude, rounded down.

    With the `scope` model, the entries of all tensors that have this rule are compared with each other, so that a tensor of small numbers
    keeps fewer.
    """

    name = "magnitude"
    kind: ClassVar[Kind] = "materializing"

    fraction: float
    scope: Literal["tensor", "model"] = "tensor"

    def __post_init__(self) -> None:
        require_fraction(self.name, self.fraction)
        if self.scope not in ("tensor", "model"):
            raise SparsityError(f"`{self.name}` has no scope `{self.scope}`", hint="it is `tensor` or `model`")

    def select(self, tensor: torch.Tensor, scores: torch.Tensor | None = None) -> torch.Tensor:
        values = values_of(tensor).reshape(-1)
        mask = selection.largest(values, kept_count(self.fraction, values.size))
        return mask_of(mask.reshape(tensor.shape), tensor)

    @property
    def compares_tensors(self) -> bool:
        return self.scope == "model"

    def select_together(self, tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        if not (self.compares_tensors and tensors):
            return Sparsifier.select_together(self, tensors)
        arrays = [values_of(tensor).reshape(-1) for tensor in tensors]
        mask = selection.largest(np.concatenate(arrays), kept_count(self.fraction, sum(a.size for a in arrays)))
        parts = np.split(mask, np.cumsum([a.size for a in arrays])[:-1])
        return [mask_of(part.reshape(tensor.shape), tensor) for part, tensor in zip(parts, tensors, strict=True)]

    def keep_rule(self, shape: tuple[int, ...]) -> KeepRule | None:
        """Return the rule over all dimensions. There is none if nothing is kept, or if the rule compares several tensors."""
        count = kept_count(self.fraction, math.prod(shape))
        if self.scope == "model" or not count:
            return None
        return KeepRule(selection.Largest(count), tuple(range(len(shape))))
