"""A fusion table as MLIR text in the dialects `table` and `samml`, and back. Needs torch-mlir (not torch).

It is not imported with `fuseflow.table`. Everything of the table is in the text: rows, columns, cells, the primitives that cells
name, and where producers are computed. Every call uses a new MLIR context.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import assert_never

from torch_mlir import ir

from fuseflow.dialects import attributes as a
from fuseflow.dialects import module as m
from fuseflow.errors import GraphError, did_you_mean
from fuseflow.fusion.tree import Constant, Operation, Reduction, Selection, Tree, View, nodes
from fuseflow.keep_rules import parse_rule
from fuseflow.samml import nodes as n
from fuseflow.samml.mlir import (
    OPERATIONS,
    OUTPUT,
    check_types,
    locate_error,
    read_node,
    read_tensors,
    write_nodes,
    write_tensor,
)
from fuseflow.samml.verify import stream_facts, verify
from fuseflow.table.table import Evaluation, FusionTable, TableStep, emit

_STREAM = re.compile(r"<([^<>]+)>")
"""A stream in the text of a cell."""


def to_mlir(table: FusionTable) -> str:
    """Return the MLIR module that holds the table, in generic form. Raises `GraphError` if the graph of the table does not verify."""
    _verify(table)
    with m.context("samml", "table", error=GraphError):
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            _write(table)
        return m.show(module)


def from_mlir(text: str, file: str = "<mlir>") -> FusionTable:
    """Return the table that an MLIR module holds. Raises `GraphError` if it does not parse, or names what does not exist."""
    with m.context("samml", "table", error=GraphError, file=file):
        module = m.parse(text, file, ("samml", "table"), GraphError)
        head = module.only("table.table")
        reader = _Reader()
        for op in module.operations:
            reader.read(op)
        table = reader.table(head)
        try:
            _verify(table)
        except GraphError as error:
            raise locate_error(error, module.operations, head) from None
        reader.check(table)
    return table


def _whole(table: FusionTable) -> n.Graph:
    """Return a graph of every primitive of the table, whether a result needs it or not."""
    return n.Graph(table.region, table.tensors, (*table.nodes, *table.writes), table.outputs)


def _verify(table: FusionTable) -> None:
    """Raise `GraphError` unless the primitives may read what they read, and the table makes a well-formed graph."""
    for node in table.nodes:
        if isinstance(node, n.WriteLevel | n.WriteValues):
            raise GraphError(f"table `{table.region}`: node `{node.name}` writes and stands among those that do not")
    for thing, names in (
        ("node", [node.name for node in (*table.nodes, *table.writes)]),
        ("tensor", [t.name for t in table.tensors]),
    ):
        twice = next((name for name, count in Counter(names).items() if count > 1), None)
        if twice is not None:
            raise GraphError(f"table `{table.region}`: two {thing}s are named `{twice}`")
    stream_facts(_whole(table))
    verify(emit(table))


# Table to MLIR --------------------------------------------------------------------------------------------------------------


def _write(table: FusionTable) -> None:
    ir.Operation.create("table.table", attributes={"region": a.string(table.region), "order": a.strings(table.order)})
    for tensor in table.tensors:
        write_tensor(tensor)
    for name in table.outputs:
        ir.Operation.create(OUTPUT, attributes={"tensor": a.string(name)})
    graph = _whole(table)
    write_nodes(graph.nodes, graph.types())
    for node, indices in table.loops.items():
        ir.Operation.create("table.loop", attributes={"node": a.string(node), "indices": a.strings(sorted(indices))})
    for label in dict.fromkeys(table.stages.values()):
        inside = [node for node, stage in table.stages.items() if stage == label]
        ir.Operation.create("table.stage", attributes={"label": a.string(label), "nodes": a.strings(inside)})
    for step in table.steps:
        title = {"title": a.string(step.title)}
        begin = ir.Operation.create("table.begin_step", [a.declared_type("table.step")], attributes=title).result
        for column, row, text in step.cells:
            values = {"column": a.string(column), "row": a.string(row), "text": a.string(text)}
            ir.Operation.create("table.cell", operands=[begin], attributes=values)
    _write_evaluations(table.evaluations)


def _write_evaluations(evaluations: Sequence[Evaluation]) -> None:
    trees: dict[Tree, ir.Value] = {}
    for tree in nodes(*(evaluation.node for evaluation in evaluations)):
        trees[tree] = _write_tree(tree, trees)
    for evaluation in evaluations:
        values = {
            "node": a.string(evaluation.port.node),
            "output": a.integer(evaluation.port.output),
            "around": a.strings(evaluation.around),
        }
        ir.Operation.create("table.evaluation", operands=[trees[evaluation.node]], attributes=values)


def _write_tree(tree: Tree, trees: Mapping[Tree, ir.Value]) -> ir.Value:
    operands: list[ir.Value] = []
    match tree:
        case View(tensor, indices):
            name, values = "table.view", {"tensor": a.string(tensor), "indices": a.strings(indices)}
        case Constant(value):
            name, values = "table.number", {"value": a.real(value)}
        case Operation(op, args):
            name, values, operands = "table.op", {"operator": a.string(op)}, [trees[arg] for arg in args]
        case Reduction(op, over, free, body, label):
            name, operands = "table.reduction", [trees[body]]
            values = {"reduction": a.string(op), "over": a.strings(over), "free": a.strings(free), "label": a.string(label)}
        case Selection(rule, over, free, body, label):
            name, operands = "table.selection", [trees[body]]
            values = {"rule": a.string(str(rule)), "over": a.strings(over), "free": a.strings(free), "label": a.string(label)}
        case _:
            assert_never(tree)
    return ir.Operation.create(name, [a.declared_type("table.tree")], operands, values).result


# MLIR to table --------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Reader:
    """Collects the content of a table from operations of an MLIR module, one by one."""

    tensors: list[m.Operation] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    nodes: list[tuple[m.Operation, n.Primitive]] = field(default_factory=list)
    steps: dict[ir.Value, tuple[str, list[tuple[str, str, str]]]] = field(default_factory=dict)
    cells: list[m.Operation] = field(default_factory=list)
    trees: dict[ir.Value, Tree] = field(default_factory=dict)
    evaluations: list[tuple[m.Operation, Evaluation]] = field(default_factory=list)
    loops: list[tuple[m.Operation, str, tuple[str, ...]]] = field(default_factory=list)
    stages: list[tuple[m.Operation, str, str]] = field(default_factory=list)

    def read(self, op: m.Operation) -> None:
        match op.name:
            case "table.table":
                pass
            case "samml.tensor" | "samml.like" | "samml.resident" | "samml.buffer" | "samml.preload" | "samml.scratchpad":
                self.tensors.append(op)
            case "samml.output":
                self.outputs.append(op.string("tensor"))
            case "table.begin_step":
                self.steps[op.results[0]] = (op.string("title"), [])
            case "table.cell":
                op.operand(0, self.steps)[1].append((op.string("column"), op.string("row"), op.string("text")))
                self.cells.append(op)
            case "table.loop":
                self.loops.append((op, op.string("node"), op.strings("indices")))
            case "table.stage":
                self.stages += [(op, node, op.string("label")) for node in op.strings("nodes")]
            case "table.evaluation":
                port = n.Port(op.string("node"), op.integer("output"))
                self.evaluations.append((op, Evaluation(op.operand(0, self.trees), port, op.strings("around"))))
            case name if name in OPERATIONS:
                self.nodes.append((op, read_node(op)))
            case _:
                self.trees[op.results[0]] = self.tree(op)

    def tree(self, op: m.Operation) -> Tree:
        below = [op.operand(k, self.trees) for k in range(len(op.operands))]
        match op.name:
            case "table.view":
                return View(op.string("tensor"), op.strings("indices"))
            case "table.number":
                return Constant(op.real("value"))
            case "table.op":
                return Operation(op.string("operator"), tuple(below))
            case "table.reduction":
                return Reduction(op.string("reduction"), op.strings("over"), op.strings("free"), below[0], op.string("label"))
            case "table.selection":
                rule = parse_rule(op.string("rule"))
                if rule is None:
                    op.refuse(
                        f"has the rule `{op.string('rule')}`",
                        "a rule is `nonzero`, `threshold 0.1`, `8`, `2 of 4` or `mark 8 greatest`",
                    )
                return Selection(rule, op.strings("over"), op.strings("free"), below[0], op.string("label"))
            case _:
                op.refuse("is no operation of a table", "that belongs to a whole graph")

    def table(self, head: m.Operation) -> FusionTable:
        kept = [node for _, node in self.nodes if not isinstance(node, n.WriteLevel | n.WriteValues)]
        writes = [node for _, node in self.nodes if isinstance(node, n.WriteLevel | n.WriteValues)]
        return FusionTable(
            region=head.string("region"),
            order=head.strings("order"),
            steps=tuple(TableStep(title, tuple(cells)) for title, cells in self.steps.values()),
            nodes=tuple(kept),
            writes=tuple(writes),
            tensors=read_tensors(self.tensors),
            outputs=tuple(self.outputs),
            evaluations=tuple(evaluation for _, evaluation in self.evaluations),
            loops={node: frozenset(indices) for _, node, indices in self.loops},
            stages={node: label for _, node, label in self.stages},
        )

    def check(self, table: FusionTable) -> None:
        """Refuse an operation that refers to a row, a node or a stream that the table does not have, or whose results have wrong types."""
        graph = _whole(table)
        types = graph.types()
        for op, node in self.nodes:
            check_types(op, node, types)
        names = {n.stream_name(node, k) for node in graph.nodes for k in range(len(node.port_names()))}
        for op in self.cells:
            _require(op, "row", op.string("row"), table.rows)
            for stream in _STREAM.findall(op.string("text")):
                _require(op, "stream", stream, names)
        for op, evaluation in self.evaluations:
            _require(op, "node", evaluation.port.node, graph.by_name)
            if evaluation.port not in types:
                op.refuse(f"names output {evaluation.port.output} of `{evaluation.port.node}`, which it does not have")
        for facts in (self.loops, self.stages):
            nodes: set[str] = set()
            for op, name, _ in facts:
                _require(op, "node", name, graph.by_name)
                if name in nodes:
                    op.refuse(f"stands here a second time for `{name}`")
                nodes.add(name)


def _require(op: m.Operation, thing: str, name: str, names: Iterable[str]) -> None:
    if name not in names:
        op.refuse(f"names the {thing} `{name}`, which the table does not have", did_you_mean(name, names))
