"""What is needed of every operand, from what is needed of a result: what the result depends on where it is needed and unknown.

Over an index that the operand lacks, and over several uses, an element is needed if any of them needs it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

import numpy as np
import numpy.typing as npt

from fuseflow.attributes.contraction import any_product
from fuseflow.attributes.forward import Forward, alive_of, product_factors
from fuseflow.attributes.labeled import Labeled, any_over, union
from fuseflow.einsum.nodes import Access, Apply, Const, Expr, Keep, Reduce, free_indices
from fuseflow.selection import Largest, Threshold

Mark = Callable[[Access, Labeled], None]
"""A function that is told which elements of the index space of an access are needed."""


class Backward:
    """What an Einsum needs of its operands. `forward` has what is known of its expressions."""

    def __init__(self, forward: Forward, mark: Mark) -> None:
        self._forward, self._mark = forward, mark

    def need(self, node: Expr, need: Labeled) -> None:
        """Mark what an expression needs where a mask over its indices is true. What is known needs no operand."""
        value = self._forward.value(node)
        need = _both(any_over(need, free_indices(node)), value.map(np.isnan))
        if not need.array.any():
            return
        match node:
            case Const():
                return
            case Access():
                self._mark(node, need)
            case Apply():
                self._of_operands(node, need)
            case Reduce():
                self._of_reduction(node, need)
            case Keep():
                self.need(node.body, _of_selection(node, need))
            case unknown:
                assert_never(unknown)

    def _of_operands(self, node: Apply, need: Labeled) -> None:
        for position, arg in enumerate(node.args):
            self.need(arg, _both(need, self._taken(node, position)) if node.op == "where" and position else need)

    def _taken(self, node: Apply, position: int) -> Labeled:
        """Return where a branch of a `where` may be taken."""
        condition = self._forward.value(node.args[0])
        return condition.map(lambda c: np.isnan(c) | ((c != 0) if position == 1 else (c == 0)))

    def _of_reduction(self, node: Reduce, need: Labeled) -> None:
        factors = product_factors(node)
        if len(factors) < 2 or any(np.isinf(self._forward.value(factor).array).any() for factor in factors):
            self.need(node.body, need)
            return
        sizes, alive = self._forward.sizes, [self._forward.value(factor).map(alive_of) for factor in factors]
        for place, factor in enumerate(factors):
            others = [need, *alive[:place], *alive[place + 1 :]]
            self.need(factor, any_product(others, free_indices(factor), (), sizes))


def _of_selection(node: Keep, need: Labeled) -> Labeled:
    """Return what a rule must see of its operand: the entry alone, or all that it is compared with."""
    match node.rule:
        case Threshold():
            return need
        case Largest():
            return any_over(need, [name for name in need.names if name not in node.over])
        case unknown:
            assert_never(unknown)


def _both(first: Labeled, second: Labeled) -> Labeled:
    names = union(first, second)
    mask: npt.NDArray[np.bool_] = first.over(names) & second.over(names)
    return Labeled(mask, names)
