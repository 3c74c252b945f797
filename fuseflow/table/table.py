"""The fusion table: its rows are the loops in order and `val`, its columns the views, and its cells the primitives at work there.

A cell may refer to a stream that another cell makes, in any row: `Rep(<A_val> by <X_f.crd>)`. A finished table does not change;
`emit` makes a graph of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeAlias

from fuseflow.fusion.tree import Tree
from fuseflow.samml.nodes import Graph, Load, Port, Primitive, Root, Scan, TensorDecl, TensorUser, upstream

LAST_COLUMNS = ("repeat", "alu", "range", "fill", "join")
Columns: TypeAlias = Mapping[str, Mapping[str, Sequence[str]]]
"""The columns of a table, each for a view, a producer or a shared kind of primitive, with the texts of the cells of each row."""


@dataclass(frozen=True, slots=True)
class TableStep:
    """A step of Algorithm 2. Each of its `cells` is a column, a row and the text that the step adds there."""

    title: str
    cells: tuple[tuple[str, str, str], ...]


@dataclass(slots=True)
class Recorder:
    """Records the steps in which a table is filled. Steps that fill no cell are left out."""

    title: str = ""
    _steps: list[tuple[str, list[tuple[str, str, str]]]] = field(default_factory=list)
    _filled: set[tuple[str, str, str]] = field(default_factory=set)

    def begin(self, title: str) -> None:
        self.title = title

    def note(self, column: str, row: str, text: str) -> None:
        cell = (column, row, text)
        if cell in self._filled:
            return
        self._filled.add(cell)
        if not self._steps or self._steps[-1][0] != self.title:
            self._steps.append((self.title, []))
        self._steps[-1][1].append(cell)

    def steps(self) -> tuple[TableStep, ...]:
        return tuple(TableStep(title, tuple(cells)) for title, cells in self._steps)


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
    def columns(self) -> Columns:
        return self.after(len(self.steps))

    def after(self, steps: int) -> Columns:
        """Return the columns after the first `steps` steps of Algorithm 2: views and producers in order, then the shared columns."""
        grid: dict[str, dict[str, list[str]]] = {}
        for step in self.steps[:steps]:
            for column, row, text in step.cells:
                grid.setdefault(column, {}).setdefault(row, []).append(text)
        return {c: grid[c] for c in sorted(grid, key=lambda c: LAST_COLUMNS.index(c) if c in LAST_COLUMNS else -1)}

    @property
    def rows(self) -> tuple[str, ...]:
        return (*self.order, "val")


def emit(table: TableNodes) -> Graph:
    """Return the graph of the nodes that the writers need, in the order of the table: other cells are left out (rule L14)."""
    by_name = {n.name: n for n in table.nodes}
    needed = upstream(by_name, (p for w in table.writes for p in w.inputs))
    nodes = tuple(_with_access(n, by_name) for n in table.nodes if n.name in needed)
    used = {n.tensor for n in nodes if isinstance(n, TensorUser)} | set(table.outputs)
    used |= {t.like for t in table.tensors if t.name in used}
    tensors = tuple(t for t in table.tensors if t.name in used)
    return Graph(table.region, tensors, (*nodes, *table.writes), table.outputs)


def _with_access(node: Primitive, by_name: dict[str, Primitive]) -> Primitive:
    """Mark scans and loads whose references come straight from the level above: a memory may prefetch them."""
    if isinstance(node, Scan | Load):
        return replace(node, sequential=isinstance(by_name[node.inputs[0].node], Scan | Root))
    return node


def show(table: FusionTable) -> str:
    """Return the table as text. In a cell, `= <x>` names the stream that the cell makes."""
    return "\n".join([_title(table), *_grid(table, table.columns)]) + "\n"


def show_steps(table: FusionTable) -> str:
    """Return the table after every step of Algorithm 2 as text, each under the title of the step."""
    lines = [_title(table)]
    for number, step in enumerate(table.steps, 1):
        lines += ["", f"step {number}, {step.title}", *_grid(table, table.after(number))]
    return "\n".join(lines) + "\n"


def _title(table: FusionTable) -> str:
    return f"table {table.region}, order {','.join(table.order)}"


def _grid(table: FusionTable, columns: Columns) -> list[str]:
    rows = [["", *columns], *([row, *("; ".join(c.get(row, ())) for c in columns.values())] for row in table.rows)]
    width = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [" | ".join(cell.ljust(w) for cell, w in zip(r, width, strict=True)).rstrip() for r in rows]
