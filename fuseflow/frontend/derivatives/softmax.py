"""Softmax, its logarithm, and the logarithm of a sum of exponentials: formulas, and gradients that read the result.

The formulas subtract a maximum, which changes no result. So the gradients do without it.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from fuseflow.frontend.derivatives.rule import Gradients, Rule

aten = torch.ops.aten


def softmax(x: Tensor, dim: int, dtype: torch.dtype | None = None) -> Tensor:
    _, exponentials, total = _shifted_exponentials(_cast(x, dtype), dim)
    return exponentials / total


def log_softmax(x: Tensor, dim: int, dtype: torch.dtype | None = None) -> Tensor:
    shifted, _, total = _shifted_exponentials(_cast(x, dtype), dim)
    return shifted - torch.log(total)


def logsumexp(x: Tensor, dim: list[int], keepdim: bool = False) -> Tensor:
    maximum = torch.amax(x, dim, keepdim=True)
    maximum = torch.where(maximum.abs() == math.inf, 0.0, maximum)
    total = torch.log(torch.exp(x - maximum).sum(dim, keepdim=True)) + maximum
    return total if keepdim else total.squeeze(tuple(dim))


def _shifted_exponentials(x: Tensor, dim: int | list[int]) -> tuple[Tensor, Tensor, Tensor]:
    """Return x minus its maximum, the exponential of that, and the sum of the exponentials."""
    shifted = x - torch.amax(x, dim, keepdim=True)
    exponentials = torch.exp(shifted)
    return shifted, exponentials, exponentials.sum(dim, keepdim=True)


def _cast(x: Tensor, dtype: torch.dtype | None) -> Tensor:
    return x if dtype is None or dtype == x.dtype else x.to(dtype)


def softmax_gradient(gradient: Tensor, probabilities: Tensor, dim: int) -> Tensor:
    """Return the gradient of the scores whose softmax along `dim` are the `probabilities`. It is 0 where a probability is 0."""
    weighted = probabilities * gradient
    return weighted - probabilities * weighted.sum(dim, keepdim=True)


def _of_softmax(gradients: Gradients, results: tuple[Tensor, ...], x: Tensor, dim: int, *_: object, **__: object) -> Gradients:
    (gradient,), (probabilities,) = gradients, results
    assert gradient is not None
    return (_cast(softmax_gradient(gradient, probabilities, dim), x.dtype),)


def _of_log_softmax(
    gradients: Gradients, results: tuple[Tensor, ...], x: Tensor, dim: int, *_: object, **__: object
) -> Gradients:
    (gradient,), (logarithms,) = gradients, results
    assert gradient is not None
    return (_cast(gradient - torch.exp(logarithms) * gradient.sum(dim, keepdim=True), x.dtype),)


def _of_logsumexp(
    gradients: Gradients, results: tuple[Tensor, ...], x: Tensor, dim: list[int], keepdim: bool = False
) -> Gradients:
    (gradient,), (total,) = gradients, results
    assert gradient is not None
    if not keepdim:
        shape = [1 if d in {n % x.dim() for n in dim} else size for d, size in enumerate(x.shape)]
        gradient, total = gradient.reshape(shape), total.reshape(shape)
    return (gradient * torch.exp(x - total),)


SOFTMAX_RULES: dict[object, Rule] = {
    **dict.fromkeys((aten.softmax.int, aten._softmax.default, aten._safe_softmax.default), _of_softmax),
    **dict.fromkeys((aten.log_softmax.int, aten._log_softmax.default), _of_log_softmax),
    aten.logsumexp.default: _of_logsumexp,
}
