"""The state of a sparsified model: the masks and the rules of its weights, and the rules of its intermediates.

The weights themselves are ordinary parameters whose pruned entries are 0. Their names, the `state_dict` and every optimizer are
as in the dense model. The state is in an attribute of the module, which `copy.deepcopy` copies.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from fuseflow.errors import SparsityError
from fuseflow.sparsity.spec import IntermediateEntry, WeightEntry

_ATTRIBUTE = "_fuseflow_sparsity"


@dataclass(slots=True, eq=False)
class SparseWeight:
    """The rule of a weight and its mask, which is true where an entry is kept. A kept entry may be 0."""

    entry: WeightEntry
    mask: Tensor


@dataclass(slots=True, eq=False)
class ModelSparsity:
    """The sparse weights of a module and the rules of its intermediates, both by qualified name. A tied weight stands under its
    first name."""

    weights: dict[str, SparseWeight] = field(default_factory=dict)
    intermediates: dict[str, IntermediateEntry] = field(default_factory=dict)


def sparsity_of(module: nn.Module) -> ModelSparsity | None:
    """Return the state of a sparse module itself, or None for a dense one."""
    state = vars(module).get(_ATTRIBUTE)
    return state if isinstance(state, ModelSparsity) else None


def set_sparsity(module: nn.Module, state: ModelSparsity) -> None:
    """Store the masks and rules of a module in the module."""
    object.__setattr__(module, _ATTRIBUTE, state)


def clear_sparsity(module: nn.Module) -> None:
    """Let a module forget its masks and rules. The numbers of its weights stay as they are."""
    vars(module).pop(_ATTRIBUTE, None)


def sparse_weights(module: nn.Module) -> Iterator[tuple[str, nn.Parameter, SparseWeight]]:
    """Return the sparse weights of a module and of the modules inside of it: the qualified name, the parameter, the rule and mask."""
    for path, part in module.named_modules():
        state = sparsity_of(part)
        parameters = dict(part.named_parameters(remove_duplicate=False)) if state is not None else {}
        for name, weight in ({} if state is None else state.weights).items():
            if name in parameters:
                yield f"{path}.{name}" if path else name, parameters[name], weight


def require_zeros(name: str, parameter: Tensor, mask: Tensor) -> None:
    """Raise `SparsityError` if a sparse weight is not 0 where it is pruned. An optimizer that holds no masks makes it so."""
    moved = ((parameter.detach() != 0) & ~mask.to(parameter.device)).nonzero()
    if len(moved):
        place = ", ".join(map(str, moved[0].tolist()))
        raise SparsityError(
            f"the weight `{name}` is not 0 at ({place}), where it is pruned",
            hint="train with `sp.attach(model, optimizer=optimizer)`, or set it back with `sp.attach(model).project()`",
        )


def zero_pruned(parameter: Tensor, mask: Tensor) -> None:
    """Set the entries of a parameter that a mask does not keep to 0, whatever they are."""
    with torch.no_grad():
        parameter.masked_fill_(~mask.to(parameter.device), 0)
