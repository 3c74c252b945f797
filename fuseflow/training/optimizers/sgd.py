"""Stochastic gradient descent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from fuseflow.errors import TrainingError
from fuseflow.training.optimizers.optimizer import Optimizer

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, slots=True)
class SGD(Optimizer):
    """Gradient descent, with momentum if `momentum` is not 0.

    The first step takes the whole gradient as its momentum, and later ones the share 1 - `dampening`.
    """

    name = "sgd"
    torch_name = "SGD"
    any_sign: ClassVar[tuple[str, ...]] = ("dampening",)

    lr: float = 1e-3
    momentum: float = 0.0
    dampening: float = 0.0
    weight_decay: float = 0.0
    nesterov: bool = False
    maximize: bool = False

    def __post_init__(self) -> None:
        Optimizer.__post_init__(self)
        if self.nesterov and (not self.momentum or self.dampening):
            hint = "give a momentum above 0 and no dampening"
            raise TrainingError(f"`{self}`: Nesterov's momentum needs a momentum, and has no dampening", hint=hint)

    @property
    def state_names(self) -> tuple[str, ...]:
        return ("momentum_buffer",) if self.momentum else ()

    @property
    def counts_steps(self) -> bool:
        return bool(self.momentum and self.dampening)

    def scalars(self, step: int, lr: float | None = None) -> dict[str, float]:
        share = {"gradient_share": 1.0 if step == 1 else 1 - self.dampening} if self.counts_steps else {}
        return Optimizer.scalars(self, step, lr) | share

    def update(
        self, parameter: Tensor, gradient: Tensor, states: Mapping[str, Tensor], scalars: Mapping[str, Tensor]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        gradient = self._descent(parameter, gradient)
        if not self.momentum:
            return parameter - scalars["lr"] * gradient, {}
        share = scalars["gradient_share"] * gradient if self.counts_steps else gradient
        momentum = self.momentum * states["momentum_buffer"] + share
        direction = gradient + self.momentum * momentum if self.nesterov else momentum
        return parameter - scalars["lr"] * direction, {"momentum_buffer": momentum}

    def torch_state(self, states: Mapping[str, Tensor], step: int) -> dict[str, Any]:
        return {} if step == 1 and self.counts_steps else dict(states)
