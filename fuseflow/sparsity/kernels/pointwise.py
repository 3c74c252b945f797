"""Functions of single entries that are 0 where their arguments are 0: they are computed on stored entries, and the result has their places.

These are functions of one tensor, products and quotients of one with a number, and differences and products of tensors that have the same
places.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F

from fuseflow.sparsity.dispatch.registry import register_bwd_op_impl, register_fwd_op_impl
from fuseflow.sparsity.dispatch.same_format import SameFormatSparsifier
from fuseflow.sparsity.dispatch.sparsification import dense_of
from fuseflow.sparsity.kernels.gradients import values_at
from fuseflow.sparsity.layouts.blocked import BcsrTensor
from fuseflow.sparsity.layouts.compressed import CscTensor, CsrTensor
from fuseflow.sparsity.layouts.coo import CooTensor
from fuseflow.sparsity.layouts.ell import EllTensor
from fuseflow.sparsity.layouts.grouped import GroupedNMTensor
from fuseflow.sparsity.layouts.n_of_m import NMTensor
from fuseflow.sparsity.places.listing import known_places
from fuseflow.sparsity.sparsifiers.keep_all import KeepAll

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
    formats = ((SameFormatSparsifier, storage), (KeepAll, torch.Tensor))
    for grad, grad_inputs in itertools.product((torch.Tensor, storage), itertools.product(formats, repeat=count)):
        register_bwd_op_impl(function, [grad], grad_inputs, [storage] * count)(_backward)


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


for _storage in STORAGES:
    register_pointwise(_storage)
