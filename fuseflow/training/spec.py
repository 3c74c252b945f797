"""What a training step does: its loss, the optimizer of each parameter, and whether gradients are results.

>>> spec = TrainingSpec.of("cross_entropy", "sgd:lr=0.2,momentum=0.9")
>>> print(spec.text)
loss cross_entropy
optimizer sgd:lr=0.2,momentum=0.9
>>> spec.scalars(step=1)
{'lr': 0.2}
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fuseflow.errors import TrainingError, counted, did_you_mean
from fuseflow.training.losses import Loss, LossFunction, as_loss
from fuseflow.training.optimizers.formulas import parse_optimizer
from fuseflow.training.optimizers.optimizer import Optimizer

if TYPE_CHECKING:
    from torch import Tensor

DEFAULT_OPTIMIZER = "sgd:lr=0.1"
"""The optimizer of a step for which none is given."""


@dataclass(frozen=True, slots=True)
class Group:
    """An optimizer and the names of its parameters, or None for all parameters of the model."""

    optimizer: Optimizer
    parameters: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class TrainingSpec:
    """What a training step does. `gradients` is whether the gradients of parameters are results of the step, too.

    Parameters that are in no group are not trained. Raise `TrainingError` for a parameter in two groups, and for no group at all.
    """

    loss: LossFunction
    groups: tuple[Group, ...]
    gradients: bool = False

    def __post_init__(self) -> None:
        if not self.groups:
            raise TrainingError("no parameter has an optimizer", hint=f"give an optimizer, such as `{DEFAULT_OPTIMIZER}`")
        if len(self.groups) > 1 and any(group.parameters is None for group in self.groups):
            raise TrainingError("a group of all parameters stands beside others", hint="name the parameters of each group")
        names = [name for group in self.groups for name in sorted(group.parameters or ())]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise TrainingError(f"the parameter `{twice}` is in two groups", hint="keep one of them")

    @classmethod
    def of(
        cls, loss: str | LossFunction, optimizer: str | Optimizer | Sequence[Group] = DEFAULT_OPTIMIZER, gradients: bool = False
    ) -> TrainingSpec:
        """Return the spec of a loss, by name or as a function of output and target, and of an optimizer of all parameters, or of groups.

        Raise `TrainingError` for an unknown name and for options out of range.
        """
        optimizer = parse_optimizer(optimizer) if isinstance(optimizer, str) else optimizer
        groups = (Group(optimizer),) if isinstance(optimizer, Optimizer) else tuple(optimizer)
        return cls(as_loss(loss), groups, gradients)

    @property
    def text(self) -> str | None:
        """The spec as a text, which tells it from every other one, or None if its loss is a function, which only this process knows."""
        if not isinstance(self.loss, Loss):
            return None
        lines = [f"loss {self.loss}"]
        for group in self.groups:
            of_names = "" if group.parameters is None else " of " + " ".join(sorted(group.parameters))
            lines.append(f"optimizer {group.optimizer}{of_names}")
        return "\n".join([*lines, *["gradients"] * self.gradients])

    def group_of(self, parameter: str) -> int | None:
        """Return the place of the group of a parameter by its name, or None if it is in no group, and so not trained."""
        groups = enumerate(self.groups)
        return next((place for place, group in groups if group.parameters is None or parameter in group.parameters), None)

    def optimizer_of(self, parameter: str) -> Optimizer | None:
        """Return the optimizer of a parameter by its name, or None if it is not trained."""
        place = self.group_of(parameter)
        return None if place is None else self.groups[place].optimizer

    def state_names(self, parameter: str) -> dict[str, str]:
        """Return the states of a parameter: names such as `layer1.weight.momentum_buffer` with PyTorch's key, `momentum_buffer`."""
        optimizer = self.optimizer_of(parameter)
        return {} if optimizer is None else {f"{parameter}.{key}": key for key in optimizer.state_names}

    def trained(self, parameters: Iterable[str]) -> tuple[str, ...]:
        """Return the names of parameters that have an optimizer, in their order.

        Raise `TrainingError` if a group names a parameter that is not among `parameters`, which are all of the model.
        """
        known = tuple(parameters)
        for name in (name for group in self.groups for name in sorted(group.parameters or ())):
            if name not in known:
                raise TrainingError(
                    f"the model has no parameter `{name}`, which has an optimizer", hint=did_you_mean(name, known)
                )
        return tuple(name for name in known if self.group_of(name) is not None)

    def initial(self, parameters: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return the states of parameters before the first step, by names such as `layer1.weight.momentum_buffer`."""
        states: dict[str, Tensor] = {}
        for name, parameter in parameters.items():
            optimizer = self.optimizer_of(name)
            values = {} if optimizer is None else optimizer.initial(parameter)
            states |= {full: values[key] for full, key in self.state_names(name).items()}
        return states

    def scalars(self, step: int, lr: float | Sequence[float] | None = None) -> dict[str, float]:
        """Return the numbers of a step, which are inputs of its program, by name. Steps are counted from 1.

        `lr` is as of `learning_rates`. With several groups, names begin with that of the group, as in `group0.lr`.
        """
        return {
            self._scalar_name(place, key): value
            for place, (group, rate) in enumerate(zip(self.groups, self.learning_rates(lr), strict=True))
            for key, value in group.optimizer.scalars(step, rate).items()
        }

    def learning_rates(self, lr: float | Sequence[float] | None = None) -> list[float]:
        """Return the learning rate of each group. `lr` are other ones than the constants: one for all groups or one for each.

        Raise `TrainingError` for another number of learning rates.
        """
        if lr is None:
            return [group.optimizer.lr for group in self.groups]
        rates = list(lr) if isinstance(lr, Sequence) else [lr] * len(self.groups)
        if len(rates) != len(self.groups):
            groups = counted(len(self.groups), "group")
            raise TrainingError(f"there are {counted(len(rates), 'learning rate')} for {groups}", hint="give one for each group")
        return rates

    def update(
        self, name: str, parameter: Tensor, gradient: Tensor, states: Mapping[str, Tensor], scalars: Mapping[str, Tensor]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Return the new value of a trained parameter and its new states, by names such as `momentum_buffer`, as of `Optimizer.update`.

        `scalars` are the numbers of the step by the names of `scalars`. Raise `TrainingError` for a parameter that is not trained.
        """
        place = self.group_of(name)
        if place is None:
            raise TrainingError(f"the parameter `{name}` has no optimizer", hint="add it to a group")
        optimizer = self.groups[place].optimizer
        own = {key: scalars[self._scalar_name(place, key)] for key in optimizer.scalars(1)}
        return optimizer.update(parameter, gradient, states, own)

    def _scalar_name(self, group: int, key: str) -> str:
        return key if len(self.groups) == 1 else f"group{group}.{key}"
