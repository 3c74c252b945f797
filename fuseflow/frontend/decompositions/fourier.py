"""Fourier transforms along one dimension, as products with the matrix of the transform.

The matrix is what PyTorch computes of the rows of the identity, so its rules of lengths and norms are written nowhere else. The product
takes n * m multiplications where a fast transform takes n log n.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.fx import Node

from fuseflow.frontend.positions.selection_products import product_along
from fuseflow.frontend.positions.selections import Selections, described, first_operand
from fuseflow.frontend.trace.fx_origin import named
from fuseflow.frontend.trace.refusals import refusal

_MOST_ENTRIES = 1 << 22
_LEAST_ENTRY = 1e-12
"""Relative to the largest entry of a matrix. A smaller entry is a zero that PyTorch rounded: n entries lie on a circle, so that
other entries are as small only from n = 10^12 on."""

aten = torch.ops.aten


@dataclass(frozen=True, slots=True)
class Transform:
    """A transform along one dimension: the operator, how many elements of that dimension it takes (None for all), and its
    norm."""

    operator: Any
    length: int | None
    dim: int
    norm: str | None

    def matrix(self, extent: int, unit: complex) -> Tensor:
        """Return the matrix of the transform of `extent` numbers that are real, times `unit`: 1, or 1j for imaginary parts."""
        takes_real = self.operator in (aten.fft_rfft.default, aten.fft_ihfft.default)
        identity = torch.eye(extent, dtype=torch.float64)
        result: Tensor = self.operator(identity if takes_real else identity * unit, self.length, 1, self.norm)
        return result.t()


_ONE_DIMENSION = {
    name: getattr(aten, name).default for name in ("fft_fft", "fft_ifft", "fft_rfft", "fft_irfft", "fft_hfft", "fft_ihfft")
}
_SEVERAL_DIMENSIONS = {
    **{f"fft_{name}{suffix}": name for name in ("fft", "ifft", "rfft", "irfft") for suffix in ("n", "2")},
}
TRANSFORMS = frozenset((*_ONE_DIMENSION, *_SEVERAL_DIMENSIONS))
"""The names of the operators that are transforms."""


def transforms(node: Node, name: str) -> list[Transform]:
    """Return the transforms along single dimensions that an operator of this name is made of, in order."""
    rank = described(first_operand(node)).dim()
    options: list[Any] = [*node.args[1:], None, None, None]
    sizes, dims, norm, *_ = options
    if name in _ONE_DIMENSION:
        return [Transform(_ONE_DIMENSION[name], sizes, (-1 if dims is None else dims) % rank, norm)]
    kind = _SEVERAL_DIMENSIONS[name]
    if dims is None and name.endswith("2"):
        dims = [-2, -1]
    if dims is None:
        dims = list(range(rank if sizes is None else len(sizes)))
        dims = [d - len(dims) for d in dims]
    lengths = [None if size == -1 else size for size in sizes] if sizes is not None else [None] * len(dims)
    steps = [(dim % rank, length) for dim, length in zip(dims, lengths, strict=True)]
    others = aten.fft_fft.default if kind in ("fft", "rfft") else aten.fft_ifft.default
    whole = [Transform(others, length, dim, norm) for dim, length in steps[:-1]]
    last = Transform(_ONE_DIMENSION[f"fft_{kind}"], steps[-1][1], steps[-1][0], norm)
    return [last, *whole] if kind == "rfft" else [*whole, last]


def transformed(
    selections: Selections, node: Node, transform: Transform, real: Node, imaginary: Node | None
) -> list[Node | None]:
    """Return the real and the imaginary part of a transform of numbers with the parts `real` and `imaginary`. The latter is None
    where all are real. Raise `FrontendError` if the matrix is too large."""
    parts: list[Node | None] = [None, None]
    for x, unit in ((real, 1), (imaginary, 1j)):
        if x is not None:
            extent = described(x).shape[transform.dim]
            if extent * (transform.length or extent) > _MOST_ENTRIES:
                message = f"`{node.target}` of {extent} elements would be a product with a matrix of {extent}^2 entries"
                raise refusal(node, message, "transform it outside the model, and pass the result as an argument")
            matrix = transform.matrix(extent, unit)
            sides = (matrix.real, matrix.imag) if matrix.is_complex() else (matrix,)
            for side, weights in enumerate(sides):
                parts[side] = _sum(selections, node, parts[side], _product(selections, node, x, transform.dim, weights))
    return parts


def _product(selections: Selections, node: Node, x: Node, dim: int, weights: Tensor) -> Node:
    rows, columns = (weights.abs() > _LEAST_ENTRY * weights.abs().max()).nonzero(as_tuple=True)
    entries = weights[rows, columns].to(described(x).dtype)
    shape = (weights.shape[0], weights.shape[1])
    matrix = selections.matrix(rows, columns, entries, shape, named(node, "transform"))
    return selections.computed(node, product_along, (matrix, x, dim))


def _sum(selections: Selections, node: Node, x: Node | None, y: Node) -> Node:
    return y if x is None else selections.computed(node, aten.add.Tensor, (x, y))
