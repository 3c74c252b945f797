"""Which loops must enclose which, directly or through others: the order graph without its reasons, as sets of bits.

Merging views asks for this with many candidates, and never for the reasons.

    i before j, j before k        inside(i) = {j, k}, inside(j) = {k}
    i before j, j before i        no order: `Precedence.of` returns None
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from fuseflow.fusion.order_decomposition import set_bits


@dataclass(frozen=True, slots=True)
class Precedence:
    """A partial order of loops. `bits` has the bit of each loop, and `inside` the bits of all loops that it must enclose."""

    bits: dict[str, int]
    inside: dict[str, int]

    @classmethod
    def of(cls, pairs: Iterable[tuple[str, str]]) -> Precedence | None:
        """Return the order in which the first loop of each pair encloses the second; or None if that is impossible.

        >>> order = Precedence.of([("i", "j"), ("j", "k")])
        >>> order.encloses("i", "k"), order.encloses("k", "i"), Precedence.of([("i", "j"), ("j", "i")])
        (True, False, None)
        """
        bits: dict[str, int] = {}
        directly: dict[str, int] = {}
        for above, below in pairs:
            bits.setdefault(above, 1 << len(bits))
            directly[above] = directly.get(above, 0) | bits.setdefault(below, 1 << len(bits))
        names, inside = tuple(bits), {v: 0 for v in bits if v not in directly}
        complete = sum([bits[v] for v in inside])  # the loops for which all loops inside of them are known
        while directly:
            innermost = [v for v, below in directly.items() if not below & ~complete]
            if not innermost:
                return None
            for loop in innermost:
                inside[loop] = directly.pop(loop)
                for n in set_bits(inside[loop]):
                    inside[loop] |= inside[names[n]]
                complete |= bits[loop]
        return cls(bits, inside)

    def encloses(self, above: str, below: str) -> bool:
        """Return whether the loop `above` must enclose the loop `below`."""
        return self.inside.get(above, 0) & self.bits.get(below, 0) != 0
