"""The rule that says before which loop of a nest a producer in its body must be complete (rule L4 of the lowering contract).

    m[i] = max(k) X[i, k];  Y[i, j] = X[i, j] - m[i]        in order i,k,j the maximum is complete before loop j

Tables are built by this rule, and the work of nests is counted by it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from fuseflow.fusion.tree import Producer, Selection


@dataclass(frozen=True, slots=True)
class Completion:
    """The rule for one loop order: `place` has the position of each loop in it. The indices in `single` need no loop."""

    place: Mapping[str, int]
    single: frozenset[str] = frozenset()

    def awaited(self, node: Producer) -> tuple[str, ...]:
        """Return the indices before whose loops a producer must be complete: for a threshold, only its innermost index."""
        if isinstance(node, Selection) and not node.over:
            return (max(node.free, key=self.place.__getitem__),) if node.free else ()
        return tuple([v for v in node.over if v not in self.single]) if self.single else node.over

    def is_due(self, node: Producer, v: str, run: Collection[str]) -> bool:
        """Return whether a producer must be complete before loop `v` of a nest. `run` has the loops outside of `v`.

        A reduction is due at one of its indices once a reduction index is at or before it, and at an index that it lacks only if
        it is a plain value by then. Otherwise it is carried: it runs again inside that loop. A selection is due like a reduction
        over the indices along which it compares.
        """
        place, at = self.place, self.place[v]
        if not any(place[r] <= at for r in self.awaited(node)):
            return False
        return v in node.free or v in node.over or all(w in run or w in self.single for w in node.free)
