"""Functions of single entries that are 0 where their arguments are 0: they are computed on stored entries, and the result has their places.

These are functions of one tensor, products and quotients of one with a number, and differences and products of tensors that have the same
places. The sum of a stored tensor and a dense one is dense, and the sum of two stored ones has the places of both.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F

from fuseflow.sparsity.dispatch.registry import SameFormatSparsifier, register_bwd_op_impl, register_fwd_op_impl
from fuseflow.sparsity.dispatch.sparsification import dense_of, format_of
from fuseflow.sparsity.entry_positions import known_places
from fuseflow.sparsity.kernels.matrix_kernels import flat_places
from fuseflow.sparsity.layouts.n_of_m import GroupedNMTensor, NMTensor
from fuseflow.sparsity.layouts.sparse import BcsrTensor, CooTensor, CscTensor, CsrTensor, EllTensor
from fuseflow.sparsity.sparsifiers.built_in import KeepAll


def values_at(storage: Any, tensor: torch.Tensor) -> torch.Tensor:
    """Return the entries of a tensor, dense or stored, at the places of a storage, in the shape of its values."""
    places = known_places(storage)
    if format_of(tensor) is type(storage):
        other = tensor.wrapped_tensor  # type: ignore[attr-defined]
        if places.agree(storage, other):
            return places.values(other)
    return places.gather(storage, dense_of(tensor))


STORAGES = (CsrTensor, CscTensor, CooTensor, BcsrTensor, EllTensor, NMTensor, GroupedNMTensor)
"""The storage classes that have places, and no entries elsewhere."""

_OF_ONE = (
    "abs neg positive sign floor ceil round trunc frac sin sinh asin asinh tan tanh atan atanh sqrt square expm1 log1p erf relu deg2rad "
    "rad2deg nan_to_num"
)
FUNCTIONS: tuple[Callable[..., Any], ...] = (
    *(getattr(torch, name) for name in _OF_ONE.split()),
    *(F.relu, F.relu6, F.gelu, F.silu, F.leaky_relu, F.elu, F.selu, F.celu, F.mish, F.hardswish, F.softsign, F.tanhshrink),
    *(F.softshrink, F.hardshrink, F.tanh),
)
"""Functions of one tensor that are 0 at 0, whatever their other arguments are."""


def register_pointwise(storage: type) -> None:
    """Register the functions of single entries for a storage class whose places are known."""
    for function in FUNCTIONS:
        _register(function, storage, 1, _accepts_functional)
    for function in (torch.mul, torch.div):
        _register(function, storage, 1, _accepts_number)
    for function in (torch.sub, torch.mul):
        _register(function, storage, 2, _accepts_same_places)


def _register(function: Callable[..., Any], storage: type, count: int, accepts: Callable[[Any, Sequence[Any]], bool]) -> None:
    def forward(ctx: Any, inputs: Sequence[Any], output_sparsifiers: Sequence[Any]) -> Any:
        if not accepts(ctx.call, inputs):
            return NotImplemented
        places, storages = known_places(inputs[0].wrapped_tensor), [tensor.wrapped_tensor for tensor in inputs]
        ctx.save_for_backward(*inputs)
        return places.with_values(storages[0], ctx.call.on([places.values(s) for s in storages]))

    register_fwd_op_impl(function, [storage] * count, [(KeepAll, storage)])(forward)
    _register_gradients(function, storage, count, _backward)


def _register_gradients(function: Callable[..., Any], storage: type, count: int, backward: Callable[..., Any]) -> None:
    """Register the gradient of a function of stored tensors, for dense and stored gradients."""
    formats = ((SameFormatSparsifier, storage), (KeepAll, torch.Tensor))
    for grad, grad_inputs in itertools.product((torch.Tensor, storage), itertools.product(formats, repeat=count)):
        register_bwd_op_impl(function, [grad], grad_inputs, [storage] * count)(backward)


def _backward(ctx: Any, grad_outputs: Sequence[torch.Tensor], input_sparsifiers: Sequence[Any]) -> list[Any]:
    """Return the gradients of tensors with the same places: at these places if all are requested so, else from dense tensors."""
    storages = [tensor.wrapped_tensor for tensor in ctx.saved_tensors]
    places = known_places(storages[0])
    if all(isinstance(sparsifier, SameFormatSparsifier) for sparsifier in input_sparsifiers):
        gradients = _gradients(ctx.call, [places.values(s) for s in storages], values_at(storages[0], grad_outputs[0]))
        return [None if g is None else places.with_values(s, g) for s, g in zip(storages, gradients, strict=True)]
    gradients = _gradients(ctx.call, [dense_of(tensor) for tensor in ctx.saved_tensors], dense_of(grad_outputs[0]))
    return [
        places.with_values(s, places.gather(s, g)) if isinstance(sparsifier, SameFormatSparsifier) and g is not None else g
        for s, g, sparsifier in zip(storages, gradients, input_sparsifiers, strict=True)
    ]


def _gradients(call: Any, tensors: Sequence[torch.Tensor], grad: torch.Tensor) -> Sequence[torch.Tensor | None]:
    leaves = [tensor.detach().requires_grad_() for tensor in tensors]
    with torch.enable_grad():
        result = call.on(leaves)
    return torch.autograd.grad(result, leaves, grad, allow_unused=True)


def _accepts_functional(call: Any, inputs: Sequence[Any]) -> bool:
    return not call.arguments.get("inplace", False) and call.arguments.get("out") is None


def _accepts_number(call: Any, inputs: Sequence[Any]) -> bool:
    """Return whether the operand `other` of a product or quotient is a number that leaves 0 as it is: finite and not 0."""
    other = call.arguments.get("other")
    if isinstance(other, bool) or not isinstance(other, int | float) or not math.isfinite(other):
        return False
    return bool(other) and call.arguments.get("rounding_mode") is None


def _accepts_same_places(call: Any, inputs: Sequence[Any]) -> bool:
    first, second = (tensor.wrapped_tensor for tensor in inputs)
    return inputs[0].shape == inputs[1].shape and known_places(first).agree(first, second)


def register_addition(storage: type) -> None:
    """Register `add` of tensors of a storage class whose places are known, with each other and with dense ones."""
    for place in (0, 1):
        classes = [storage if place == i else torch.Tensor for i in (0, 1)]
        register_fwd_op_impl(torch.add, classes)(_add_dense)
        for gradient in ((SameFormatSparsifier, storage), (KeepAll, torch.Tensor)):
            outputs = [gradient if place == i else (KeepAll, torch.Tensor) for i in (0, 1)]
            register_bwd_op_impl(torch.add, [torch.Tensor], outputs, classes)(_add_backward)
    register_fwd_op_impl(torch.add, [storage] * 2, [(KeepAll, storage)])(_add_stored)
    _register_gradients(torch.add, storage, 2, _add_backward)


def _add_dense(ctx: Any, inputs: Sequence[Any], output_sparsifiers: Sequence[Any]) -> Any:
    place = 0 if hasattr(inputs[0], "wrapped_tensor") else 1
    stored, dense = inputs[place], inputs[1 - place]
    if stored.dtype != dense.dtype or not broadcasts(dense, stored):
        return NotImplemented
    factors = (1, ctx.call.arguments["alpha"])
    ctx.factors, ctx.shapes, ctx.stored = factors, [tensor.shape for tensor in inputs], [place]
    ctx.save_for_backward(stored)
    result = (dense * factors[1 - place]).expand(stored.shape).clone(memory_format=torch.contiguous_format)
    storage = stored.wrapped_tensor
    known_places(storage).add_to(storage, result, factors[place])
    return result


def broadcasts(dense: torch.Tensor, stored: torch.Tensor) -> bool:
    """Return whether the sum of a dense and a stored tensor has the shape of the stored one."""
    pairs = zip(reversed(dense.shape), reversed(stored.shape), strict=False)
    return dense.dim() <= stored.dim() and all(size in (1, other) for size, other in pairs)


def _add_stored(ctx: Any, inputs: Sequence[Any], output_sparsifiers: Sequence[Any]) -> Any:
    """Return the sum of two stored tensors. If their places differ, only tensors of coordinates are added; for others, return
    `NotImplemented`."""
    first, second = (tensor.wrapped_tensor for tensor in inputs)
    places = known_places(first)
    agree = inputs[0].shape == inputs[1].shape and places.agree(first, second)
    same_kind = inputs[0].shape == inputs[1].shape and inputs[0].dtype == inputs[1].dtype
    if not same_kind or not (agree or isinstance(first, CooTensor)):
        return NotImplemented
    ctx.factors, ctx.shapes, ctx.stored = (1, ctx.call.arguments["alpha"]), [tensor.shape for tensor in inputs], [0, 1]
    ctx.save_for_backward(*inputs)
    if agree:
        return places.with_values(first, places.values(first) + places.values(second) * ctx.factors[1])
    return _sum_of_entries(first, second, ctx.factors[1])


def _add_backward(ctx: Any, grad_outputs: Sequence[torch.Tensor], input_sparsifiers: Sequence[Any]) -> list[Any]:
    (grad,) = grad_outputs
    stored = dict(zip(ctx.stored, ctx.saved_tensors, strict=True))
    gradients: list[Any] = []
    for place, sparsifier in enumerate(input_sparsifiers):
        factor = ctx.factors[place]
        if isinstance(sparsifier, SameFormatSparsifier):
            storage = stored[place].wrapped_tensor
            gradients.append(known_places(storage).with_values(storage, values_at(storage, grad) * factor))
        else:
            gradients.append(dense_of(grad).sum_to_size(ctx.shapes[place]) * factor)
    return gradients


def _sum_of_entries(first: CooTensor, second: CooTensor, factor: Any) -> CooTensor:
    """Return the sum of a tensor and of another one times `factor`, by their coordinates: the result has the union of the
    coordinates of both."""
    indices = torch.cat((first.indices, second.indices), dim=1)
    places, inverse = torch.unique(flat_places(indices, first.shape), return_inverse=True)
    values = first.values.new_zeros(len(places)).index_add(0, inverse, torch.cat((first.values, second.values * factor)))
    union = torch.stack(torch.unravel_index(places, first.shape)) if first.shape else indices[:, :1]
    return CooTensor(union.to(first.indices.dtype), values, first.shape)


for _storage in STORAGES:
    register_pointwise(_storage)
    register_addition(_storage)
