"""The sparsifier that keeps everything."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from fuseflow.selection import Kind
from fuseflow.sparsity.layouts.dense import Dense
from fuseflow.sparsity.layouts.layout import Layout
from fuseflow.sparsity.sparsifiers.sparsifier import Sparsifier

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True)
class KeepAll(Sparsifier):
    """Keeps every entry that is stored. Of a dense tensor, that is all."""

    name = "keepall"
    kind: ClassVar[Kind] = "streaming"

    @property
    def layout(self) -> Layout:
        return Dense()

    @property
    def share(self) -> float:
        return 0.0

    def select(self, tensor: torch.Tensor, scores: torch.Tensor | None = None) -> torch.Tensor:
        import torch

        return torch.ones(tensor.shape, dtype=torch.bool, device=tensor.device)
