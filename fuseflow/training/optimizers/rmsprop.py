"""RMSprop."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fuseflow.training.optimizers.optimizer import Optimizer

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, slots=True)
class RMSprop(Optimizer):
    """Divides the gradient by the root of the mean of its squares, or by its deviation if it is `centered`. Means forget by `alpha`."""

    name = "rmsprop"
    torch_name = "RMSprop"

    lr: float = 1e-2
    alpha: float = 0.99
    eps: float = 1e-8
    weight_decay: float = 0.0
    momentum: float = 0.0
    centered: bool = False
    maximize: bool = False

    @property
    def state_names(self) -> tuple[str, ...]:
        return ("square_avg", *["momentum_buffer"] * bool(self.momentum), *["grad_avg"] * self.centered)

    def update(
        self, parameter: Tensor, gradient: Tensor, states: Mapping[str, Tensor], scalars: Mapping[str, Tensor]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        gradient = self._descent(parameter, gradient)
        variance = self.alpha * states["square_avg"] + (1 - self.alpha) * (gradient * gradient)
        new = {"square_avg": variance}
        if self.centered:
            mean = new["grad_avg"] = self.alpha * states["grad_avg"] + (1 - self.alpha) * gradient
            variance = variance - mean * mean
        direction = gradient / (variance.sqrt() + self.eps)
        if self.momentum:
            direction = new["momentum_buffer"] = self.momentum * states["momentum_buffer"] + direction
        return parameter - scalars["lr"] * direction, new
