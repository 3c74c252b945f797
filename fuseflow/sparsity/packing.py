"""Packing: a model whose weights are stored sparse, for eager inference and training."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, TypeVar

import torch

from fuseflow.errors import SparsityError, did_you_mean
from fuseflow.sparsity.layouts.layout import Layout, require_fit
from fuseflow.sparsity.packed import PackedParameter, PackedTensor
from fuseflow.sparsity.places.listing import compact

M = TypeVar("M", bound=torch.nn.Module)


def pack(model: M, layouts: Mapping[str, tuple[Layout, torch.Tensor]]) -> M:
    """Return a copy of a model with packed weights. `layouts` has the layout and the mask of each, by its name in the model.

    Names stay, tied weights stay tied, and what a mask does not keep is 0. The state dict has dense tensors, so that it is one of the dense
    model. Raise `SparsityError` for a name that the model does not have, and for a mask that does not fit.
    """
    return pack_inplace(copy.deepcopy(model), layouts)


def pack_inplace(model: M, layouts: Mapping[str, tuple[Layout, torch.Tensor]]) -> M:
    """Pack weights of a model, as `pack` does, and return the model."""
    parameters = dict(model.named_parameters(remove_duplicate=False))
    packed: dict[int, Any] = {}
    for name, (layout, mask) in layouts.items():
        if name not in parameters:
            raise SparsityError(f"the model has no weight `{name}`", hint=did_you_mean(name, parameters))
        packed.setdefault(id(parameters[name]), packed_parameter(name, parameters[name], layout, mask))
    for module in model.modules():
        tied = {key: packed[id(p)] for key, p in module._parameters.items() if id(p) in packed}
        for key, parameter in tied.items():
            module._parameters[key] = parameter
        if tied:
            module.register_state_dict_post_hook(save_dense)  # type: ignore[no-untyped-call]
    return model


def packed_parameter(name: str, weight: torch.Tensor, layout: Layout, mask: torch.Tensor) -> Any:
    """Return a weight as a packed parameter. `name` is for messages."""
    if mask.shape != weight.shape:
        raise SparsityError(f"the mask of `{name}` has shape {list(mask.shape)}, and the weight has {list(weight.shape)}")
    require_fit(layout, mask, name)
    storage = compact(layout.pack(weight, mask))
    tensor = PackedTensor.wrapped_from_dense(storage, weight.detach())
    return PackedParameter(tensor, requires_grad=weight.requires_grad)


def save_dense(module: torch.nn.Module, state: dict[str, Any], prefix: str, metadata: Any) -> None:
    """Make the packed weights of a module dense in its state dict, except where it holds the parameters themselves."""
    for name in module._parameters:
        value = state.get(prefix + name)
        if isinstance(value, PackedTensor) and not isinstance(value, torch.nn.Parameter):
            state[prefix + name] = value.stored_dense().clone()
