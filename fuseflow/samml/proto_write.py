"""The messages of each primitive in protobuf, with warnings of what readers of the public schema will miss (`proto` has the API).

A stream with several readers becomes an explicit `Broadcast`, one without readers id 0. Where a public message can say what a node
means, that message says it; extension fields hold the rest, so that our own reader loses nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fuseflow.samml import nodes as n
from fuseflow.samml import tortilla_pb2 as pb
from fuseflow.samml.proto_wire import BY_PRIMITIVE, WireFormat, new_streams
from fuseflow.samml.proto_writer import ProtoWriter, StreamMessage, stream_of_kind
from fuseflow.samml.public_streams import located
from fuseflow.samml.text import show_attributes
from fuseflow.tile_ops import TileShape

BINARY = {"add": pb.ALU.ADD, "sub": pb.ALU.SUB, "mul": pb.ALU.MUL, "div": pb.ALU.DIV}
UNARY = {"exp": pb.ALU.EXP, "sin": pb.ALU.SIN, "cos": pb.ALU.COS, "rsqrt": pb.ALU.RSQRT, "sigmoid": pb.ALU.SIGMOID}
PARTIAL = {"fold_sum": "add", "fold_prod": "mul"}
"""The public operator for each operator that combines the partial results of lanes."""
SCALAR = {"add": pb.ALU.SCALARADD, "mul": pb.ALU.SCALARMUL, "div": pb.ALU.SCALARDIV, "max": pb.ALU.MAX}
BLOCKED = {"matmul": pb.ALU.MUL, "mul": pb.ALU.ELEMMUL}
REDUCE = {"sum": pb.Reduce.ADD, "max": pb.Reduce.MAX}
PUBLIC_ORDER = 2
"""The highest order of an accumulate that other readers execute."""
JOIN = {"intersect": pb.Joiner.INTERSECT, "union": pb.Joiner.UNION}


def _scan(w: ProtoWriter, node: n.Scan) -> None:
    level = w.declared[node.tensor].format.levels[node.level]
    operation = w.new(node)
    lookup = operation.fiber_lookup_ext if level.public is None else operation.fiber_lookup
    w.storing(node.name, level)
    lookup.tensor, lookup.mode, lookup.sequential = node.tensor, node.level, node.sequential
    lookup.format = level.public or level.text
    w.reading(node.inputs[0], lookup.input_ref)
    w.making(node, 0, lookup.output_crd)
    w.making(node, 1, lookup.output_ref)


def _locate(w: ProtoWriter, node: n.Locate) -> None:
    message = w.new(node).locate
    message.tensor, message.level = node.tensor, node.level
    crd, *parent = node.inputs
    if not (level := w.declared[node.tensor].format.levels[node.level]).full:
        w.warn(node.name, f"other readers locate in full levels only, not in a {level.text} one")
    w.reading(crd, message.input_crd)
    w.making(node, 0, message.output_ref1)
    if join := w.public.passing.get(node.name):
        w.making(join, 0, message.output_crd)
        w.making(join, 1, message.output_ref2)
    if w.kind(crd) != "crd":
        w.warn(node.name, "other readers locate by coordinates as they are scanned, not by repeated ones")
    if not parent:
        message.outermost = True
        passed = w.public.reads[n.Edge(node.name, 0)][1:]
        for ref in passed:
            w.reading(ref, message.input_ref)
        if not passed:
            w.warn(node.name, "other readers need references beside the coordinates")
    elif node.level == 0:
        w.reading(parent[0], message.input_ref)
    else:
        w.reading(parent[0], message.parent_ref)
        w.warn(node.name, f"other readers locate below reference 0 only, not below those of `{node.tensor}.{node.level - 1}`")


def _join(w: ProtoWriter, node: n.Join) -> None:
    if w.public.passing.get(located(node)) is node:
        return  # the message of the locate says it
    operation = w.new(node)
    if node.kind in JOIN:
        message = operation.joiner
        message.join_type = JOIN[node.kind]
    else:
        message = operation.joiner_ext
        message.kind = node.kind
        w.warn(node.name, f"other readers have no {node.kind} join")
    message.payloads.extend(node.payloads)
    for crd, payloads in node.sides():
        for payload in payloads:
            pair = message.input_pairs.add()
            w.reading(node.inputs[crd], pair.crd)
            w.reading(node.inputs[payload], _payload(pair.in_ref, w.kind(node.inputs[payload])))
        if not payloads:
            w.reading(node.inputs[crd], message.input_pairs.add().crd)
            w.warn(node.name, "other readers need a payload on every side of a join")
    w.making(node, 0, message.output_crd)
    carried = [node.inputs[p] for _, payloads in node.sides() for p in payloads]
    for output, port in enumerate(carried, 1):
        w.making(node, output, _payload(message.output_refs.add(), w.kind(port)))


def _payload(payload: pb.Joiner.Payload, kind: n.Kind) -> StreamMessage:
    return payload.val_stream if kind == "val" else payload.ref_stream


def _repeat(w: ProtoWriter, node: n.Repeat) -> None:
    stream, signal = node.inputs
    (public_signal,) = w.public.reads[n.Edge(node.name, 1)]
    signals = w.new(node).repeatsig if w.kind(public_signal) == "crd" else None
    message = w.new(node).repeat
    w.reading(stream, message.in_val if w.kind(stream) == "val" else message.in_ref)
    w.making(node, 0, message.out_val if w.kind(stream) == "val" else message.out_ref)
    if w.kind(stream) == "crd":
        w.warn(node.name, "other readers repeat references and values, not coordinates")
    if signals:
        w.reading(signal, signals.input_crd)
        inner = n.Port(node.name, 1)  # between the two messages, no stream of the graph
        signals.output_rep_sig.name = message.rep_ref.name = f"{node.name}.signal"
        w.makers[inner], w.reads[inner] = signals.output_rep_sig, [message.rep_ref]
        w.warn(node.name, "other readers repeat by references or values, and these coordinates have none beside them")
    else:
        w.reading(public_signal, message.rep_val if w.kind(public_signal) == "val" else message.rep_ref)
        if public_signal != signal:
            message.signal.node, message.signal.output = signal.node, signal.output


def _load(w: ProtoWriter, node: n.Load) -> None:
    message = w.new(node).array
    message.tensor, message.sequential = node.tensor, node.sequential
    w.block(node, message, n.Port(node.name))
    w.reading(node.inputs[0], message.input_ref)
    w.making(node, 0, message.output_val)
    if w.facts[node.inputs[0]].nullable and w.declared[node.tensor].fill != 0:
        w.warn(node.name, f"other readers take absent entries of `{node.tensor}` as 0")


def _alu(w: ProtoWriter, node: n.Alu) -> None:
    operation = w.new(node)
    public = _alu_op(node, {w.facts[port].type.tile for port in node.inputs})
    message = operation.alu if public else operation.alu_ext
    if public:
        op, scalar = public
        message.stages.add(op=op)
        message.scalar = scalar
    else:
        w.warn(node.name, f"other readers have no `{node.function}` of these operands")
    w.block(node, message, n.Port(node.name))
    message.function = node.function
    for slot in node.operands:
        message.operands.add(value=slot.value, constant=slot.constant)
    for port in node.inputs:
        w.reading(port, message.vals.inputs.add())
    w.making(node, 0, message.vals.output)
    fills = [slot.value for slot in node.operands if not slot.constant]
    if any(fill != 0 and w.facts[port].nullable for fill, port in zip(fills, node.inputs, strict=True)):
        w.warn(node.name, "other readers take absent operands as 0")


def _alu_op(node: n.Alu, tiles: set[TileShape]) -> tuple[pb.ALU.AluOp, float] | None:
    """Return the public operation that does the same on elements of these shapes, and its scalar; None if there is none."""
    if tiles != {()}:
        if len(tiles) > 1 or any(rows != columns for rows, columns in tiles):
            return None
        if node.function in BLOCKED and not any(slot.constant for slot in node.operands):
            return BLOCKED[node.function], 0.0
    constants = [slot.value for slot in node.operands if slot.constant]
    if node.function == "relu":
        return pb.ALU.MAX, 0.0
    if not constants:
        function = PARTIAL.get(node.function, node.function)
        op = (UNARY if len(node.operands) == 1 else BINARY).get(function)
        return None if op is None else (op, 0.0)
    if len(node.operands) != 2 or node.function not in SCALAR or (node.function == "div" and node.operands[0].constant):
        return None
    return SCALAR[node.function], constants[0]


def _reduce(w: ProtoWriter, node: n.Reduce) -> None:
    operation = w.new(node)
    if node.function in REDUCE:
        message = operation.reduce
        message.reduce_type = REDUCE[node.function]
    else:
        message = operation.reduce_ext
        message.function = node.function
        w.warn(node.name, f"other readers have no reduction by {node.function}")
    w.block(node, message, node.inputs[0])
    w.reading(node.inputs[0], message.input_val)
    w.making(node, 0, message.output_val)


def _accumulate(w: ProtoWriter, node: n.Accumulate) -> None:
    operation = w.new(node)
    if node.function == "sum" and node.order <= PUBLIC_ORDER:
        message = operation.spacc
    else:
        message = operation.spacc_ext
        message.function = node.function
        beyond = f"by {node.function}" if node.function != "sum" else f"of order {node.order}, only up to {PUBLIC_ORDER}"
        w.warn(node.name, f"other readers have no accumulation {beyond}")
    w.block(node, message, node.inputs[-1])
    message.order = node.order
    *outer, inner, val = node.inputs
    w.reading(inner, message.input_inner_crd)
    for crd in reversed(outer):
        w.reading(crd, message.input_outer_crds.add())
    w.reading(val, message.input_val)
    kept = [message.output_outer_crds.add() for _ in range(node.order - 1)]
    for output, stream in enumerate(reversed(kept)):
        w.making(node, output, stream)
    w.making(node, node.order - 1, message.output_inner_crd)
    w.making(node, node.order, message.output_val)


def _drop(w: ProtoWriter, node: n.Drop) -> None:
    operation = w.new(node)
    *crds, last = node.inputs
    if w.public.reads[n.Edge(node.name, len(crds))] == ():
        both = operation.coord_drop
        w.reading(crds[0], both.input_outer_crd)
        w.reading(crds[1], both.input_inner_crd)
        w.making(node, 0, both.output_outer_crd)
        w.making(node, 1, both.output_inner_crd)
        return
    message = operation.drop
    if node.value is not None:
        message.value = node.value
    for crd in crds:
        w.reading(crd, message.input_crds.add())
    w.reading(last, stream_of_kind(message.input, w.kind(last)))
    for output in range(len(crds)):
        w.making(node, output, message.output_crds.add())
    w.making(node, len(crds), stream_of_kind(message.output, w.kind(last)))
    w.warn(node.name, "other readers drop coordinates by coordinates, not by values")


def _fork(w: ProtoWriter, node: n.Fork) -> None:
    bundle = getattr(w.new(node).fork, w.kind(node.inputs[0]))
    w.reading(node.inputs[0], bundle.input)
    for output in range(node.lanes):
        w.making(node, output, bundle.outputs.add())


def _merge(w: ProtoWriter, node: n.Merge) -> None:
    operation = w.new(node)
    message = operation.join if node.levels == 1 else operation.join_ext
    if node.levels != 1:
        message.levels = node.levels
        w.warn(node.name, "other readers take whole fibers of the lanes in turn, which are not the elements here")
    bundle = getattr(message, w.kind(node.inputs[0]))
    for port in node.inputs:
        w.reading(port, bundle.inputs.add())
    w.making(node, 0, bundle.output)


def _write(w: ProtoWriter, node: n.WriteLevel) -> None:
    tensor = w.declared[node.tensor]
    message = w.new(node).fiber_write
    message.tensor, message.mode_val = node.tensor, str(node.level)
    level = tensor.format.levels[node.level]
    w.storing(node.name, level)
    message.format = level.public or level.text
    message.size = str(tensor.shape[tensor.format.order[node.level]])
    w.reading(node.inputs[0], message.input_crd)


def write_node(w: ProtoWriter, node: n.Primitive) -> None:
    """Fill in the messages of a node by its writer, by its row in `WIRE_FORMATS`, or as a `Primitive`."""
    if writer := WRITERS.get(type(node)):
        writer(w, node)
    elif wire := BY_PRIMITIVE.get(type(node)):
        _field_by_field(w, node, wire)
    else:
        _primitive(w, node)


def _field_by_field(w: ProtoWriter, node: n.Primitive, wire: WireFormat) -> None:
    message = getattr(w.new(node), wire.operation)
    for attribute in n.ATTRIBUTES[type(node)]:
        value = getattr(node, attribute.field)
        if attribute.type == "integers":
            getattr(message, attribute.field).extend(value)
        else:
            setattr(message, attribute.field, value)
    _connect(w, node, message, wire.inputs, wire.outputs)
    if not wire.public:
        w.warn(node.name, f"other readers have no {wire.operation}")


def _primitive(w: ProtoWriter, node: n.Primitive) -> None:
    message = w.new(node).primitive
    message.op, message.attributes = node.op, show_attributes(node)
    _connect(w, node, message, ("inputs",), ("outputs",))
    w.warn(node.name, f"other readers have no {node.op}")


def _connect(w: ProtoWriter, node: n.Primitive, message: Any, inputs: Sequence[str], outputs: Sequence[str]) -> None:
    """Fill in the streams of a node in the fields of these names."""
    for port, stream in zip(node.inputs, new_streams(message, inputs, [w.kind(p) for p in node.inputs]), strict=True):
        w.reading(port, stream)
    ports = [n.Port(node.name, k) for k in range(len(node.port_names()))]
    for k, stream in enumerate(new_streams(message, outputs, [w.kind(p) for p in ports])):
        w.making(node, k, stream)


WRITERS: Mapping[type[n.Node], Callable[[ProtoWriter, Any], None]] = {
    n.Scan: _scan,
    n.Locate: _locate,
    n.Join: _join,
    n.Repeat: _repeat,
    n.Load: _load,
    n.Alu: _alu,
    n.Reduce: _reduce,
    n.Accumulate: _accumulate,
    n.Drop: _drop,
    n.Fork: _fork,
    n.Merge: _merge,
    n.WriteLevel: _write,
}
"""The writers of the primitives that have messages of the public schema, whose fields differ from those of the node."""
