"""The fusion table: its rows are the loops in order and `val`, its columns the views, and its cells the primitives at work there.

A cell may refer to a stream that another cell makes, in any row: `Rep(<A_val> by <X_f.crd>)`. A finished table does not change;
`emit` makes a graph of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from fuseflow.fusion.tree import Tree
from fuseflow.samml.nodes import Port, Primitive, TensorDecl
from fuseflow.table.steps import Column, TableStep, columns


class Evaluation(NamedTuple):
    """One position at which the table computes a node of the fused tree, once for every element of the stream `port`.

    For a reduction, `port` is the stream that it folds. `around` are the loops that the computation is in, outermost first; for a
    reduction they are those around its nest.
    """

    node: Tree
    port: Port
    around: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TableNodes:
    """The nodes of the table of a region, without the cells. A graph follows from them.

    `order` has the loops, outermost first: the indices of the region that need a loop. `nodes` are the primitives that cells
    name, inputs first, and `writes` are the primitives that store the results. `tensors` declares the tensors that are read and
    written.
    """

    region: str
    order: tuple[str, ...]
    nodes: tuple[Primitive, ...]
    writes: tuple[Primitive, ...]
    tensors: tuple[TensorDecl, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FusionTable(TableNodes):
    """A fusion table, with the steps in which it was filled.

    `steps` say how the table was filled, and `columns` are the result. `evaluations` say where every producer is computed, which
    may be at several positions. `loops` has, by node name, the indices of the level that each scan and range makes: several if
    loops share the level. `stages` has, by node name, the label of the producer in whose nest the node is; a node that several
    nests need is in the last of them.
    """

    steps: tuple[TableStep, ...] = ()
    evaluations: tuple[Evaluation, ...] = ()
    loops: Mapping[str, frozenset[str]] = field(default_factory=dict)
    stages: Mapping[str, str] = field(default_factory=dict)

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.after(len(self.steps))

    def after(self, steps: int) -> tuple[Column, ...]:
        """Return the columns after the first `steps` steps of Algorithm 2."""
        return columns(self.steps[:steps])

    @property
    def rows(self) -> tuple[str, ...]:
        return (*self.order, "val")
