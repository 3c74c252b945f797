"""Stochastic gradient descent, Adam with its variants AMSGrad and AdamW, RMSprop and Adagrad."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from fuseflow.errors import TrainingError
from fuseflow.sparsity.text_form import parse_text
from fuseflow.training.optimizers.optimizer import SEPARATOR, Optimizer

if TYPE_CHECKING:
    from torch import Tensor
if TYPE_CHECKING:
    from torch import Tensor
if TYPE_CHECKING:
    from torch import Tensor
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


@dataclass(frozen=True, slots=True)
class AdamW(Adam):
    """Adam, where each step first makes a weight smaller by the share `lr * weight_decay` of it."""

    name = "adamw"
    torch_name = "AdamW"
    decoupled: ClassVar[bool] = True

    weight_decay: float = 1e-2


OPTIMIZERS: dict[str, type[Optimizer]] = {cls.name: cls for cls in (SGD, Adam, AdamW, RMSprop, Adagrad)}
"""The known optimizers by name."""


def parse_optimizer(text: str) -> Optimizer:
    """Return the optimizer that a text names, such as `sgd:lr=0.2,momentum=0.9`. Raise `TrainingError` for another text.

    >>> str(parse_optimizer("adamw:lr=1e-3,weight_decay=0.1"))
    'adamw:weight_decay=0.1'
    """
    return parse_text(text, OPTIMIZERS, "optimizer", SEPARATOR, TrainingError)
