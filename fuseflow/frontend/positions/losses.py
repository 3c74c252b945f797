"""Losses and distances, as PyTorch's formulas without the operators that have no Einsum form.

A class that is known, as the target of a cross entropy, selects a column of the logarithms.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.fx import Node

from fuseflow.frontend.positions.selections import Call, Handler, described

aten = torch.ops.aten
_NONE, _MEAN = 0, 1
"""The numbers that stand for reductions in ATen. The third one is a sum."""


def _reduced(x: Tensor, reduction: int) -> Tensor:
    return x if reduction == _NONE else x.mean() if reduction == _MEAN else x.sum()


def _binary_cross_entropy_with_logits(
    x: Tensor, y: Tensor, weight: Tensor | None = None, positive: Tensor | None = None, reduction: int = _MEAN
) -> Tensor:
    softened = torch.log(1 + torch.exp(-x.abs())) + torch.relu(-x)
    loss = (1 - y) * x + (softened if positive is None else (1 + (positive - 1) * y) * softened)
    return _reduced(loss if weight is None else loss * weight, reduction)


def _kl_div(x: Tensor, y: Tensor, reduction: int = _MEAN, *, log_target: bool = False) -> Tensor:
    if log_target:
        return _reduced(torch.exp(y) * (y - x), reduction)
    entropy = torch.where(y > 0, y * torch.log(torch.where(y > 0, y, 1.0)), 0.0)
    return _reduced(entropy - y * x, reduction)


def _bilinear(x: Tensor, y: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    left, right = x.reshape(-1, x.shape[-1]), y.reshape(-1, y.shape[-1])
    rows = torch.bmm(left.expand(weight.shape[0], *left.shape), weight).permute(1, 0, 2)  # row, output, feature of y
    z = (rows * right.unsqueeze(1)).sum(-1).reshape(*x.shape[:-1], weight.shape[0])
    return z if bias is None else z + bias


def _distance(difference: Tensor, order: float, keepdim: bool = False) -> Tensor:
    if order == 2:
        return torch.sqrt((difference * difference).sum(-1, keepdim=keepdim))
    if order == 1:
        return difference.abs().sum(-1, keepdim=keepdim)
    if order == float("inf"):
        return difference.abs().amax(-1, keepdim=keepdim)
    return torch.pow(torch.pow(difference.abs(), order).sum(-1, keepdim=keepdim), 1 / order)


def _cdist(x: Tensor, y: Tensor, p: float = 2, *_: Any) -> Tensor:
    return _distance(x.unsqueeze(-2) - y.unsqueeze(-3), p)


def _pairwise_distance(x: Tensor, y: Tensor, p: float = 2, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    return _distance(x - y + eps, p, keepdim)


LOSS_DECOMPOSITIONS: dict[object, tuple[str, Callable[..., Any]]] = {
    aten.binary_cross_entropy_with_logits.default: ("bce", _binary_cross_entropy_with_logits),
    aten.kl_div.default: ("kl_div", _kl_div),
    aten.bilinear.default: ("bilinear", _bilinear),
    aten.cdist.default: ("cdist", _cdist),
    aten.pairwise_distance.default: ("distance", _pairwise_distance),
}
"""Operators that become several Einsums, with the prefix of their names."""


def _cross_entropy(call: Call, x: Node, *others: Any) -> Node | None:
    logarithms = call.computed(aten.log_softmax.int, x, min(1, described(x).dim() - 1))
    return _picked(call, logarithms, *others)


def _picked(
    call: Call,
    logarithms: Node,
    target: Any,
    weight: Any = None,
    reduction: int = _MEAN,
    ignored: int = -100,
    smoothing: float = 0.0,
) -> Node | None:
    """Return the loss of rows of logarithms, where each row has a known class: minus the logarithm there, weighed by class. A
    part of the weight, the `smoothing`, is shared by all classes."""
    if described(target).is_floating_point():
        return None
    if described(logarithms).dim() > 2:  # a picture of classes is a batch of pixels
        logarithms = call.computed(_classes_last, logarithms)
    classes, shaped = call.selections.known(target), described(logarithms)
    weights = torch.ones(shaped.shape[-1])
    if weight is not None:
        argument = call.selections.traced.arguments.get(weight)
        if argument is None or argument.tensor.is_meta:
            return None
        weights = argument.tensor
    if classes is None:
        return None if smoothing else _picked_by_data(call, logarithms, target, weights, reduction, ignored)
    classes = classes.reshape(-1)
    rows = (classes != ignored).nonzero().reshape(-1)
    values = -weights[classes[rows]].to(shaped.dtype)
    total = -values.sum() if reduction == _MEAN else torch.ones(())
    count, width = classes.shape[0], shaped.shape[-1]
    places, columns, entries = rows, classes[rows], (1 - smoothing) * values / total
    if smoothing:
        places = torch.cat((places, rows.repeat_interleave(width)))
        columns = torch.cat((columns, torch.arange(width).repeat(len(rows))))
        shared = -weights.to(shaped.dtype).repeat(len(rows)) * smoothing / width / total
        entries = torch.cat((entries, shared))
    matrix = call.matrix(places, columns, entries, (count, width), "target")
    logarithms = call.computed(aten.reshape.default, logarithms, [count, -1])
    products = call.computed(aten.mul.Tensor, matrix, logarithms)
    if reduction == _NONE:
        summed = call.computed(aten.sum.dim_IntList, products, [1])
        return call.computed(aten.reshape.default, summed, list(described(call.node).shape))
    return call.computed(aten.sum.default, products)


def _classes_last(x: Tensor) -> Tensor:
    """Return x as a matrix: the classes, which are dimension 1, are its columns, and all other dimensions its rows."""
    return x.movedim(1, -1).reshape(-1, x.shape[1])


def _picked_by_data(call: Call, logarithms: Node, target: Node, weights: Tensor, reduction: int, ignored: int) -> Node:
    """Return the loss where the classes are data. One that is ignored has the weight 0, if it is a class at all."""
    classes = torch.arange(len(weights))
    counted = torch.where(classes == ignored, 0, weights).to(described(logarithms).dtype)
    places = call.counted(len(weights), described(target).dtype)
    weight = call.argument("weight", counted)
    return call.computed(picked_loss, logarithms, target, places, weight, reduction)


def picked_loss(logarithms: Tensor, target: Tensor, places: Tensor, weight: Tensor, reduction: int) -> Tensor:
    """Return minus the logarithms at the target's classes, weighed by class, and summed up or averaged over the weights, or
    neither, as `reduction` says. `places` counts the classes from 0."""
    weights = torch.where(target.reshape(-1, 1) == places, weight, 0.0)
    losses = -(weights * logarithms.reshape(-1, places.shape[0])).sum(1)
    if reduction == _NONE:
        return losses.reshape(target.shape)
    return losses.sum() / weights.sum() if reduction == _MEAN else losses.sum()


LOSSES: dict[str, Handler] = {"cross_entropy_loss": _cross_entropy, "nll_loss": _picked, "nll_loss_nd": _picked}
"""The replacement of each operator, by its name."""
