"""The entries of a tensor that are known before the model runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """Which entries of a tensor are known, and their values. `value` is 0 where an entry is unknown."""

    mask: Tensor
    value: Tensor

    @classmethod
    def nothing(cls, shape: Sequence[int], dtype: torch.dtype) -> Known:
        """Return the `Known` of a tensor of which no entry is known."""
        return cls(torch.zeros((), dtype=torch.bool).expand(shape), torch.zeros((), dtype=dtype).expand(shape))

    @classmethod
    def exactly(cls, tensor: Tensor) -> Known:
        """Return the `Known` of a tensor that is known as a whole."""
        return cls(torch.ones((), dtype=torch.bool).expand(tensor.shape), tensor)

    @classmethod
    def where(cls, mask: Tensor, tensor: Tensor) -> Known:
        """Return the `Known` of a tensor whose entries are known where a mask is true."""
        return cls(mask, tensor.masked_fill(~mask, 0))

    @property
    def everywhere(self) -> bool:
        """Whether every entry is known."""
        return bool(self.mask.all())

    @property
    def unknown(self) -> Tensor:
        """Where an entry is not known."""
        return ~self.mask

    @property
    def nonzero(self) -> Tensor:
        """Where an entry may be other than 0."""
        return ~self.mask | (self.value != 0)

    @property
    def constant(self) -> Tensor:
        """Where an entry is known, and not 0."""
        return self.mask & (self.value != 0)

    def or_else(self, other: Known) -> Known:
        """Return the entries that are known here or in `other`. Where both know an entry, the value is the one here."""
        return Known(self.mask | other.mask, torch.where(self.mask, self.value, other.value))
