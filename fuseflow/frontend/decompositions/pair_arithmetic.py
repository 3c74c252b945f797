"""Arithmetic on pairs of real numbers: sums, products and quotients of complex numbers, in operators on their parts.

The product of the pairs (a, b) and (c, 0), for example, is (a c, b c): a part that is 0 is never computed with.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch.fx import Node

from fuseflow.frontend.positions.selections import Selections, described

aten = torch.ops.aten

Part: TypeAlias = Node | float | None
"""The real or the imaginary part of an operand. None is 0."""
Pair: TypeAlias = tuple[Part, Part]


@dataclass(frozen=True)
class PairArithmetic:
    """Operators on pairs of a real and an imaginary part. Calls are added where the graph inserts nodes, as parts of `node`."""

    selections: Selections
    node: Node

    # Parts ------------------------------------------------------------------------------------------------------------

    def call(self, function: Callable[..., Any], *args: Any) -> Node:
        """Add a call of a function before the node, with the origin of the node, and return it."""
        return self.selections.computed(self.node, function, args)

    def filled(self, shape: Sequence[int], number: float, dtype: torch.dtype) -> Node:
        return self.call(_filled, list(shape), number, dtype.to_real())

    def side(self, pair: Pair, side: int) -> Node:
        """Return the real part of a pair (`side` 0) or its imaginary part (1) as a tensor, which may be zeros."""
        part = pair[side]
        return part if isinstance(part, Node) else self.call(aten.zeros_like.default, pair[1 - side])

    def add(self, x: Part, y: Part) -> Part:
        return self.combine(aten.add.Tensor, x, y)

    def subtract(self, x: Part, y: Part) -> Part:
        if y is None:
            return x
        return self.negative(y) if x is None else self.combine(aten.sub.Tensor, x, y)

    def negative(self, x: Part) -> Part:
        return self.call(aten.neg.default, x) if isinstance(x, Node) else None if x is None else -x

    def multiply(self, x: Part, y: Part) -> Part:
        return None if x is None or y is None else self.combine(aten.mul.Tensor, x, y)

    def combine(self, function: Any, x: Part, y: Part) -> Part:
        """Return the result of an operator of two operands. The first may be a number, and one may be None, which is 0."""
        if x is None or y is None:
            return y if x is None else x
        if isinstance(x, Node):
            return self.call(function, x, y)
        if isinstance(y, Node):
            return self.call(function, self.call(torch.full_like, y, x), y)
        value: float = function(torch.tensor(x, dtype=torch.float64), y).item()
        return value

    # Pairs ------------------------------------------------------------------------------------------------------------

    def sum(self, x: Pair, y: Pair) -> Pair:
        return self.add(x[0], y[0]), self.add(x[1], y[1])

    def difference(self, x: Pair, y: Pair) -> Pair:
        return self.subtract(x[0], y[0]), self.subtract(x[1], y[1])

    def product(self, x: Pair, y: Pair) -> Pair:
        return self.multilinear([x, y], self.multiply)

    def multilinear(self, operands: Sequence[Pair], function: Callable[..., Part]) -> Pair:
        """Return the result of an operator that is linear in each of its operands: the sum over their parts, times a power of i."""
        sums: list[Part] = [None, None]
        for sides in itertools.product((0, 1), repeat=len(operands)):
            parts = [pair[side] for pair, side in zip(operands, sides, strict=True)]
            if any(part is None for part in parts):
                continue
            power, term = sum(sides), function(*parts)
            combine = self.subtract if power % 4 in (2, 3) else self.add
            sums[power % 2] = combine(sums[power % 2], term)
        return sums[0], sums[1]

    def quotient(self, x: Pair, y: Pair) -> Pair:
        if y[1] is not None:  # x / y is x times the conjugate of y, over the square of its magnitude
            x = self.product(x, self.conjugate(y))
            y = self._square_of_magnitude(y), None
        real, imaginary = (None if part is None else self.combine(aten.div.Tensor, part, y[0]) for part in x)
        return real, imaginary

    def reciprocal(self, x: Pair) -> Pair:
        return self.quotient((1.0, None), x)

    def power(self, base: Pair, exponent: Pair = (2, None)) -> Pair | None:
        if not isinstance(exponent[0], int) or not 1 <= exponent[0] <= 8:
            return None
        result = base
        for _ in range(exponent[0] - 1):
            result = self.product(result, base)
        return result

    def conjugate(self, x: Pair) -> Pair:
        return x[0], self.negative(x[1])

    def _square_of_magnitude(self, x: Pair) -> Part:
        return self.add(self.multiply(x[0], x[0]), self.multiply(x[1], x[1]))

    def magnitude(self, x: Pair) -> Pair:
        if x[1] is None:
            return self.call(aten.abs.default, x[0]), None
        return self.call(aten.sqrt.default, self._square_of_magnitude(x)), None

    def exponential(self, x: Pair) -> Pair:
        size = 1.0 if x[0] is None else self.call(aten.exp.default, x[0])
        return self.polar((size, None), (x[1], None))

    def polar(self, size: Pair, angle: Pair) -> Pair:
        """Return the complex number of a magnitude `size` and an angle: size times cosine, and times sine."""
        if angle[0] is None:
            return size[0], None
        cosine, sine = (self.call(function, angle[0]) for function in (aten.cos.default, aten.sin.default))
        return self.multiply(cosine, size[0]), self.multiply(sine, size[0])

    def real(self, x: Pair) -> Pair:
        return self.side(x, 0), None

    def imaginary(self, x: Pair) -> Pair:
        return self.side(x, 1), None

    def joined(self, real: Pair, imaginary: Pair) -> Pair:
        return real[0], imaginary[0]

    def viewed_as_complex(self, x: Pair) -> Pair:
        real, imaginary = (self.call(aten.select.int, x[0], -1, side) for side in (0, 1))
        return real, imaginary

    def viewed_as_real(self, x: Pair) -> Pair:
        return self.call(aten.stack.default, [self.side(x, side) for side in (0, 1)], -1), None

    def converted(self, x: Pair, *_: Pair) -> Pair | None:
        dtype = described(self.node).dtype
        if not dtype.is_complex:
            return None  # which drops the imaginary part, with a warning
        real, imaginary = (self.call(aten.to.dtype, part, dtype.to_real()) if isinstance(part, Node) else None for part in x)
        return real, imaginary

    def written(self, target: Pair, source: Pair, *_: Pair) -> Pair | None:
        """Return the parts of a copy into existing memory, each part into its own. None for a target that is no memory."""
        if not isinstance(target[0], Node) or not isinstance(target[1], Node):
            return None
        sources = [self.side(source, side) for side in (0, 1)]
        real, imaginary = (self.call(aten.copy_.default, *sides) for sides in zip(target, sources, strict=True))
        return real, imaginary


def _filled(shape: list[int], number: float, dtype: torch.dtype) -> Tensor:
    return torch.full(shape, number, dtype=dtype)
