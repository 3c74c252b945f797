"""Arithmetic on pairs of real numbers: sums, products and quotients of complex numbers, in operators on their parts.

The product of the pairs (a, b) and (c, 0), for example, is (a c, b c): a part that is 0 is never computed with.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch.fx import Node

from fuseflow.frontend.positions.selections import Selections

aten = torch.ops.aten

Part: TypeAlias = Node | float | None
"""The real or the imaginary part of an operand. None is 0."""
Pair: TypeAlias = tuple[Part, Part]


@dataclass(frozen=True)
class PairArithmetic:
    """Operators on pairs of a real and an imaginary part. Calls are added where the graph inserts nodes, as parts of `node`."""

    selections: Selections
    node: Node

    def call(self, function: Callable[..., Any], *args: Any) -> Node:
        """Add a call of a function before the node, with the origin of the node, and return it."""
        return self.selections.computed(self.node, function, args)

    def zeros(self, like: Part) -> Node:
        return self.call(aten.zeros_like.default, like)

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

    def product(self, x: Pair, y: Pair) -> Pair:
        return self.multilinear([x, y], lambda a, b: self.multiply(a, b))

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
            x = self.product(x, (y[0], self.negative(y[1])))
            y = self.square_of_magnitude(y), None
        real, imaginary = (None if part is None else self.combine(aten.div.Tensor, part, y[0]) for part in x)
        return real, imaginary

    def square_of_magnitude(self, z: Pair) -> Part:
        return self.add(self.multiply(z[0], z[0]), self.multiply(z[1], z[1]))

    def polar(self, size: Part, angle: Part) -> Pair:
        """Return the complex number of a magnitude `size` and an angle: size times cosine, and times sine. None is 0."""
        if angle is None:
            return size, None
        cosine, sine = (self.call(function, angle) for function in (aten.cos.default, aten.sin.default))
        return self.multiply(cosine, size), self.multiply(sine, size)
