"""Packing: a model whose weights are stored sparse, for eager inference and training."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from types import ModuleType
from typing import Any, TypeVar

import torch
from torch.utils import _pytree as pytree

from fuseflow.errors import SparsityError, did_you_mean
from fuseflow.sparsity.dispatch.argument_binding import operator_name
from fuseflow.sparsity.entry_positions import compact
from fuseflow.sparsity.layouts.layout import Dense, Layout, Masked, require_fit
from fuseflow.sparsity.model_sparsity import require_zeros, sparse_weights
from fuseflow.sparsity.packed import PackedParameter, PackedTensor, read_back, report_dense
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


_HEAP_TYPE = 1 << 9  # The flag of classes whose attributes can be set, among `type.__flags__`.


def patch(
    old: Callable[..., Any], new: Callable[..., Any] | None = None, module_scope: Iterable[ModuleType] | None = None
) -> ExitStack:
    """Replace a function in all modules that hold it, and in their classes. `module_scope` are the modules, or None for PyTorch's.

    Without `new`, the function gets dense copies of packed tensors, and its changes of these are read back at their places. `close()` of
    the result undoes it, and so does the end of a `with` block. Raise `SparsityError` if no module holds the function.
    """
    of_torch = (module for name, module in list(sys.modules.items()) if name.partition(".")[0] == "torch")
    modules = of_torch if module_scope is None else module_scope
    places = {(id(holder), name): holder for module in modules for holder, name in _places(module, old)}
    if not places:
        raise SparsityError(
            f"no module holds `{operator_name(old)}`",
            hint="import the module first, and name it in `module_scope` if it is not PyTorch's",
        )
    undo = ExitStack()
    for (_, name), holder in places.items():
        undo.callback(setattr, holder, name, old)
        setattr(holder, name, new or _on_dense_copies(old))
    return undo


def _places(module: ModuleType, function: Callable[..., Any]) -> Iterator[tuple[Any, str]]:
    """Yield the modules and classes that hold a function, with the name that it has there."""
    for name, value in list(vars(module).items()):
        if value is function:
            yield module, name
        elif issubclass(type(value), type) and value.__flags__ & _HEAP_TYPE:
            yield from ((value, member) for member, content in list(vars(value).items()) if content is function)


def _on_dense_copies(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that runs another one on dense copies of packed tensors."""

    @functools.wraps(function)
    def on_dense_copies(*args: Any, **kwargs: Any) -> Any:
        copies: dict[int, tuple[PackedTensor, torch.Tensor]] = {}

        def dense(leaf: Any) -> Any:
            if not isinstance(leaf, PackedTensor):
                return leaf
            copy = leaf.stored_dense().clone()
            copies[id(copy)] = leaf, copy
            return copy

        values, named = pytree.tree_map(dense, (args, kwargs))
        if copies:
            report_dense(function, args, kwargs)
        result = function(*values, **named)
        for tensor, copy in copies.values():
            if not torch.equal(copy, tensor.stored_dense()):
                read_back(tensor, copy)
        return pytree.tree_map(lambda leaf: copies[id(leaf)][0] if id(leaf) in copies else leaf, result)

    return on_dense_copies
