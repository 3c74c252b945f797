"""Packing: a model whose weights are stored sparse, for eager inference and training."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import torch

from fuseflow.errors import SparsityError, did_you_mean
from fuseflow.sparsity.entry_positions import compact
from fuseflow.sparsity.layouts.layout import Dense, Layout, Masked, require_fit
from fuseflow.sparsity.model_sparsity import require_zeros, sparse_weights
from fuseflow.sparsity.packed import PackedParameter, PackedTensor
from fuseflow.sparsity.weights import replica

M = TypeVar("M", bound=torch.nn.Module)


def pack(model: M, layouts: Mapping[str, tuple[Layout, torch.Tensor]] | None = None) -> M:
    """Return a copy of a sparse model in which each sparse weight holds its stored entries alone.

    `layouts` has the layout and the mask of each weight by its name, and may speak of a dense model. Without it, a sparse model
    has them itself; its weights with the layouts `dense` and `masked` hold every entry anyway, and stay ordinary parameters.
    Names stay, tied weights stay tied, and entries that a mask does not keep are 0. The state dict has dense tensors, so that it
    is one of the dense model. Raise `SparsityError` for a dense model without `layouts`, for a name that the model does not have,
    for a mask that does not fit, and for a weight that is not 0 where it is pruned.
    """
    return pack_inplace(replica(model), layouts)


def pack_inplace(model: M, layouts: Mapping[str, tuple[Layout, torch.Tensor]] | None = None) -> M:
    """Pack weights of a model, as `pack` does, and return the model."""
    if layouts is None:
        layouts = model_layouts(model)
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


def model_layouts(model: torch.nn.Module) -> dict[str, tuple[Layout, torch.Tensor]]:
    """Return the layout and the mask of each weight that a sparse model does not store dense."""
    weights = list(sparse_weights(model))
    if not weights:
        raise SparsityError("the model is dense", hint="make it sparse first, with a `SparsityBuilder`")
    for name, parameter, weight in weights:
        require_zeros(name, parameter, weight.mask)
    kept = {name: (weight.entry.layout, weight.mask) for name, _, weight in weights}
    return {name: (layout, mask) for name, (layout, mask) in kept.items() if not isinstance(layout, Dense | Masked)}


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
