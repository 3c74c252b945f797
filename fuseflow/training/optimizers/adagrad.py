"""Adagrad."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fuseflow.training.optimizers.optimizer import Optimizer

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, slots=True)
class Adagrad(Optimizer):
    """Divides the gradient by the root of the sum of all of its squares. Step t has the learning rate lr / (1 + (t - 1) * lr_decay)."""

    name = "adagrad"
    torch_name = "Adagrad"

    lr: float = 1e-2
    lr_decay: float = 0.0
    weight_decay: float = 0.0
    initial_accumulator_value: float = 0.0
    eps: float = 1e-10
    maximize: bool = False

    @property
    def state_names(self) -> tuple[str, ...]:
        return ("sum",)

    @property
    def initial_value(self) -> float:
        return self.initial_accumulator_value

    @property
    def counts_steps(self) -> bool:
        return bool(self.lr_decay)

    def scalars(self, step: int, lr: float | None = None) -> dict[str, float]:
        return {"lr": (self.lr if lr is None else lr) / (1 + (step - 1) * self.lr_decay)}

    def update(
        self, parameter: Tensor, gradient: Tensor, states: Mapping[str, Tensor], scalars: Mapping[str, Tensor]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        gradient = self._descent(parameter, gradient)
        total = states["sum"] + gradient * gradient
        return parameter - scalars["lr"] * (gradient / (total.sqrt() + self.eps)), {"sum": total}
