"""The base class of optimizers. An optimizer is a formula of the new value of one parameter, with PyTorch's semantics."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from math import inf
from typing import TYPE_CHECKING, Any, ClassVar, Self

from fuseflow.errors import TrainingError
from fuseflow.sparsity.text_form import text_of

if TYPE_CHECKING:
    import torch
    from torch import Tensor

SEPARATOR = ","
"""What stands between the options of optimizers and losses in texts."""


class Optimizer(ABC):
    """The constants of a group of parameters, and how a step changes one of these. A subclass is a frozen dataclass of the constants.

    Names and defaults of constants are PyTorch's, but for `betas`, whose two numbers are `beta1` and `beta2`. Steps are counted from 1.
    Constants are finite and at least 0, if the subclass does not say otherwise. Others raise `TrainingError`.
    """

    __slots__ = ()

    name: ClassVar[str]
    """Its name in texts, such as `adamw`."""
    torch_name: ClassVar[str]
    """The name of PyTorch's class in `torch.optim`."""
    below_one: ClassVar[tuple[str, ...]] = ()
    """The constants that must be below 1."""
    any_sign: ClassVar[tuple[str, ...]] = ()
    """The constants that may be negative."""

    lr: float
    weight_decay: float
    maximize: bool

    def __post_init__(self) -> None:
        for field in fields(self):  # type: ignore[arg-type]
            if field.type == "float":
                object.__setattr__(self, field.name, self._checked(field.name, float(getattr(self, field.name))))

    def _checked(self, key: str, value: float) -> float:
        least, bound = -inf if key in self.any_sign else 0.0, 1.0 if key in self.below_one else inf
        if least <= value < bound and value != -inf:
            return value
        lower = "" if key in self.any_sign else " of at least 0"
        upper = " and below 1" if key in self.below_one else ""
        raise TrainingError(f"`{self.name}`: `{key}` cannot be {value:g}", hint=f"give a finite number{lower}{upper}")

    def with_lr(self, lr: float) -> Self:
        """Return the same constants with another learning rate."""
        return replace(self, lr=lr)  # type: ignore[type-var]

    @property
    @abstractmethod
    def state_names(self) -> tuple[str, ...]:
        """PyTorch's names of the states of a parameter that have its shape, such as `momentum_buffer`."""

    @property
    def counts_steps(self) -> bool:
        """Whether numbers of a step depend on how many steps there were before."""
        return False

    def scalars(self, step: int, lr: float | None = None) -> dict[str, float]:
        """Return the numbers of a step by name, which are inputs of its program. `lr` is another learning rate than the constant."""
        return {"lr": self.lr if lr is None else lr}

    def initial(self, parameter: Tensor) -> dict[str, Tensor]:
        """Return the states of a parameter before the first step by name, as dense tensors."""
        import torch

        value = self.initial_value
        return {
            key: torch.full(parameter.shape, value, dtype=parameter.dtype, device=parameter.device) for key in self.state_names
        }

    @property
    def initial_value(self) -> float:
        """The value of all entries of states before the first step."""
        return 0.0

    @abstractmethod
    def update(
        self, parameter: Tensor, gradient: Tensor, states: Mapping[str, Tensor], scalars: Mapping[str, Tensor]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Return the new value of a parameter, and its new states by name.

        `gradient` and states have the shape of the parameter, and `scalars` are the numbers of the step as tensors without dimensions.
        Nothing is written in place. Entries that are 0 in all of these stay 0, unless a constant `eps` is 0, too.
        """

    def in_torch(self, parameters: Iterable[Tensor]) -> torch.optim.Optimizer:
        """Return PyTorch's optimizer with the same constants."""
        import torch.optim

        constants = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        if "beta1" in constants:
            constants["betas"] = (constants.pop("beta1"), constants.pop("beta2"))
        optimizer: torch.optim.Optimizer = getattr(torch.optim, self.torch_name)(list(parameters), **constants)
        return optimizer

    @classmethod
    def of_group(cls, group: Mapping[str, Any]) -> Optimizer:
        """Return the optimizer with the constants of a group of parameters of PyTorch's optimizer."""
        betas = dict(zip(("beta1", "beta2"), group.get("betas", ()), strict=False))
        return cls(**{field.name: {**group, **betas}[field.name] for field in fields(cls)})  # type: ignore[arg-type]

    def torch_state(self, states: Mapping[str, Tensor], step: int) -> dict[str, Any]:
        """Return the state that PyTorch's optimizer keeps of a parameter before step `step`. `states` are its tensors by name."""
        import torch

        return {"step": torch.tensor(step - 1.0), **states}

    def _descent(self, parameter: Tensor, gradient: Tensor) -> Tensor:
        """Return the gradient of what becomes smaller, with the decay of weights as a part of it."""
        signed = -gradient if self.maximize else gradient
        return signed + self.weight_decay * parameter if self.weight_decay else signed

    def __str__(self) -> str:
        return text_of(self.name, self, SEPARATOR)
