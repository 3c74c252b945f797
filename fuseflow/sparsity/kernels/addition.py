"""Sums of a stored tensor and a dense one, which are dense, and of two stored ones, which have the places of both."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import torch

from fuseflow.sparsity.dispatch.registry import register_bwd_op_impl, register_fwd_op_impl
from fuseflow.sparsity.dispatch.same_format import SameFormatSparsifier
from fuseflow.sparsity.dispatch.sparsification import dense_of
from fuseflow.sparsity.kernels.gradients import values_at
from fuseflow.sparsity.kernels.pointwise import STORAGES
from fuseflow.sparsity.layouts.coo import CooTensor
from fuseflow.sparsity.places.listing import known_places
from fuseflow.sparsity.sparsifiers.keep_all import KeepAll


def register_addition(storage: type) -> None:
    """Register `add` of tensors of a storage class whose places are known, with each other and with dense ones."""
    for place in (0, 1):
        classes = [storage if place == i else torch.Tensor for i in (0, 1)]
        register_fwd_op_impl(torch.add, classes)(_add_dense)
        for gradient in ((SameFormatSparsifier, storage), (KeepAll, torch.Tensor)):
            outputs = [gradient if place == i else (KeepAll, torch.Tensor) for i in (0, 1)]
            register_bwd_op_impl(torch.add, [torch.Tensor], outputs, classes)(_add_backward)
    register_fwd_op_impl(torch.add, [storage] * 2, [(KeepAll, storage)])(_add_stored)
    formats = ((SameFormatSparsifier, storage), (KeepAll, torch.Tensor))
    for grad, grad_inputs in itertools.product((torch.Tensor, storage), itertools.product(formats, repeat=2)):
        register_bwd_op_impl(torch.add, [grad], grad_inputs, [storage] * 2)(_add_backward)


def _add_dense(ctx: Any, inputs: Sequence[Any], output_sparsifiers: Sequence[Any]) -> Any:
    place = 0 if hasattr(inputs[0], "wrapped_tensor") else 1
    stored, dense = inputs[place], inputs[1 - place]
    if stored.dtype != dense.dtype or not _broadcasts(dense, stored):
        return NotImplemented
    factors = (1, ctx.call.arguments["alpha"])
    ctx.factors, ctx.shapes, ctx.stored = factors, [tensor.shape for tensor in inputs], [place]
    ctx.save_for_backward(stored)
    result = (dense * factors[1 - place]).expand(stored.shape).clone(memory_format=torch.contiguous_format)
    storage = stored.wrapped_tensor
    known_places(storage).add_to(storage, result, factors[place])
    return result


def _broadcasts(dense: torch.Tensor, stored: torch.Tensor) -> bool:
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
    indices = torch.cat((first.indices, second.indices), dim=1).long()
    strides = torch.tensor([math.prod(first.shape[d + 1 :]) for d in range(len(first.shape))], device=indices.device)
    places, inverse = torch.unique((indices * strides.view(-1, 1)).sum(0), return_inverse=True)
    values = first.values.new_zeros(len(places)).index_add(0, inverse, torch.cat((first.values, second.values * factor)))
    union = torch.stack(torch.unravel_index(places, first.shape)) if first.shape else indices[:, :1]
    return CooTensor(union.to(first.indices.dtype), values, first.shape)


for _storage in STORAGES:
    register_addition(_storage)
