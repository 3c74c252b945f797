"""The fusion table: rows are the loops in order and `val`, columns the views, cells the primitives that stand there.

A cell may refer to a stream that another cell makes, in any row: `Rep(<A_val> by <X_f.crd>)`. The table is a value; `emit` walks it
from its writes.
"""

from __future__ import annotations

from dataclasses import dataclass

from fuseflow.samml.nodes import Node, TensorDecl


@dataclass(frozen=True, slots=True)
class Column:
    """A view (or producer, or the joins): for each row, what stands in its cell."""

    name: str
    cells: tuple[tuple[str, tuple[str, ...]], ...]

    def cell(self, row: str) -> tuple[str, ...]:
        return dict(self.cells).get(row, ())


@dataclass(frozen=True, slots=True)
class FusionTable:
    """`order` are the loops, outermost first; `nodes` every primitive that a cell names, inputs first; `writes` those that store the
    results; `tensors` what is read and written."""

    region: str
    order: tuple[str, ...]
    columns: tuple[Column, ...]
    nodes: tuple[Node, ...]
    writes: tuple[Node, ...]
    tensors: tuple[TensorDecl, ...]
    outputs: tuple[str, ...]

    @property
    def rows(self) -> tuple[str, ...]:
        return (*self.order, "val")
