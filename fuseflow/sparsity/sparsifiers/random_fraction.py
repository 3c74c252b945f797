"""The sparsifier that leaves out entries by chance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from fuseflow.errors import SparsityError
from fuseflow.selection import Kind
from fuseflow.sparsity.sparsifiers.sparsifier import Sparsifier, require_fraction

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True)
class RandomFraction(Sparsifier):
    """Keeps each entry with the probability 1 - `fraction`, whatever its number.

    With a `seed`, it keeps the same entries of every tensor of a shape. Without one it draws from PyTorch's generator, so that
    `torch.manual_seed` decides.
    """

    name = "random"
    kind: ClassVar[Kind] = "streaming"

    fraction: float
    seed: int | None = None

    def __post_init__(self) -> None:
        require_fraction(self.name, self.fraction)
        if self.seed is not None and not -(1 << 63) <= self.seed < 1 << 64:
            raise SparsityError(f"`{self}`: PyTorch has no such seed", hint="give a number of at most 64 bits")

    def select(self, tensor: torch.Tensor, scores: torch.Tensor | None = None) -> torch.Tensor:
        import torch

        generator = None if self.seed is None else torch.Generator().manual_seed(self.seed)
        return (torch.rand(tensor.shape, generator=generator) >= self.fraction).to(tensor.device)
