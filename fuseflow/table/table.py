"""The fusion table: rows are the loops in order and `val`, columns the views, cells the primitives that stand there.

A cell may refer to a stream that another cell makes, in any row: `Rep(<A_val> by <X_f.crd>)`. The table is a value; `emit` walks it
from its writes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fuseflow.fusion.tree import Tree
from fuseflow.samml.nodes import Port, Primitive, TensorDecl
from fuseflow.table.steps import Column, TableStep, columns


@dataclass(frozen=True, slots=True)
class Evaluation:
    """One place where the table computes a node of the fused tree: once for every element of the stream `port`, which for a reduction
    is what it folds. `around` are the loops that it stands in, outermost first: of a reduction, those around its own nest."""

    node: Tree
    port: Port
    around: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FusionTable:
    """`order` are the loops, outermost first; `steps` how the table was filled, `columns` what it is then; `nodes` every primitive that
    a cell names, inputs first; `writes` those that store the results; `tensors` what is read and written; `evaluations` where every
    producer is computed, which may be several times; `loops` the indices of the level that each scan and range makes, by node name: several
    where loops share it."""

    region: str
    order: tuple[str, ...]
    steps: tuple[TableStep, ...]
    nodes: tuple[Primitive, ...]
    writes: tuple[Primitive, ...]
    tensors: tuple[TensorDecl, ...]
    outputs: tuple[str, ...]
    evaluations: tuple[Evaluation, ...] = ()
    loops: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.after(len(self.steps))

    def after(self, steps: int) -> tuple[Column, ...]:
        """The columns after so many steps of Algorithm 2."""
        return columns(self.steps[:steps])

    @property
    def rows(self) -> tuple[str, ...]:
        return (*self.order, "val")
