"""Operators along dimensions whose weights, or whose kept elements, are known: products with known matrices, and masks.

A cumulative sum is a product with a triangular matrix of ones, and an enlargement of a picture one with a matrix for each dimension. The
matrix is what PyTorch computes of the rows of the identity, so that no rule of an operator is written twice. A cumulative extreme is a
reduction over a triangle. Triangles, diagonals and masks of attention keep the elements of a tensor at known places of two dimensions.

The inverse of a triangular matrix is made in levels: from the inverses of its blocks of k rows along the diagonal follow those of 2 k rows.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from math import inf, prod
from typing import Any

import torch
from torch import Tensor
from torch.fx import Node

from fuseflow.frontend.linalg.generic import MAX_WINDOW
from fuseflow.frontend.positions.selection_operators import product_along
from fuseflow.frontend.positions.selections import Call, Handler, described
from fuseflow.frontend.trace import fx_origin
from fuseflow.frontend.trace.dependence import schema_arguments


def _along_one(call: Call, x: Node, *_: Any, **options: Any) -> Node | None:
    """Return the replacement of an operator along the dimension that it names, such as `cumsum(x, dim)`."""
    shaped, dtype = described(x), described(call.node).dtype
    if shaped.dim() == 0 or "out" in options:
        return None
    arguments: dict[str, Any] = {
        argument.name: value for argument, value in schema_arguments(call.node) if argument.name != "self"
    }
    dim = arguments["dim"] % shaped.dim()
    if dtype != shaped.dtype:  # it converts first
        x = call.computed(torch.Tensor.to, x, dtype)
    identity = torch.eye(shaped.shape[dim], dtype=dtype)
    matrix: Tensor = call.node.target(identity, **(arguments | {"dim": 1}))  # type: ignore[operator]
    return _product(call, x, dim, matrix.t())


def _along_last(call: Call, x: Node, *given: Any, **_: Any) -> Node | None:
    """Return the replacement of an operator behind batch and channels whose weights along each dimension add up to 1."""
    shaped, result = described(x), described(call.node)
    if not shaped.is_floating_point() or any(isinstance(argument, Node) for argument in given):
        return None
    rank = _rank(call.node)
    for dim in range(shaped.dim() - rank, shaped.dim()):
        if shaped.shape[dim] != result.shape[dim]:
            x = _product(call, x, dim, _interpolation(call.node, shaped, dim, rank))
    return call.reshaped(x, result.shape)


def _average(
    call: Call,
    x: Node,
    kernel: Any,
    stride: Any = (),
    padding: Any = 0,
    ceil_mode: bool = False,
    includes: bool = True,
    divisor: int | None = None,
) -> Node | None:
    """Return the replacement of an average over windows that are cut at the edges, or whose padding does not count, or that are
    large and overlap, or where some dimension has only one window. Other windows have a form of their own. The divisor of a
    window is the product of one for each dimension, unless a number is given."""
    shaped, result = described(x), described(call.node)
    rank = _rank(call.node)
    windows = list(zip(*(along_each(setting, rank) for setting in (kernel, stride or kernel, padding)), strict=True))
    dims = range(shaped.dim() - rank, shaped.dim())
    is_padded = any(around for _, _, around in windows)
    extents = [(shaped.shape[dim] + 2 * around, result.shape[dim]) for dim, (_, _, around) in zip(dims, windows, strict=True)]
    has_rest = any(count == 1 and extent > size for (extent, count), (size, _, _) in zip(extents, windows, strict=True))
    is_large = prod(size for size, _, _ in windows) > MAX_WINDOW and any(step < size for size, step, _ in windows)
    if not (ceil_mode or has_rest or is_large or (is_padded and not includes)) or not shaped.is_floating_point():
        return None
    for n, (dim, (size, step, around)) in enumerate(zip(dims, windows, strict=True)):
        if (size, step, around) == (1, 1, 0) and (n or divisor is None):
            continue
        identity = torch.eye(shaped.shape[dim], dtype=torch.float64).unsqueeze(0)
        weights = torch.nn.functional.avg_pool1d(identity, size, step, around, bool(ceil_mode), bool(includes))[0].t()
        if divisor is not None:
            weights = (weights != 0) / (divisor if n == 0 else 1)
        x = _product(call, x, dim, weights.to(shaped.dtype))
    return call.reshaped(x, result.shape)


def along_each(setting: int | Sequence[int], rank: int) -> list[int]:
    """Return a setting along each dimension. PyTorch takes one number for all of them."""
    numbers = [setting] if isinstance(setting, int) else list(setting)
    return numbers * rank if len(numbers) == 1 else numbers


def _interpolation(node: Node, shaped: Tensor, dim: int, rank: int) -> Tensor:
    """Return the weights of an operator along one dimension: its result for one row of the identity in each channel, which is the
    same everywhere along the other dimensions."""
    extent, sizes = shaped.shape[dim], tuple(shaped.shape[-rank:])
    across = [1] * rank
    across[dim - (shaped.dim() - rank)] = extent
    channels = torch.eye(extent, dtype=shaped.dtype).reshape(1, extent, *across).expand(1, extent, *sizes).contiguous()
    weights: Tensor = node.target(channels, *node.args[1:], **node.kwargs)  # type: ignore[operator]
    others = [d for d in range(2, 2 + rank) if d != 2 + dim - (shaped.dim() - rank)]
    for d in reversed(others):
        weights = weights.select(d, 0)
    return weights[0].t()


def _rank(node: Node) -> int:
    """Return how many dimensions stand behind batch and channels, as the name of the operator says."""
    return int(next(digit for digit in reversed(_name(node)) if digit.isdecimal()))


def _product(call: Call, x: Node, dim: int, matrix: Tensor) -> Node:
    rows, columns = matrix.nonzero(as_tuple=True)
    extents = (matrix.shape[0], matrix.shape[1])
    weights = call.matrix(rows, columns, matrix[rows, columns], extents, _name(call.node))
    return call.computed(product_along, weights, x, dim)


def _name(node: Node) -> str:
    return fx_origin.short_name(node.target).rstrip("_")


def masked(mask: Tensor, x: Tensor) -> Tensor:
    """Return x where the mask is true, and else 0."""
    return torch.where(mask, x, 0.0)


def _triangle(call: Call, x: Node, diagonal: int = 0) -> Node | None:
    shaped = described(x)
    if not shaped.is_floating_point():
        return None
    whole = torch.ones(shaped.shape[-2:], dtype=torch.bool)
    cut = torch.tril if fx_origin.short_name(call.node.target).startswith("tril") else torch.triu
    mask = call.mask(cut(whole, diagonal), "triangle")
    return call.computed(masked, mask, x)


def diagonal_of(call: Call, x: Node, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Node | None:
    """Return the replacement of a diagonal of two dimensions of x, which becomes the last dimension."""
    shaped = described(x)
    first, second = dim1 % shaped.dim(), dim2 % shaped.dim()
    if not shaped.is_floating_point():
        return None
    rows, columns = shaped.shape[first], shaped.shape[second]
    places = torch.arange(rows * columns).reshape(rows, columns).diagonal(offset)
    others = [d for d in range(shaped.dim()) if d not in (first, second)]
    outer = tuple(shaped.shape[d] for d in others)
    x = call.computed(torch.ops.aten.permute.default, x, [*others, first, second])
    return call.gathered(call.reshaped(x, (*outer, rows * columns)), len(outer), places)


def _diag(call: Call, x: Node, diagonal: int = 0) -> Node | None:
    if described(x).dim() == 2:
        return diagonal_of(call, x, diagonal)
    return _diag_embed(call, x) if diagonal == 0 else None


def _diag_embed(call: Call, x: Node, *others: Any) -> Node | None:
    """Return the replacement of matrices with the last dimension of x on their diagonals."""
    shaped = described(x)
    if others or not shaped.is_floating_point():
        return None
    extent = shaped.shape[-1]
    mask = call.mask(torch.eye(extent, dtype=torch.bool), "diagonal")
    column = call.computed(torch.ops.aten.unsqueeze.default, x, -1)
    return call.computed(masked, mask, column)


def _trace(call: Call, x: Node) -> Node | None:
    diagonal = diagonal_of(call, x)
    return None if diagonal is None else call.computed(torch.ops.aten.sum.default, diagonal)


def _attention(
    call: Call,
    query: Node,
    key: Node,
    value: Node,
    mask: Node | None = None,
    dropout: float = 0.0,
    causal: bool = False,
    **others: Any,
) -> Node | None:
    """Return attention with a mask that stores only the positions that are attended to, in place of the flag, or of a known mask that
    is mostly false."""
    extents = (described(query).shape[-2], described(key).shape[-2])
    if mask is None and causal:
        mask = call.mask(torch.ones(extents, dtype=torch.bool).tril(), "causal")
    elif mask is not None and not causal:
        mask = _sparse_mask(call, mask, extents)
    else:
        return None
    return mask and call.valued(described(call.node), call.node.target, query, key, value, mask, dropout, False, **others)


def _sparse_mask(call: Call, mask: Node, extents: tuple[int, int]) -> Node | None:
    """Return an argument that stores the true places of a mask of queries and keys, or None unless its numbers are known, and most are
    false, or all of a row."""
    known = call.selections.known(mask)
    if known is None or known.dtype != torch.bool:
        return None
    places = known | torch.zeros(extents, dtype=torch.bool)
    if 2 * int(places.sum()) >= places.numel() and bool(places.any(-1).all()):
        return None
    return _stored(call, mask, places)


def _stored(call: Call, mask: Node, places: Tensor, block: Sequence[int] = ()) -> Node:
    """Return an argument that stores the true `places` of a known mask. It is the mask itself if that is an argument."""
    if mask in call.selections.traced.arguments and not block:
        return call.selections.in_rows(mask)
    for dim in range(places.dim() - 2):
        if bool((places == places.narrow(dim, 0, 1)).all()):
            places = places.narrow(dim, 0, 1)
    if prod(places.shape[:-2]) == 1:
        places = places.reshape(places.shape[-2:])
    return call.mask(places, "mask", block)


def scores_where(scores: Tensor, mask: Tensor) -> Tensor:
    """Return scores with -inf where a mask is false."""
    return torch.where(mask, scores, -inf)


def _masked_scores(call: Call, scores: Node, mask: Node, block: Sequence[int]) -> Node:
    """Return the scores of FlexAttention with -inf where its mask is false. A mask whose numbers are known is stored in its blocks."""
    known = call.selections.known(mask)
    if known is None:
        return call.computed(scores_where, scores, mask)
    if bool(known.all()):
        return scores
    return call.computed(scores_where, scores, _stored(call, mask, known.expand(described(scores).shape), block))


def scanned_along(x: Tensor, triangle: Tensor, dim: int, reduction: str) -> Tensor:
    """Return, as `reduction` says, the products, the largest or the smallest of the elements along `dim` up to each of them, or
    the logarithm of the sum of their exponentials. `triangle[i, j]` is true where j is not behind i."""
    rows = x.movedim(dim, -1).unsqueeze(-2)
    match reduction:
        case "cumprod":
            result = torch.where(triangle, rows, 1.0).prod(-1)
        case "cummax":
            result = torch.where(triangle, rows, float("-inf")).amax(-1)
        case "cummin":
            result = torch.where(triangle, rows, float("inf")).amin(-1)
        case "logcumsumexp":
            largest = torch.where(triangle, rows, float("-inf")).amax(-1, keepdim=True)
            result = torch.where(triangle, torch.exp(rows - largest), 0.0).sum(-1).log() + largest.squeeze(-1)
        case _:
            raise AssertionError(reduction)
    return result.movedim(-1, dim)


def _scan(call: Call, x: Node, dim: int, *, dtype: torch.dtype | None = None) -> Node | None:
    """Return the reduction of all elements up to each one, as a reduction over a triangle."""
    shaped, name = described(x), fx_origin.short_name(call.node.target)
    if not shaped.is_floating_point() or shaped.dim() == 0 or dtype is not None:
        return None
    dim %= shaped.dim()
    extent = shaped.shape[dim]
    triangle = call.mask(torch.ones(extent, extent, dtype=torch.bool).tril(), "triangle")
    arguments = (x, triangle, dim, name)
    if name in ("cumprod", "logcumsumexp"):
        return call.computed(scanned_along, *arguments)
    values = [user for user in call.node.users if user.target is operator.getitem]
    if any(user.args[1] == 1 and user.users for user in values):  # the positions are read
        return None
    for user in values:
        user.replace_all_uses_with(call.computed(scanned_along, *arguments))
    return None


_INTERPOLATIONS = (
    "adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d upsample_nearest1d upsample_nearest2d upsample_nearest3d "
    "upsample_linear1d upsample_bilinear2d upsample_trilinear3d upsample_bicubic2d _upsample_nearest_exact1d "
    "_upsample_nearest_exact2d _upsample_nearest_exact3d _upsample_bilinear2d_aa _upsample_bicubic2d_aa"
)
KNOWN_MATRICES: dict[str, Handler] = {
    **dict.fromkeys(("cumsum", "diff"), _along_one),
    **dict.fromkeys(_INTERPOLATIONS.split(), _along_last),
    **dict.fromkeys(("avg_pool1d", "avg_pool2d", "avg_pool3d"), _average),
    **dict.fromkeys(("tril", "triu"), _triangle),
    **dict.fromkeys(("diagonal", "linalg_diagonal"), diagonal_of),
    "diag": _diag,
    "diag_embed": _diag_embed,
    "trace": _trace,
    "scaled_dot_product_attention": _attention,
    "masked_scores": _masked_scores,
    **dict.fromkeys(("cumprod", "cummax", "cummin", "logcumsumexp"), _scan),
}
"""The replacement of each operator, by its name."""


def _solve_triangular(
    call: Call, matrix: Node, known: Node, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Node | None:
    """Return the X of `matrix @ X = known`, or of `X @ matrix = known` if not `left`. Only one triangle of the matrix is read."""
    size, dtype = described(matrix).shape[-1], described(matrix).dtype
    if not dtype.is_floating_point:
        return None
    if not left:
        matrix, known, upper = call.computed(_transposed, matrix), call.computed(_transposed, known), not upper
    if not unitriangular:
        divisor = call.computed(torch.unsqueeze, diagonal_of(call, matrix, 0, -2, -1), -1)
        matrix, known = (call.computed(torch.div, operand, divisor) for operand in (matrix, known))
    places = torch.arange(size)
    inverse: Node | None = None
    for level in range((size - 1).bit_length()):
        block = places >> level
        below = (block[:, None] % 2 == 1) & (block[:, None] == block + 1)
        corners = call.computed(masked, call.mask(below.t() if upper else below, "corners"), matrix)
        if inverse is None:
            inverse = call.matrix(places, places, torch.ones(size, dtype=dtype), (size, size), "identity")
        else:
            corners = call.computed(torch.matmul, call.computed(torch.matmul, inverse, corners), inverse)
        inverse = call.computed(torch.sub, inverse, corners)
    solution = known if inverse is None else call.computed(torch.matmul, inverse, known)
    return solution if left else call.computed(_transposed, solution)


def _transposed(matrix: Tensor) -> Tensor:
    return matrix.transpose(-2, -1)


TRIANGULAR: dict[str, Handler] = {"linalg_solve_triangular": _solve_triangular}
"""The replacement of each operator, by its name."""
