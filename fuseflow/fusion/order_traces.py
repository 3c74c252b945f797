"""Traces: all orders that make the same table are one trace. Only the order of loops that depend on each other decides the table.

    m[i] = max(k) A[i, k];  s[i] = sum(j) B[i, j];  Y[i] = m[i] / s[i]

Here neither of j and k is ever around the other, so `i,k,j` and `i,j,k` make the same table: both are of one trace. Loops depend
on each other if one nest has both, or if one is a loop of a nest and the other of a producer inside of it, which may have to be
complete.

The name is from Mazurkiewicz's theory: a trace is a set of words that differ only by the order of neighbours that are
independent.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

from fuseflow.fusion.order_sampling import LoopOrder
from fuseflow.fusion.tree import Producer, Tree, loops, nodes


@dataclass(frozen=True, slots=True)
class LoopDependence:
    """Which loops of a region depend on each other: the bit of each loop, and for each the bits of the loops that it depends
    on."""

    bits: Mapping[str, int]
    dependent: Mapping[str, int]

    @classmethod
    def of(cls, results: Sequence[tuple[tuple[str, ...], Tree]]) -> LoopDependence:
        """Return the dependence of the loops of a region, whose results have these indices and trees."""
        below = nodes(*[tree for _, tree in results])
        bits = {v: 1 << n for n, v in enumerate(loops([indices for indices, _ in results], below))}
        dependent = dict.fromkeys(bits, 0)
        inside: dict[Tree, int] = {}  # by node, the loops of the producers at it and below it
        for node in below:
            inside[node] = 0
            for operand in node.operands:
                inside[node] |= inside[operand]
            if isinstance(node, Producer):
                inside[node] |= _meeting(dependent, bits, (*node.free, *node.over), inside[node])
        for indices, tree in results:
            _meeting(dependent, bits, indices, inside[tree])
        return cls(bits, dependent)

    def trace(self, order: LoopOrder) -> Hashable:
        """Return the trace of an order: for each loop, the bits of the loops around it that it depends on."""
        bits, dependent, outside, around = self.bits, self.dependent, 0, dict.fromkeys(self.bits, 0)
        for v in order:
            around[v] = outside & dependent[v]
            outside |= bits[v]
        return tuple(around.values())


def _meeting(dependent: dict[str, int], bits: Mapping[str, int], nest: Sequence[str], inside: int) -> int:
    """Record that the loops of a nest depend on each other, and on the loops of producers `inside`. Return the bits of the
    nest."""
    own = 0
    for v in nest:
        own |= bits[v]
    for v in bits:
        if bits[v] & own:
            dependent[v] |= own | inside
        elif bits[v] & inside:
            dependent[v] |= own
    return own
