"""Softmax, its logarithm, the logarithm of a sum of exponentials, and attention: formulas, and gradients that read the result.

The formulas subtract a maximum, which changes no result. So the gradients do without it.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from fuseflow.errors import FrontendError
from fuseflow.frontend.derivatives.rule import Gradients, Rule, given

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
    gradient, probabilities = given(gradients[0]), results[0]
    return (_cast(softmax_gradient(gradient, probabilities, dim), x.dtype),)


def _of_log_softmax(
    gradients: Gradients, results: tuple[Tensor, ...], x: Tensor, dim: int, *_: object, **__: object
) -> Gradients:
    gradient, logarithms = given(gradients[0]), results[0]
    return (_cast(gradient - torch.exp(logarithms) * gradient.sum(dim, keepdim=True), x.dtype),)


def _of_logsumexp(
    gradients: Gradients, results: tuple[Tensor, ...], x: Tensor, dim: list[int], keepdim: bool = False
) -> Gradients:
    gradient, total = given(gradients[0]), results[0]
    if not keepdim:
        shape = [1 if d in {n % x.dim() for n in dim} else size for d, size in enumerate(x.shape)]
        gradient, total = gradient.reshape(shape), total.reshape(shape)
    return (gradient * torch.exp(x - total),)


def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None = None,
    dropout: float = 0.0,
    causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """Compute scaled dot product attention. PyTorch's decomposition uses `_safe_softmax`, whose and-reduction over booleans has no
    Einsum form."""
    if causal or dropout:
        option = "is_causal beside a mask" if causal else "dropout"
        raise FrontendError(f"scaled_dot_product_attention with {option} has no Einsum form", hint="pass one mask as a tensor")
    if enable_gqa:
        k, v = _repeated_heads(k, q.shape[-3]), _repeated_heads(v, q.shape[-3])
    return _probabilities(q, k, mask, scale) @ v


def _probabilities(q: Tensor, k: Tensor, mask: Tensor | None, scale: float | None) -> Tensor:
    scores = (q @ k.transpose(-1, -2)) * _factor(q, scale)
    if mask is not None:
        scores = torch.where(mask, scores, -math.inf) if mask.dtype == torch.bool else scores + mask
    return softmax(scores, -1)


def _factor(q: Tensor, scale: float | None) -> float:
    return q.shape[-1] ** -0.5 if scale is None else scale


def _repeated_heads(x: Tensor, heads: int) -> Tensor:
    """Repeat each head for the heads of queries that share it."""
    times = heads // x.shape[-3]
    repeated = x.unsqueeze(-3).expand(*x.shape[:-2], times, *x.shape[-2:])
    return repeated.reshape(*x.shape[:-3], heads, *x.shape[-2:])


def _of_attention(
    gradients: Gradients,
    _: tuple[Tensor, ...],
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None = None,
    dropout: float = 0.0,
    causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Gradients:
    """Return the gradients. The probabilities are computed as in `attention`."""
    (gradient,) = gradients
    assert gradient is not None and not causal and not dropout
    keys, values = (_repeated_heads(x, q.shape[-3]) for x in (k, v)) if enable_gqa else (k, v)
    probabilities = _probabilities(q, keys, mask, scale)
    of_scores = softmax_gradient(gradient @ values.transpose(-1, -2), probabilities, -1)
    of_products = of_scores * _factor(q, scale)
    result: list[Tensor | None] = [
        (of_products @ keys).sum_to_size(q.shape),
        _of_shared_heads(of_products.transpose(-1, -2) @ q, k),
        _of_shared_heads(probabilities.transpose(-1, -2) @ gradient, v),
    ]
    if mask is not None:
        result.append(of_scores.sum_to_size(mask.shape) if mask.is_floating_point() else None)
    return tuple(result)


def _of_shared_heads(gradient: Tensor, x: Tensor) -> Tensor:
    """Return the gradient of keys or values from that of their repetition for all heads of queries."""
    if gradient.dim() > 2 and 1 < x.shape[-3] < gradient.shape[-3]:
        times = gradient.shape[-3] // x.shape[-3]
        *outer, _, length, width = gradient.shape
        gradient = gradient.reshape(*outer, x.shape[-3], times, length, width).sum(-3)
    return gradient.sum_to_size(x.shape)


SOFTMAX_RULES: dict[Any, Rule] = {
    aten.scaled_dot_product_attention.default: _of_attention,
    **dict.fromkeys((aten.softmax.int, aten._softmax.default, aten._safe_softmax.default), _of_softmax),
    **dict.fromkeys((aten.log_softmax.int, aten._log_softmax.default), _of_log_softmax),
    aten.logsumexp.default: _of_logsumexp,
}
