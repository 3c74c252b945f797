"""What a training step draws: random tensors that are inputs of its program."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, slots=True)
class Draw:
    """A tensor that a step draws: the name of the argument, its shape and type, such as `float32`, the operator that draws it, and the
    probability of a 0."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    operator: str
    probability: float

    def drawn(self) -> Tensor:
        """Return what PyTorch draws next from its default generator."""
        import torch

        draw = getattr(torch, self.operator)
        return draw(torch.ones(self.shape, dtype=getattr(torch, self.dtype)), self.probability, True)  # type: ignore[no-any-return]
