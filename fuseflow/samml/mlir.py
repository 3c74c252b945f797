"""A graph as MLIR text in the `samml` dialect, and back. Needs torch-mlir (not torch); not imported with `fuseflow.samml`.

Everything of the graph is in the text: `from_mlir(to_mlir(graph)) == graph`. Every call has a new MLIR context.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from torch_mlir import ir

from fuseflow.dialects import attributes as a
from fuseflow.dialects import module as m
from fuseflow.errors import GraphError, TensorError, did_you_mean
from fuseflow.samml import nodes as n
from fuseflow.samml.node import AttributeType
from fuseflow.samml.verify import verify
from fuseflow.tensors import Format

KINDS: tuple[n.Kind, ...] = ("crd", "ref", "val")
"""The order in which the operation of a join groups its streams."""

MAX_LEVELS = 8
"""The most levels of coordinates of a primitive that takes several: the dialect declares this number."""

TENSOR = "samml.tensor"
OPERATIONS: dict[str, type[n.Primitive]] = {f"samml.{kind.op}": kind for kind in n.NODE_TYPES}
"""The node type of each operation that is a node."""

OUTPUT = "samml.output"
LIKE = "samml.like"
PLACEMENTS = {
    "samml.resident": ("resident", ""),
    "samml.buffer": ("buffer", "bytes"),
    "samml.preload": ("preload", "ports"),
    "samml.scratchpad": ("scratchpad", "transfer"),
}
"""The operations that state how a declared tensor is read: the field that each sets, and the attribute with the amount."""
_NAMED_BY = {TENSOR: "name"} | dict.fromkeys((OUTPUT, LIKE, *PLACEMENTS), "tensor") | dict.fromkeys(OPERATIONS, "node")
"""The attribute of each operation that names its tensor or its node."""


# To MLIR --------------------------------------------------------------------------------------------------------------------


def write_tensor(tensor: n.TensorDecl) -> None:
    values = {
        "name": a.string(tensor.standalone().name),
        "shape": a.integers(tensor.shape),
        "levels": a.strings(tensor.format.words),
        "order": a.integers(tensor.format.order),
        "dtype": a.string(tensor.dtype),
        "fill": a.real(tensor.fill),
        "tile": a.integers(tensor.tile),
    }
    ir.Operation.create(TENSOR, attributes=values)
    for operation, (field, unit) in PLACEMENTS.items():
        if amount := getattr(tensor, field):
            values = {"tensor": a.string(tensor.name)} | ({unit: _amount(amount)} if unit else {})
            ir.Operation.create(operation, attributes=values)
    if tensor.like:
        ir.Operation.create(LIKE, attributes={"tensor": a.string(tensor.name), "structure": a.string(tensor.like)})


def _amount(amount: int | str) -> ir.Attribute:
    return a.string(amount) if isinstance(amount, str) else a.integer(amount)


def _read_amount(op: m.Operation, field: str, unit: str) -> int | n.Transfer:
    return n.transfer(op.string(unit)) if field == "scratchpad" else op.integer(unit)


def write_nodes(nodes: Sequence[n.Node], types: Mapping[n.Port, n.StreamType]) -> None:
    """Write one operation for each node, in order. Every input is an output of an earlier node."""
    streams: dict[n.Port, ir.Value] = {}
    for node in nodes:
        _write_node(node, types, streams)


def _write_node(node: n.Node, types: Mapping[n.Port, n.StreamType], streams: dict[n.Port, ir.Value]) -> None:
    inputs = list(node.inputs)
    outputs = list(node.ports)
    values = {"node": a.string(node.name)}
    for attribute in n.ATTRIBUTES[type(node)]:
        values |= _CODECS[attribute.type][0](attribute.field, getattr(node, attribute.field))
    if isinstance(node, n.Join):
        sides = [[types[node.inputs[p]].kind for p in payloads] for _, payloads in node.sides()]
        values["payloads"] = a.array(map(a.strings, sides))
        inputs = [inputs[k] for k in _grouped(_input_kinds(sides))]
        outputs = [outputs[k] for k in _grouped(_output_kinds(sides))]
        values |= a.segments(*([[types[p].kind for p in ports].count(kind) for kind in KINDS] for ports in (inputs, outputs)))
    if isinstance(node, n.Workspace | n.Drop):
        levels = len(inputs) - 1, len(outputs) - 1
        if levels[0] > MAX_LEVELS:
            raise GraphError(f"`{node.name}` takes {levels[0]} levels of coordinates; the MLIR form has at most {MAX_LEVELS}")
        values |= a.segments(*([1] * count + [0] * (MAX_LEVELS - count) + [1] for count in levels))
    results = [stream_type(types[port]) for port in outputs]
    op = ir.Operation.create(f"samml.{node.op}", results, [streams[port] for port in inputs], values)
    streams |= zip(outputs, op.results, strict=True)


def stream_type(type: n.StreamType) -> ir.Type:
    return a.declared_type(f"samml.{type.kind}", a.integer(type.depth))


# From MLIR ------------------------------------------------------------------------------------------------------------------


def read_tensors(operations: Sequence[m.Operation]) -> tuple[n.TensorDecl, ...]:
    """Return the tensors that operations declare, with the placements (resident, buffer, preload, scratchpad) and the structures of others
    (like) that other operations of the list state."""
    declared = [_read_tensor(op) for op in operations if op.name == TENSOR]
    names = [decl.name for decl in declared]
    placements: dict[tuple[str, str], m.Operation] = {}
    for operation in (LIKE, *PLACEMENTS):
        placements |= {(operation, op.string("tensor")): op for op in operations if op.name == operation}
    for (_, name), op in placements.items():
        if name not in names:
            op.refuse(f"names the tensor `{name}`, which is not declared", did_you_mean(name, names))
    fields: dict[str, dict[str, Any]] = {}
    structures: dict[str, str] = {}
    for (operation, name), op in placements.items():
        if operation == LIKE:
            structures[name] = op.string("structure")
            continue
        field, unit = PLACEMENTS[operation]
        fields.setdefault(name, {})[field] = _read_amount(op, field, unit) if unit else True
    return tuple(replace(decl, **fields.get(decl.name, {})).with_structure_of(structures.get(decl.name, "")) for decl in declared)


def _read_tensor(op: m.Operation) -> n.TensorDecl:
    levels, order = op.strings("levels"), op.integers("order")
    try:
        format = Format.of(*levels, order=order)
    except TensorError as error:
        op.refuse(f"has no format: {error.message}", error.hint)
    return n.TensorDecl(op.string("name"), op.integers("shape"), format, op.string("dtype"), op.real("fill"), op.integers("tile"))


def read_node(op: m.Operation) -> n.Primitive:
    """Return the node of an operation. `check_types` compares the types of its results once all nodes are known."""
    if op.name not in OPERATIONS:
        op.refuse("is no primitive", did_you_mean(op.name, OPERATIONS))
    kind = OPERATIONS[op.name]
    values = {attribute.field: _CODECS[attribute.type][1](op, attribute.field) for attribute in n.ATTRIBUTES[kind]}
    inputs = [_port(value, op) for value in op.operands]
    if kind is n.Join:
        sides = _sides(op)
        values["payloads"] = tuple(map(len, sides))
        inputs = [port for _, port in sorted(zip(_grouped(_input_kinds(sides)), inputs, strict=True))]
    if kind is n.Fork and len(op.results) != values["lanes"]:
        op.refuse(f"has {len(op.results)} results for {values['lanes']} lanes")
    return kind(op.string("node"), tuple(inputs), **values)


def check_types(op: m.Operation, node: n.Node, types: Mapping[n.Port, n.StreamType]) -> None:
    """Refuse an operation whose results differ in number or type from the output streams of its node."""
    outputs = list(node.ports)
    if len(outputs) != len(op.results):
        op.refuse(f"has {len(op.results)} results; node `{node.name}` makes {len(outputs)} streams")
    if isinstance(node, n.Join):
        outputs = [outputs[k] for k in _grouped(_output_kinds(_sides(op)))]
    for k, (port, result) in enumerate(zip(outputs, op.results, strict=True)):
        wanted = stream_type(types[port])
        if result.type != wanted:
            op.refuse(f"gives result {k} the type {result.type}; node `{node.name}` makes {wanted}")


def locate_error(error: GraphError, operations: Sequence[m.Operation], head: m.Operation) -> GraphError:
    """Return an error of a graph or table at the source of the node or tensor that it names, or of the graph (`head`)."""
    places = {op.string(_NAMED_BY[op.name]): op.place for op in operations if op.name in _NAMED_BY}
    _, *names = re.findall(r"`([^`]+)`", error.message) or [""]  # the first is the graph's own
    error.span = error.span or next((places[name] for name in names if name in places), head.place)
    return error


def _port(value: ir.Value, reader: m.Operation) -> n.Port:
    """Return the stream that an SSA value represents; `reader` is an operation that uses it. Results of a join are grouped by
    kind, so their order is not that of the outputs."""
    maker = m.Operation(value.owner.operation, reader.module)
    if maker.name not in OPERATIONS:
        reader.refuse(f"reads a result of `{maker.name}`, which is no primitive")
    output = int(ir.OpResult(value).result_number)
    if OPERATIONS[maker.name] is n.Join:
        output = _grouped(_output_kinds(_sides(maker)))[output]
    return n.Port(maker.string("node"), output)


def _sides(join: m.Operation) -> list[list[n.Kind]]:
    """Return the kinds of the payloads of each side of a join. Refuse payloads that do not match the operands and results."""
    sides: list[list[n.Kind]] = join.read("payloads", _payloads, 'a list of "ref" and "val" for each side')
    for role, streams, kinds in (
        ("operands", join.operands, _input_kinds(sides)),
        ("results", join.results, _output_kinds(sides)),
    ):
        types = [ir.DynamicType(stream.type).type_name for stream in streams]
        wanted = [f"samml.{kinds[k]}" for k in _grouped(kinds)]
        if types != wanted:
            join.refuse(f"has {role} {', '.join(types)}; its payloads ask for {', '.join(wanted)}")
    return sides


def _payloads(attribute: ir.Attribute) -> list[list[n.Kind]]:
    kinds: dict[str, n.Kind] = {"ref": "ref", "val": "val"}
    sides = [m.strings(side) for side in ir.ArrayAttr(attribute)]
    if any(payload not in kinds for side in sides for payload in side):
        raise ValueError("a payload is a reference or a value")
    return [[kinds[payload] for payload in side] for side in sides]


# Both ways ------------------------------------------------------------------------------------------------------------------


def _input_kinds(sides: Sequence[Sequence[n.Kind]]) -> list[n.Kind]:
    return [kind for side in sides for kind in ("crd", *side)]


def _output_kinds(sides: Sequence[Sequence[n.Kind]]) -> list[n.Kind]:
    return ["crd", *(kind for side in sides for kind in side)]


def _grouped(kinds: Sequence[n.Kind]) -> list[int]:
    """Return, for each operand or result of a join's operation, the number of its stream, given the kinds of the node's streams
    in order. They are grouped by kind, and within a kind in the order of the node."""
    return sorted(range(len(kinds)), key=lambda k: KINDS.index(kinds[k]))


_Codec: TypeAlias = tuple[Callable[[str, Any], dict[str, ir.Attribute]], Callable[[m.Operation, str], Any]]
"""The functions that write a field of a node as attributes, and read it from them. Both get the name of the field."""


def _single(write: Callable[[Any], ir.Attribute], read: Callable[[m.Operation, str], Any]) -> _Codec:
    """Return the codec of a field that is written as one attribute of the same name."""
    return lambda field, value: {field: write(value)}, read


def _write_operands(field: str, operands: Sequence[n.Operand]) -> dict[str, ir.Attribute]:
    return {"values": a.reals(x.value for x in operands), "constants": a.booleans(x.constant for x in operands)}


def _read_operands(op: m.Operation, field: str) -> tuple[n.Operand, ...]:
    values, constants = op.reals("values"), op.booleans("constants")
    if len(values) != len(constants):
        op.refuse(
            f"has {len(values)} values and {len(constants)} constants", "both have one entry for each operand of the function"
        )
    return tuple(map(n.Operand, values, constants))


def _write_value(value: float | None) -> ir.Attribute:
    return a.unit() if value is None else a.real(value)


def _read_value(op: m.Operation, name: str) -> float | None:
    return op.read(name, m.optional(m.real), "`unit`, or a 64-bit number such as `0.5 : f64`")


_STRING = _single(a.string, m.Operation.string)
_INTEGER = _single(a.integer, m.Operation.integer)
_CODECS: dict[AttributeType, _Codec] = {
    "tensor": _STRING,
    "values": _STRING,
    "level": _INTEGER,
    "word": _STRING,
    "integer": _INTEGER,
    "integers": _single(a.integers, m.Operation.integers),
    "number": _single(a.real, m.Operation.real),
    "number or none": _single(_write_value, _read_value),
    "flag": _single(a.boolean, m.Operation.boolean),
    "slots": (_write_operands, _read_operands),
}
"""The codec of every type of field that a primitive may declare; the payload counts of a join follow from its operands."""


GRAPH, FIBER_FIFO, FIFO_DEPTH = "samml.graph", "samml.fiber_fifo", "samml.fifo_depth"
HOPS, TURN, NODE_HOPS = "samml.hops", "samml.turn", "samml.node_hops"
_INSIDE = ("inner", "loop", "port")


def to_mlir(graph: n.Graph) -> str:
    """Return the MLIR module that holds the graph, in generic form. Raises `GraphError` if the graph does not verify."""
    verify(graph)
    with m.context("samml", error=GraphError):
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            ir.Operation.create(GRAPH, attributes={"name": a.string(graph.name)})
            for tensor in graph.tensors:
                write_tensor(tensor)
            for name in graph.outputs:
                ir.Operation.create(OUTPUT, attributes={"tensor": a.string(name)})
            write_nodes(graph.nodes, graph.types())
            for edge in graph.fiber_fifos:
                ir.Operation.create(FIBER_FIFO, attributes=_edge_attributes(edge))
            for edge, depth in graph.depths:
                ir.Operation.create(FIFO_DEPTH, attributes={**_edge_attributes(edge), "depth": a.integer(depth)})
            for edge, hops in graph.hops:
                numbers = {"count": a.integer(hops.count), "slots": a.integer(hops.slots)}
                ir.Operation.create(HOPS, attributes={**_edge_attributes(edge), **numbers})
            for node, turn in graph.turns:
                numbers = {"number": a.integer(turn.number), "of": a.integer(turn.of)}
                ir.Operation.create(TURN, attributes={"node": a.string(node), **numbers})
            for node, inside in graph.node_hops:
                numbers = {key: a.integer(getattr(inside, key)) for key in _INSIDE}
                ir.Operation.create(NODE_HOPS, attributes={"node": a.string(node), **numbers})
        return m.show(module)


def from_mlir(text: str, file: str = "<mlir>") -> n.Graph:
    """Return the graph that an MLIR module holds. `file` is its name in errors.

    Raises `GraphError` if the module does not parse or the graph does not verify.
    """
    with m.context("samml", error=GraphError, file=file):
        module = m.parse(text, file, ("samml",), GraphError)
        operations = module.operations
        head = module.only(GRAPH)
        around = (GRAPH, TENSOR, LIKE, *PLACEMENTS, OUTPUT, FIBER_FIFO, FIFO_DEPTH, HOPS, TURN, NODE_HOPS)
        by_name = {kind: [op for op in operations if op.name == kind] for kind in around}
        nodes = [(op, read_node(op)) for op in operations if op.name not in around]
        graph = n.Graph(
            head.string("name"),
            tensors=read_tensors(operations),
            nodes=tuple(node for _, node in nodes),
            outputs=tuple(op.string("tensor") for op in by_name[OUTPUT]),
            fiber_fifos=tuple(map(_edge, by_name[FIBER_FIFO])),
            depths=tuple((_edge(op), op.integer("depth")) for op in by_name[FIFO_DEPTH]),
            hops=tuple((_edge(op), n.Hops(op.integer("count"), op.integer("slots"))) for op in by_name[HOPS]),
            turns=tuple((op.string("node"), n.Turn(op.integer("number"), op.integer("of"))) for op in by_name[TURN]),
            node_hops=tuple((op.string("node"), n.NodeHops(*map(op.integer, _INSIDE))) for op in by_name[NODE_HOPS]),
        )
        try:
            verify(graph)
        except GraphError as error:
            raise locate_error(error, operations, head) from None
        types = graph.types()
        for op, node in nodes:
            check_types(op, node, types)
    return graph


def _edge_attributes(edge: n.Edge) -> dict[str, ir.Attribute]:
    return {"node": a.string(edge.node), "input": a.integer(edge.input)}


def _edge(op: m.Operation) -> n.Edge:
    return n.Edge(op.string("node"), op.integer("input"))
