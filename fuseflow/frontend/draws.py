"""What a training step draws: random tensors that are inputs of its program."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, slots=True)
class Draw:
    """A tensor that a step draws: the name of the argument, its shape and type, such as `float32`, the operator that draws it, and the
    probability of a 0.

    PyTorch draws in the order of the memory, which the `strides` say: a transposed tensor with the same numbers has other zeros.
    """

    name: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str
    operator: str
    probability: float

    def drawn(self) -> Tensor:
        """Return what PyTorch draws next from its default generator."""
        import torch

        draw = getattr(torch, self.operator)
        ones = torch.empty_strided(self.shape, self.strides, dtype=getattr(torch, self.dtype)).fill_(1)
        return draw(ones, self.probability, True).contiguous()  # type: ignore[no-any-return]
