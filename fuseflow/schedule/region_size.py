"""The size of the regions that `layerwise` and `full` form, and where a region that is too large is divided.

A graph runs all loops of its region in one order, and a reduction adds a loop. Where a result of one is read twice, as the state
of a recurrent layer is, fusion repeats it, or runs it again inside of other loops. So from some size on there is no good order,
the search for one takes long, and a run even longer. A GRU with 8 features, fused over one, two and three steps, has 18, 34 and
48 loops of reductions. It takes 486, 2,631 and 19,913 cycles, and unfused 4,525, 8,460 and 12,040. For four steps, no order was
found.

A region that the user names is never divided.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from fuseflow.einsum.nodes import Program, Reduce, walk

MOST_PLACES = 16
"""The most places in which a region computes one of its Einsums. An Einsum that is read at several tuples of indices is computed
for each, and so are its operands: `Z k Z` computes Z twice, and four steps of it compute the first Z 16 times. No model of the
repository needs more than 2 places."""
MOST_REDUCTION_LOOPS = 32
"""The most loops of reductions of a region, unless a single Einsum has more."""


@dataclass(frozen=True)  # with a place for cached values
class RegionDivider:
    """Divides regions of a program that are too large."""

    program: Program

    @cached_property
    def _loops(self) -> dict[str, int]:
        """The number of loops of the reductions of each Einsum."""
        return {e.name: sum(len(node.over) for node in walk(e.body) if isinstance(node, Reduce)) for e in self.program.einsums}

    def pieces(self, einsums: Sequence[str]) -> list[list[str]]:
        """Return the Einsums of a region in pieces that are small enough, in program order. A piece ends where the next pieces
        read the fewest tensors from it, in the second half of the Einsums that it could have."""
        rest, pieces = list(einsums), list[list[str]]()
        while sum(self._loops[name] for name in rest) > MOST_REDUCTION_LOOPS:
            end = self._end(rest)
            if end == len(rest):
                break
            pieces.append(rest[:end])
            rest = rest[end:]
        return [*pieces, rest]

    def halves(self, einsums: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the Einsums of a region with at least two Einsums in two pieces. The border is where the fewest tensors cross
        it, in the middle half of the region."""
        quarter = max(1, len(einsums) // 4)
        crossing, middle = self.crossing(einsums), len(einsums) / 2
        end = min(range(quarter, len(einsums) - quarter + 1), key=lambda n: (crossing[n], abs(n - middle)))
        return tuple(einsums[:end]), tuple(einsums[end:])

    def _end(self, einsums: list[str]) -> int:
        """Return how many Einsums the first piece has."""
        largest, loops = 1, self._loops[einsums[0]]
        while largest < len(einsums) and loops + self._loops[einsums[largest]] <= MOST_REDUCTION_LOOPS:
            loops += self._loops[einsums[largest]]
            largest += 1
        crossing = self.crossing(einsums)
        return min(range(largest, largest // 2, -1), key=crossing.__getitem__)

    def crossing(self, einsums: Sequence[str]) -> list[int]:
        """Return for each length of a first piece how many tensors the Einsums behind it read from it."""
        last_reader = {name: n for n, e in enumerate(einsums) for name in self.program.defined[e].operands}
        changes = [0] * (len(einsums) + 2)
        for n, name in enumerate(einsums):
            if last_reader.get(name, n) > n:
                changes[n + 1] += 1
                changes[last_reader[name] + 1] -= 1
        return list(accumulate(changes))
