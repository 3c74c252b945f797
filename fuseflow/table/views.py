"""The columns of the table for stored tensors: where a view is scanned or located, and how it advances past a loop."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fuseflow.einsum.nodes import TensorType
from fuseflow.errors import FusionError
from fuseflow.fusion.region import FusedRegion
from fuseflow.fusion.tree import View
from fuseflow.samml.nodes import Load, Locate, Port, Scan
from fuseflow.table.nest import Loop, Nest, ViewCursor, ViewLevels
from fuseflow.table.node_interning import Cells


@dataclass(frozen=True, slots=True)
class ViewReader:
    """Reads the views of a region, whose cursors begin at `start`. `declared` has the formats in which their tensors are stored,
    and `levels` their levels. Levels of indices that need no loop are skipped: they change no reference."""

    region: FusedRegion
    cells: Cells
    declared: Mapping[str, TensorType]
    start: ViewCursor
    levels: Mapping[View, ViewLevels]

    def leaf(self, view: View, nest: Nest) -> ViewCursor:
        """Return the cursor of a view in a nest."""
        leaf = nest.env.get(view)
        if isinstance(leaf, ViewCursor):
            return leaf
        first = self.levels[view].after[0]
        return self.start._replace(level=first) if first else self.start

    def joined(self, view: View, v: str, nest: Nest) -> tuple[Port, Port] | None:
        """Return the coordinates and references of a view for the join of loop `v`; None if it lacks it or is located there."""
        levels, positions, _ = self.levels[view]
        position = positions.get(v)
        if position is None:
            return None
        leaf = self.leaf(view, nest)
        full, reached = levels[position][1], position == leaf.level
        if full and not (reached and (leaf.nullable or not self.region.locate)):
            return None  # a dense level is located
        if not reached:
            order = ",".join(self.region.order)
            raise FusionError(
                f"order {order} of region `{self.region.name}` reaches {v} of {view} before the levels stored above it"
            )
        return self.scan(view, v, nest)

    def keeps(self, view: View, nest: Nest) -> bool:
        """Return whether the next level of a view is outermost, would be scanned again in every loop, and can be kept instead."""
        if self.region.rescan or not nest.loops or self.leaf(view, nest).port != self.start.port:
            return False
        format = self.declared[view.tensor].format
        assert format is not None
        return self.leaf(view, nest).level == 0 and format.levels[0].kept

    def enumerates(self, view: View, v: str, nest: Nest) -> bool:
        """Return whether the next level of a view is the dense level of loop `v`, so that its scan has every coordinate."""
        levels, leaf = self.levels[view].levels, self.leaf(view, nest)
        return leaf.level < len(levels) and levels[leaf.level] == (v, True) and not leaf.nullable

    def alike(self, view: View, other: View, nest: Nest) -> bool:
        """Return whether two views of tensors that share their places are at the same references of these."""
        shares = any(one.places or self.region.stored[one.tensor].like for one in (view, other))
        roots = {self.region.stored[one.tensor].like or one.tensor for one in (view, other)}
        return shares and len(roots) == 1 and self.leaf(view, nest) == self.leaf(other, nest)

    def scan(self, view: View, v: str, nest: Nest) -> tuple[Port, Port]:
        """Scan the next level of a view, and return its coordinates and the references below them."""
        leaf = self.leaf(view, nest)
        ref = self.cells.lift(leaf.port, nest.loops, nest.depth, view)
        tensor = self.region.level_tensor(view.tensor, leaf.level)
        crd, below = self.cells.level(Scan(f"{tensor}_{v}", (ref,), tensor, leaf.level), v)
        return crd, below

    def advanced(self, view: View, loop: Loop) -> ViewCursor:
        """Return the cursor of a view after a loop."""
        (levels, _, after), leaf, v = self.levels[view], self.leaf(view, loop.nest), loop.index
        port, level, nullable, waiting = leaf.port, leaf.level, leaf.nullable, dict(leaf.waiting)
        ref = loop.scanned.get(view)
        if ref is not None:
            port, level, nullable = loop.moved[ref].port, after[level + 1], loop.moved[ref].nullable
            if ref in loop.located:
                self.cells.note(view, v, "Kept({}) = {}", loop.crd, loop.located[ref])
            else:
                self.cells.note(view, v, "LS = {}", ref)
        else:
            waiting[v] = loop.crd
        while level < len(levels) and levels[level][1] and levels[level][0] in waiting:
            port = self._located(view, level, (waiting.pop(levels[level][0]), port), loop)
            level = after[level + 1]
        return ViewCursor(port, level, nullable, tuple(waiting.items()))

    def _located(self, view: View, level: int, streams: tuple[Port, Port], loop: Loop) -> Port:
        """Locate a dense level at the coordinates and references of `streams`, and return the references below it (L2)."""
        cells, loops, (crd, ref) = self.cells, loop.nest.loops, streams
        depth = max(cells.depth(crd), cells.depth(ref))
        crd, ref = cells.lift(crd, loops, depth, view), cells.lift(ref, loops, depth, view)
        index = self.levels[view].levels[level][0]
        tensor = self.region.level_tensor(view.tensor, level)
        (port,) = cells.put(Locate(f"{tensor}_{index}.loc", (crd, ref), tensor, level))
        cells.note(view, loop.index, "Loc({}, {}) = {}", crd, ref, port)
        return port

    def value(self, view: View, nest: Nest) -> Port:
        """Return the values of a view. All of its loops must have run."""
        port = self.leaf(view, nest).port
        if self.region.repeat == "reference":
            port = self.cells.lift(port, nest.loops, nest.depth, view)
        (value,) = self.cells.put(Load(f"{view.tensor}_val", (port,), view.tensor))
        self.cells.note(view, "val", "Val({})", port)
        return value
