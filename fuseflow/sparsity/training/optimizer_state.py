"""The state of an optimizer for the weights that it changes: which they are, and the numbers that it gathers for their entries."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from fuseflow.errors import SparsityError


def require_weights(optimizer: Optimizer, parameters: Mapping[str, Tensor]) -> None:
    """Raise `SparsityError` if an optimizer does not hold one of the weights, which stand by name."""
    known = {id(parameter) for parameter in _parameters(optimizer)}
    for name, parameter in parameters.items():
        if id(parameter) not in known:
            raise SparsityError(
                f"the optimizer does not hold the weight `{name}`",
                hint="make the optimizer of `model.parameters()`, after the model was moved or copied",
            )


def replace_weights(optimizer: Optimizer, replaced: Mapping[int, nn.Parameter]) -> None:
    """Let an optimizer hold other weights: `replaced` has the new ones by the `id` of the old. The state of old ones is
    dropped."""
    for group in optimizer.param_groups:
        for old in group["params"]:
            if id(old) in replaced:
                optimizer.state.pop(old, None)
        group["params"] = [replaced.get(id(parameter), parameter) for parameter in group["params"]]


def clear_entries(optimizer: Optimizer, parameter: Tensor, entries: Tensor) -> None:
    """Set the state of an optimizer for some entries of a weight, such as their momentum, to 0. `entries` is their mask."""
    for value in optimizer.state.get(parameter, {}).values():
        if isinstance(value, Tensor) and value.shape == parameter.shape:
            value.masked_fill_(entries, 0)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The weights of an optimizer and its state for them, before a step that may fail."""

    values: tuple[Tensor, ...]
    state: Mapping[str, Any]

    @classmethod
    def of(cls, optimizer: Optimizer) -> Snapshot:
        """Return a copy of all that the next step of an optimizer changes."""
        return cls(tuple(p.detach().clone() for p in _parameters(optimizer)), copy.deepcopy(optimizer.state_dict()))

    def restore(self, optimizer: Optimizer) -> None:
        """Undo the changes of an optimizer since."""
        with torch.no_grad():
            for parameter, value in zip(_parameters(optimizer), self.values, strict=True):
                parameter.copy_(value)
        optimizer.load_state_dict(dict(self.state))


def _parameters(optimizer: Optimizer) -> Iterator[Tensor]:
    groups: Iterable[Any] = (group["params"] for group in optimizer.param_groups)
    return (parameter for group in groups for parameter in group)
