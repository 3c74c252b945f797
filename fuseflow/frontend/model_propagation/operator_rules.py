"""The rules of PyTorch's own operators. Importing this file registers them.

Operators that PyTorch calls pointwise need none, so that `relu` and `cos` are not here: a known entry of an operand is a known
entry of the result, whose value is computed by running them. Norms and attention are not here either, since they are decomposed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from fuseflow.frontend.model_propagation.dependence_rules import Known, Rule, add_rule, entrywise, everything
from fuseflow.frontend.model_propagation.dependence_rules import register_rule as register_rule  # a user's rules come after these
from fuseflow.frontend.positions.linear_operators import along_each
from fuseflow.sparsity.keep_operator import keep, masked

LINEAR = (
    *("view", "_unsafe_view", "reshape", "permute", "transpose", "t", "expand", "squeeze", "unsqueeze", "slice", "select"),
    *("split", "split_with_sizes", "unbind", "cat", "stack", "flip", "roll", "repeat", "diagonal", "diag_embed", "unfold"),
    *("tril", "triu", "alias", "detach", "slice_scatter", "select_scatter", "diagonal_scatter"),
    *("sum", "mean", "cumsum", "trace", "avg_pool1d", "avg_pool2d", "avg_pool3d", "adaptive_avg_pool1d"),
    *("_adaptive_avg_pool2d", "_adaptive_avg_pool3d", "reflection_pad1d", "reflection_pad2d", "reflection_pad3d"),
    *("replication_pad1d", "replication_pad2d", "replication_pad3d", "im2col", "col2im", "pixel_shuffle", "pixel_unshuffle"),
    *("upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d", "upsample_linear1d", "upsample_bilinear2d"),
)
"""Operators whose results are sums of entries with positive weights, or entries themselves."""

PRODUCTS = {
    "mm": ("self", "mat2"),
    "bmm": ("self", "mat2"),
    "matmul": ("self", "other"),
    "mv": ("self", "vec"),
    "dot": ("self", "tensor"),
    "addmm": ("mat1", "mat2"),
    "_sparse_addmm": ("mat1", "mat2"),
    "addmv": ("mat", "vec"),
    "baddbmm": ("batch1", "batch2"),
    "linear": ("input", "weight"),
    "convolution": ("input", "weight"),
}
"""Operators whose results are sums of products of two arguments, with the names of these."""

SELECTIONS = {
    **dict.fromkeys(("index", "index_put"), "indices"),
    **dict.fromkeys(("index_select", "index_add", "index_copy", "gather", "take", "scatter_add"), "index"),
}
"""Operators that move entries from places or to places, with the name of the argument that says where."""

ALONG = {
    **dict.fromkeys(("_softmax", "_log_softmax", "sort", "cumprod", "cummax", "cummin", "logcumsumexp"), 1),
    **dict.fromkeys(("amax", "amin", "argmax", "argmin", "logsumexp", "mode", "prod.dim_int", "median.dim"), 1),
    **dict.fromkeys(("any.dim", "any.dims", "all.dim", "all.dims", "max.dim", "min.dim"), 1),
    **dict.fromkeys(("var.correction", "std.correction", "var_mean.correction", "std_mean.correction"), 1),
    **dict.fromkeys(("topk", "kthvalue", "linalg_vector_norm"), 2),
}
"""Operators whose results depend on whole rows, with the position of the argument that says along which dimensions these go."""

ENTRYWISE = ("_to_copy", "lift_fresh_copy", "lift_fresh")
"""Operators on single entries that PyTorch does not call pointwise."""

SHAPED_LIKE = ("full_like", "zeros_like", "ones_like", "empty_like", "new_zeros", "new_ones", "new_full", "new_empty")
"""Operators that take the shape of a tensor, and none of its entries."""


def _along(position: int) -> Callable[..., Tensor]:
    """Return a stand-in that sums up rows. The dimensions of a row are the argument at this position."""

    def stand_in(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        dims = args[position - 1]
        return x.sum() if dims is None or dims == [] or not x.dim() else x.sum(dims, keepdim=True)

    return stand_in


def _product(*args: Any, **kwargs: Any) -> Tensor:
    """Multiply the tensors among the arguments. Numbers are left out, since they may be negative."""
    return prod((a for a in args if isinstance(a, Tensor)), start=torch.ones(()))


def _no_entry(*args: Any, **kwargs: Any) -> Tensor:
    return torch.zeros(())


def _register_table() -> None:
    for name in LINEAR:
        add_rule(f"aten.{name}", Rule())
    for name, factors in PRODUCTS.items():
        add_rule(f"aten.{name}", Rule(factors=frozenset(factors)))
    for name in ("mul", "logical_and", "bitwise_and"):
        add_rule(f"aten.{name}", Rule(_product, factors=frozenset(("self", "other"))))
    for name, selector in SELECTIONS.items():
        add_rule(f"aten.{name}", Rule(selectors=frozenset((selector,))))
    for name, position in ALONG.items():
        add_rule(f"aten.{name}", Rule(_along(position)))
    for name in ENTRYWISE:
        add_rule(f"aten.{name}", Rule(entrywise))
    for name in SHAPED_LIKE:
        add_rule(f"aten.{name}", Rule(_no_entry))


_register_table()


# What constants decide --------------------------------------------------------------------------------------------------------


def _infinite(x: Known, y: Known | float, **kwargs: Any) -> Known:
    """Return which entries of a sum are known because an operand is known to be infinite: a masked score stays masked."""
    if not isinstance(y, Known):
        return Known.nothing(x.mask.shape, x.value.dtype)
    total = x.value + y.value
    return Known.where(x.value.isinf() | y.value.isinf(), total)


def _masked(x: Known, dim: int, *args: Any) -> Known:
    """Return which entries of a softmax are known: a known minus infinity becomes 0. A row of nothing else is known anyway."""
    return Known.where(x.mask & (x.value == -torch.inf), torch.zeros_like(x.value))


def _zeros_stay(x: Known, *args: Any) -> Known:
    """Return which entries are known after a rule of an intermediate: a zero stays 0 whether the rule keeps it or not."""
    return Known.where(x.mask & (x.value == 0), x.value)


def _equal_branches(condition: Known, x: Known, y: Known) -> Known:
    """Return where the two branches of a choice are known to be equal: the result is known there."""
    equal = x.mask & y.mask & (x.value == y.value)
    value = torch.where(condition.value, x.value, y.value)
    return Known.where(equal.expand(value.shape), value)


add_rule("aten.add.Tensor", Rule(entrywise, also_known=_infinite))
assert keep is not None and masked is not None  # Rules are for operators that are there.
add_rule("fuseflow.keep", Rule(everything, also_known=_zeros_stay))
add_rule("fuseflow.masked", Rule(_product, factors=frozenset(("x", "mask"))))
add_rule("aten._softmax", Rule(_along(1), also_known=_masked))
add_rule("aten.where.self", Rule(selectors=frozenset(("condition",)), otherwise=entrywise, also_known=_equal_branches))


# Padding, gathering, pooling --------------------------------------------------------------------------------------------------


@register_rule("aten.constant_pad_nd")
def _pad(x: Tensor, pad: Sequence[int], value: float = 0) -> Tensor:
    return F.pad(x, pad)


@register_rule("aten.scatter.value", selectors=("index",))
def _scatter_number(x: Tensor, dim: int, index: Tensor, value: float) -> Tensor:
    return torch.scatter(x, dim, index, 0.0)


@register_rule("aten.scatter.src", selectors=("index",))
def _scatter(x: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """Scatter only the part of the source within the extents of the index: PyTorch has no derivative otherwise."""
    return torch.scatter(x, dim, index, source[tuple(slice(extent) for extent in index.shape)])


def _any_row(weight: Tensor, indices: Tensor, *args: Any) -> Tensor:
    return weight.sum(0) + indices.unsqueeze(-1)


@register_rule("aten.embedding", selectors=("indices",), otherwise=_any_row)
def _rows(weight: Tensor, indices: Tensor, *args: Any) -> Tensor:
    """Take rows as an embedding, but without its index of padding, whose row gets no gradient although it is read."""
    return weight[indices]


@register_rule("aten.adaptive_max_pool2d")
def _adaptive_max_pool2d(x: Tensor, size: Sequence[int]) -> Tensor:
    return F.adaptive_avg_pool2d(x, (size[0], size[1]))


def _windows(
    x: Tensor, kernel: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False, *, rank: int
) -> Tensor:
    """Sum up windows of the last `rank` dimensions. The derivative of a maximum itself would say that one entry alone is needed."""
    kernel, padding, dilation = (along_each(each, rank) for each in (kernel, padding, dilation))
    stride = along_each(stride, rank) if stride else kernel
    extents = x.shape[-rank:]
    margins = []
    for length, k, s, p, d in reversed(list(zip(extents, kernel, stride, padding, dilation, strict=True))):
        span = d * (k - 1) + 1
        steps = (length + 2 * p - span + (s - 1 if ceil_mode else 0)) // s
        steps -= ceil_mode and steps * s >= length + p  # The last window must begin inside.
        margins += [p, steps * s + span - length - p]
    images = F.pad(x, margins).reshape(
        -1, 1, *(e + a + b for e, a, b in zip(extents, margins[-2::-2], margins[::-2], strict=True))
    )
    convolve = F.conv2d if rank == 2 else F.conv3d
    sums = convolve(images, torch.ones(1, 1, *kernel), stride=stride, dilation=dilation)
    return sums.reshape(*x.shape[:-rank], *sums.shape[-rank:])


register_rule("aten.max_pool2d_with_indices")(partial(_windows, rank=2))
register_rule("aten.max_pool3d_with_indices")(partial(_windows, rank=3))
