"""Sparsifiers that judge each entry by itself: all, those that are not 0, large ones, or some by chance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from fuseflow import keep_rules
from fuseflow.errors import SparsityError
from fuseflow.keep_rules import Kind
from fuseflow.sparsity.layouts.layout import Dense, Layout
from fuseflow.sparsity.numpy_arrays import mask_of, values_of
from fuseflow.sparsity.sparsifiers.sparsifier import KeepRule, Sparsifier, require_fraction

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True)
class KeepAll(Sparsifier):
    """Keeps every entry that is stored. Of a dense tensor, that is all."""

    name = "keepall"
    kind: ClassVar[Kind] = "streaming"

    layout: ClassVar[Layout] = Dense()
    share: ClassVar[float] = 0.0

    def select(self, tensor: torch.Tensor, scores: torch.Tensor | None = None) -> torch.Tensor:
        import torch

        return torch.ones(tensor.shape, dtype=torch.bool, device=tensor.device)


@dataclass(frozen=True, slots=True)
class Stored(Sparsifier):
    """Keeps every entry that is not 0, NaN too: what a weight that was pruned elsewhere stores."""

    name = "stored"
    kind: ClassVar[Kind] = "streaming"

    def select(self, tensor: torch.Tensor, scores: torch.Tensor | None = None) -> torch.Tensor:
        return tensor != 0

    def keep_rule(self, shape: tuple[int, ...]) -> KeepRule:
        return KeepRule(keep_rules.NONZERO)


@dataclass(frozen=True, slots=True)
class Threshold(Sparsifier):
    """Keeps every entry of which the magnitude is at least `least`."""

    name = "threshold"
    kind: ClassVar[Kind] = "streaming"

    least: float

    def __post_init__(self) -> None:
        reason, hint = keep_rules.refusal(keep_rules.Threshold(self.least), 1)
        if reason:
            raise SparsityError(f"`{self}`: {reason}", hint=hint)

    def select(self, tensor: torch.Tensor, scores: torch.Tensor | None = None) -> torch.Tensor:
        return mask_of(keep_rules.kept(keep_rules.Threshold(self.least), values_of(tensor)), tensor)

    def keep_rule(self, shape: tuple[int, ...]) -> KeepRule:
        return KeepRule(keep_rules.Threshold(self.least))


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
