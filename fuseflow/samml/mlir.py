"""A graph as MLIR text in the `samml` dialect, and back. Needs torch-mlir (not torch); not imported with `fuseflow.samml`.

Everything of the graph is in the text: `from_mlir(to_mlir(graph)) == graph`. Every call has a context of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from torch_mlir import ir

from fuseflow.dialects import samml
from fuseflow.errors import GraphError, TensorError
from fuseflow.samml import nodes as n
from fuseflow.samml.node import AttributeType
from fuseflow.samml.verify import verify
from fuseflow.tensors import Format

KINDS: tuple[str, ...] = ("crd", "ref", "val")
"""The order in which the operation groups the streams of a join."""


def to_mlir(graph: n.Graph) -> str:
    """The module that holds the graph, in generic form. Raises `GraphError` if the graph does not verify."""
    verify(graph)
    types = graph.types()
    values: dict[n.Port, ir.Value] = {}
    with _context():
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            # Not through the class: its builder takes an empty list for a missing attribute.
            top = ir.Operation.create("samml.graph", attributes=_graph_attributes(graph), regions=1)
        with ir.InsertionPoint(top.regions[0].blocks.append()):
            for node in graph.nodes:
                _write_node(node, types, values)
        module.operation.verify()
        return str(module.operation.get_asm(assume_verified=True))


def from_mlir(text: str) -> n.Graph:
    """The graph that a module holds. Raises `GraphError` if the text does not parse or the graph does not verify."""
    with _context():
        module = ir.Module.parse(text)
        ops = [op.operation for op in module.body.operations]
        if [op.name for op in ops] != ["samml.graph"] or len(list(ops[0].regions[0].blocks)) != 1:
            found = ", ".join(op.name for op in ops) or "nothing"
            raise GraphError(f"the module holds {found}", hint="it should hold one `samml.graph` with one block")
        graph = _read_graph(ops[0])
    verify(graph)
    return graph


@contextmanager
def _context() -> Iterator[None]:
    """A fresh context with the dialect. MLIR's errors become `GraphError`."""
    with ir.Context(), ir.Location.unknown():
        samml.Samml.load()
        try:
            yield
        except ir.MLIRError as error:
            first = error.error_diagnostics[0]
            place = str(first.location).removeprefix('loc("-":').rstrip(')"')
            raise GraphError(f"MLIR at {place}: {first.message}", notes=[str(note) for note in first.notes]) from None
        except TensorError as error:
            raise GraphError(error.message, hint=error.hint) from None
        except ValueError as error:  # an element of a list that is of another kind than it should be
            raise GraphError(f"MLIR: {error}") from None


# Graph to MLIR --------------------------------------------------------------------------------------------------------------


def _graph_attributes(graph: n.Graph) -> dict[str, ir.Attribute]:
    return {
        "sym_name": _str(graph.name),
        "tensors": _array(map(_tensor_attribute, graph.tensors)),
        "outputs": _array(map(_str, graph.outputs)),
        "fiber_fifos": _array(map(_edge_attribute, graph.fiber_fifos)),
        "depths": _array(samml.Depth.get(_edge_attribute(edge), _int(depth)) for edge, depth in graph.depths),
    }


def _write_node(node: n.Node, types: dict[n.Port, n.StreamType], values: dict[n.Port, ir.Value]) -> None:
    inputs = list(node.inputs)
    outputs = [n.Port(node.name, k) for k in range(len(node.port_names()))]
    attributes = {"node": _str(node.name)}
    for attribute in n.ATTRIBUTES[type(node)]:
        attributes[_name(attribute)] = _CODECS[attribute.type].write(getattr(node, attribute.field))
    if isinstance(node, n.Join):
        sides = [[types[node.inputs[p]].kind for p in payloads] for _, payloads in node.sides()]
        attributes["payloads"] = _array(_array(map(_str, side)) for side in sides)
        inputs = [inputs[k] for k in _grouped(_input_kinds(sides))]
        outputs = [outputs[k] for k in _grouped(_output_kinds(sides))]
        attributes |= _segments(*([types[p].kind for p in ports] for ports in (inputs, outputs)))
    if isinstance(node, n.Workspace | n.Drop):
        attributes |= _level_segments(node.name, len(inputs) - 1, len(outputs) - 1)
    results = [samml.STREAM_TYPES[types[port].kind].get(_int(types[port].depth)) for port in outputs]
    op = ir.Operation.create(f"samml.{node.op}", results, [values[port] for port in inputs], attributes)
    values |= zip(outputs, op.results, strict=True)


def _segments(inputs: Sequence[str], outputs: Sequence[str]) -> dict[str, ir.Attribute]:
    """How many operands and results of each kind a join has."""
    return _sizes([inputs.count(kind) for kind in KINDS], [outputs.count(kind) for kind in KINDS])


def _level_segments(name: str, taken: int, made: int) -> dict[str, ir.Attribute]:
    """Which of the declared levels of coordinates are there."""
    most = samml.MAX_LEVELS
    if taken > most:
        raise GraphError(f"`{name}` takes {taken} levels of coordinates; the MLIR form has at most {most}")
    operands, results = ([1] * count + [0] * (most - count) + [1] for count in (taken, made))
    return _sizes(operands, results)


def _sizes(operands: list[int], results: list[int]) -> dict[str, ir.Attribute]:
    array = ir.DenseI32ArrayAttr.get
    return {"operandSegmentSizes": array(operands), "resultSegmentSizes": array(results)}


def _tensor_attribute(tensor: n.TensorDecl) -> ir.Attribute:
    levels = _array(_str(level.text) for level in tensor.format.levels)
    order = _ints(tensor.format.order)
    return samml.Tensor.get(
        _str(tensor.name), _ints(tensor.shape), levels, order, _str(tensor.dtype), _float(tensor.fill), _ints(tensor.tile)
    )


def _edge_attribute(edge: n.Edge) -> ir.Attribute:
    return samml.Edge.get(_str(edge.node), _int(edge.input))


def _slots(operands: Sequence[n.Operand]) -> ir.Attribute:
    return _array(samml.Slot.get(_float(slot.value), ir.BoolAttr.get(slot.constant)) for slot in operands)


def _optional(value: float | None) -> ir.Attribute:
    return ir.UnitAttr.get() if value is None else _float(value)


def _str(text: str) -> ir.Attribute:
    return ir.StringAttr.get(text)


def _int(number: int) -> ir.Attribute:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), number)


def _ints(numbers: Sequence[int]) -> ir.Attribute:
    return _array(map(_int, numbers))


def _float(number: float) -> ir.Attribute:
    return ir.FloatAttr.get(ir.F64Type.get(), number)


def _array(items: Iterable[ir.Attribute]) -> ir.Attribute:
    return ir.ArrayAttr.get(list(items))


# MLIR to graph --------------------------------------------------------------------------------------------------------------


def _read_graph(op: ir.Operation) -> n.Graph:
    return n.Graph(
        name=_text(op.attributes["sym_name"]),
        tensors=tuple(map(_tensor, op.attributes["tensors"])),
        nodes=tuple(_read_node(inner.operation) for inner in op.regions[0].blocks[0].operations),
        outputs=tuple(map(_text, op.attributes["outputs"])),
        fiber_fifos=tuple(map(_edge, op.attributes["fiber_fifos"])),
        depths=tuple(map(_depth, op.attributes["depths"])),
    )


def _read_node(op: ir.Operation) -> n.Primitive:
    kinds = {f"samml.{kind.op}": kind for kind in n.NODE_TYPES}
    if op.name not in kinds:
        raise GraphError(f"`{op.name}` is no primitive")
    kind = kinds[op.name]
    values = {a.field: _CODECS[a.type].read(op.attributes[_name(a)]) for a in n.ATTRIBUTES[kind]}
    inputs = [_port(value) for value in op.operands]
    if kind is n.Join:
        sides = _sides(op)
        values["payloads"] = tuple(map(len, sides))
        inputs = [port for _, port in sorted(zip(_grouped(_input_kinds(sides)), inputs, strict=True))]
    return kind(_text(op.attributes["node"]), tuple(inputs), **values)


def _port(value: ir.Value) -> n.Port:
    if not isinstance(value.owner, ir.Operation | ir.OpView):
        raise GraphError("a stream is an argument of the graph", hint="streams start at a `samml.root`")
    output = ir.OpResult(value).result_number
    if value.owner.name == "samml.join":
        output = _grouped(_output_kinds(_sides(value.owner)))[output]
    return n.Port(_text(value.owner.attributes["node"]), output)


def _sides(join: ir.Operation) -> list[list[str]]:
    """The kinds of the payloads of each side."""
    return [list(map(_text, side)) for side in join.attributes["payloads"]]


def _text(attribute: ir.Attribute) -> str:
    return str(ir.StringAttr(attribute).value)


def _whole(attribute: ir.Attribute) -> int:
    return int(ir.IntegerAttr(attribute).value)


def _wholes(attribute: ir.Attribute) -> tuple[int, ...]:
    return tuple(map(_whole, ir.ArrayAttr(attribute)))


def _flag(attribute: ir.Attribute) -> bool:
    return bool(_whole(attribute))


def _real(attribute: ir.Attribute) -> float:
    return float(ir.FloatAttr(attribute).value)


def _operands(attribute: ir.Attribute) -> tuple[n.Operand, ...]:
    return tuple(n.Operand(_real(slot.value), _flag(slot.constant)) for slot in map(samml.Slot, ir.ArrayAttr(attribute)))


def _value(attribute: ir.Attribute) -> float | None:
    return None if isinstance(attribute, ir.UnitAttr) else _real(attribute)


def _edge(attribute: ir.Attribute) -> n.Edge:
    edge = samml.Edge(attribute)
    return n.Edge(_text(edge.node), _whole(edge.input))


def _depth(attribute: ir.Attribute) -> tuple[n.Edge, int]:
    found = samml.Depth(attribute)
    return _edge(found.edge), _whole(found.depth)


def _tensor(attribute: ir.Attribute) -> n.TensorDecl:
    found = samml.Tensor(attribute)
    format = Format.of(*map(_text, ir.ArrayAttr(found.levels)), order=_wholes(found.order))
    return n.TensorDecl(
        _text(found.tensor), _wholes(found.shape), format, _text(found.dtype), _real(found.fill), _wholes(found.tile)
    )


# Both ways ------------------------------------------------------------------------------------------------------------------


def _input_kinds(sides: Sequence[Sequence[str]]) -> list[str]:
    return [kind for side in sides for kind in ("crd", *side)]


def _output_kinds(sides: Sequence[Sequence[str]]) -> list[str]:
    return ["crd", *(kind for side in sides for kind in side)]


def _grouped(kinds: Sequence[str]) -> list[int]:
    """Which stream of a join each operand or result is: grouped by kind, in the order of the node within a kind."""
    return sorted(range(len(kinds)), key=lambda k: KINDS.index(kinds[k]))


@dataclass(frozen=True, slots=True)
class _Codec:
    """How the attributes of a type are written and read."""

    write: Callable[[Any], ir.Attribute]
    read: Callable[[ir.Attribute], Any]


_CODECS: dict[AttributeType, _Codec] = {
    "tensor": _Codec(_str, _text),
    "values": _Codec(_str, _text),
    "level": _Codec(_int, _whole),
    "word": _Codec(_str, _text),
    "integer": _Codec(_int, _whole),
    "integers": _Codec(_ints, _wholes),
    "number": _Codec(_float, _real),
    "number or none": _Codec(_optional, _value),
    "flag": _Codec(ir.BoolAttr.get, _flag),
    "slots": _Codec(_slots, _operands),
}
"""The payload counts of a join are no attribute of the node: its operands tell them."""


def _name(attribute: n.Attribute) -> str:
    """What an attribute is called in MLIR, where `operands` are something else."""
    return "slots" if attribute.type == "slots" else attribute.field
