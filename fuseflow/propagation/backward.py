"""Which elements of the operands are needed, given the elements of a result that are needed. Known elements of a result need no operand.

Over an index that the operand lacks, and over several uses, an element is needed if any of them needs it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias, assert_never

import numpy as np

from fuseflow.einsum.nodes import Access, Apply, Const, Expr, Keep, Reduce, free_indices
from fuseflow.propagation.contraction import MAX_POINTS, Mask, any_product
from fuseflow.propagation.entries import Entries, sampled
from fuseflow.propagation.forward import Forward, alive, product_factors, unknown
from fuseflow.propagation.labeled import Labeled, any_over, union
from fuseflow.selection import Largest, Threshold

EVERYWHERE = Labeled(np.asarray(True))
Needs: TypeAlias = Iterator[tuple[Access, Mask]]
"""Accesses, each with the elements of its index space that are needed."""


class Backward:
    """Finds the elements that an Einsum needs of its operands. `forward` has the known values of its expressions."""

    def __init__(self, forward: Forward) -> None:
        self._forward = forward

    def needs(self, node: Expr, need: Mask) -> Needs:
        """Yield the elements that an expression needs where a mask over its indices is true. A known element needs no operand."""
        need = self._both(self._any_over(need, free_indices(node)), unknown(self._forward.value(node)))
        if not (need.mask if isinstance(need, Entries) else need.array).any():
            return
        match node:
            case Const():
                return
            case Access():
                yield node, need
            case Apply():
                yield from self._of_operands(node, need)
            case Reduce():
                yield from self._of_reduction(node, need)
            case Keep():
                yield from self.needs(node.body, self._of_selection(node, need))
            case other:
                assert_never(other)

    def _of_operands(self, node: Apply, need: Mask) -> Needs:
        for position, arg in enumerate(node.args):
            yield from self.needs(arg, self._both(need, self._taken(node, position)) if node.op == "where" and position else need)

    def _taken(self, node: Apply, position: int) -> Mask:
        """Return where the branch at this position of a `where` may be taken: the condition selects it there, or is unknown."""
        condition = self._forward.value(node.args[0])
        if isinstance(condition, Entries):
            return condition if position == 1 else EVERYWHERE
        return condition.map(lambda c: np.isnan(c) | ((c != 0) if position == 1 else (c == 0)))

    def _of_reduction(self, node: Reduce, need: Mask) -> Needs:
        factors, sizes = product_factors(node), self._forward.sizes
        values = [self._forward.value(factor) for factor in factors]
        if len(factors) < 2 or any(isinstance(value, Labeled) and np.isinf(value.array).any() for value in values):
            yield from self.needs(node.body, need)
            return
        masks = [alive(value) for value in values]
        for place, factor in enumerate(factors):
            others, own = [need, *masks[:place], *masks[place + 1 :]], masks[place]
            if isinstance(own, Entries):
                yield from self.needs(factor, sampled(own, others, sizes))
            else:
                yield from self.needs(factor, any_product(others, free_indices(factor), (), sizes))

    def _of_selection(self, node: Keep, need: Mask) -> Mask:
        """Return which elements of its operand a `keep` needs for the elements `need`: these alone, or all that they are compared
        with."""
        match node.rule:
            case Threshold():
                return need
            case Largest():
                return self._any_over(need, [name for name in need.names if name not in node.over])
            case other:
                assert_never(other)

    def _any_over(self, need: Mask, names: Sequence[str]) -> Mask:
        match need:
            case Labeled():
                return any_over(need, names)
            case Entries():
                return need.any_over(names, self._forward.sizes, MAX_POINTS)
            case other:
                assert_never(other)

    def _both(self, first: Mask, second: Mask) -> Mask:
        """Return where two masks are true. The result may be true elsewhere, too, if their product would be too large."""
        if isinstance(first, Entries) and set(second.names) <= set(first.names):
            return first.both(second)
        if isinstance(second, Entries) and set(first.names) <= set(second.names):
            return second.both(first)
        if isinstance(first, Labeled) and isinstance(second, Labeled):
            names = union(first, second)
            return Labeled(first.over(names) & second.over(names), names)
        return first if isinstance(second, Entries) else second
