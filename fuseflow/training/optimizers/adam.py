"""Adam, and its variant AMSGrad."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from fuseflow.training.optimizers.optimizer import Optimizer

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, slots=True)
class Adam(Optimizer):
    """Steps along the mean of gradients, divided by the root of the mean of their squares. Both means forget by `beta1` and `beta2`."""

    name = "adam"
    torch_name = "Adam"
    below_one: ClassVar[tuple[str, ...]] = ("beta1", "beta2")
    decoupled: ClassVar[bool] = False
    """Whether weights decay by themselves, and not as a part of the gradient."""

    lr: float = 1e-3
    beta1: float = 0.9
    beta2: float = 0.999
    eps: float = 1e-8
    weight_decay: float = 0.0
    amsgrad: bool = False
    maximize: bool = False

    @property
    def state_names(self) -> tuple[str, ...]:
        return ("exp_avg", "exp_avg_sq", "max_exp_avg_sq") if self.amsgrad else ("exp_avg", "exp_avg_sq")

    @property
    def counts_steps(self) -> bool:
        return True

    def scalars(self, step: int, lr: float | None = None) -> dict[str, float]:
        rate = self.lr if lr is None else lr
        decay = {"decay": 1 - rate * self.weight_decay} if self.decoupled and self.weight_decay else {}
        root = (1 - self.beta2**step) ** 0.5
        return {"step_size": rate / (1 - self.beta1**step), "bias_correction2_sqrt": root, **decay}

    def update(
        self, parameter: Tensor, gradient: Tensor, states: Mapping[str, Tensor], scalars: Mapping[str, Tensor]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        gradient = self._descent(parameter, gradient)
        if "decay" in scalars:
            parameter = scalars["decay"] * parameter
        mean = self.beta1 * states["exp_avg"] + (1 - self.beta1) * gradient
        square = self.beta2 * states["exp_avg_sq"] + (1 - self.beta2) * (gradient * gradient)
        new = {"exp_avg": mean, "exp_avg_sq": square}
        if self.amsgrad:
            square = new["max_exp_avg_sq"] = states["max_exp_avg_sq"].maximum(square)
        deviation = square.sqrt() / scalars["bias_correction2_sqrt"] + self.eps
        return parameter - scalars["step_size"] * (mean / deviation), new

    def _descent(self, parameter: Tensor, gradient: Tensor) -> Tensor:
        if self.decoupled:
            return -gradient if self.maximize else gradient
        return Optimizer._descent(self, parameter, gradient)
