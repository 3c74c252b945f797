"""The sparsifier that keeps entries that are large enough."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from fuseflow import selection
from fuseflow.errors import SparsityError
from fuseflow.selection import Kind
from fuseflow.sparsity.arrays import mask_of, values_of
from fuseflow.sparsity.sparsifiers.sparsifier import KeepRule, Sparsifier

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True)
class Threshold(Sparsifier):
    """Keeps every entry of which the magnitude is at least `least`."""

    name = "threshold"
    kind: ClassVar[Kind] = "streaming"

    least: float

    def __post_init__(self) -> None:
        reason, hint = selection.refusal(selection.Threshold(self.least), 1)
        if reason:
            raise SparsityError(f"`{self}`: {reason}", hint=hint)

    def select(self, tensor: torch.Tensor, scores: torch.Tensor | None = None) -> torch.Tensor:
        return mask_of(selection.kept(selection.Threshold(self.least), values_of(tensor)), tensor)

    def keep_rule(self, shape: tuple[int, ...]) -> KeepRule:
        return KeepRule(selection.Threshold(self.least))
