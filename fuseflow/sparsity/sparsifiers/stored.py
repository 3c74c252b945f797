"""The sparsifier that keeps entries that are not 0."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from fuseflow import selection
from fuseflow.selection import Kind
from fuseflow.sparsity.sparsifiers.sparsifier import KeepRule, Sparsifier

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True)
class Stored(Sparsifier):
    """Keeps every entry that is not 0, NaN too: what a weight that was pruned elsewhere stores."""

    name = "stored"
    kind: ClassVar[Kind] = "streaming"

    def select(self, tensor: torch.Tensor, scores: torch.Tensor | None = None) -> torch.Tensor:
        return tensor != 0

    def keep_rule(self, shape: tuple[int, ...]) -> KeepRule:
        return KeepRule(selection.NONZERO)
