"""The reader of a protobuf message, ours or another tool's, as nodes of a graph (`proto` has the API).

Broadcasts become fan-out and repeat signals the streams that they are made from; operations may stand in any order. A public `Locate`
also passes its inputs on: where those outputs are read, a join with one side stands for that (it takes as long).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from heapq import heappop, heappush
from typing import Any, NoReturn

from fuseflow.errors import GraphError, did_you_mean
from fuseflow.samml import nodes as n
from fuseflow.samml import tortilla_pb2 as pb
from fuseflow.samml.proto_streams import StreamKey, bundle, chosen, output_streams, public_operation, stream_key
from fuseflow.samml.proto_wire import BY_OPERATION, BY_PRIMITIVE, WireFormat, stored_streams
from fuseflow.samml.proto_write import BINARY, REDUCE, SCALAR, UNARY, WRITERS
from fuseflow.samml.proto_writer import StreamMessage
from fuseflow.samml.public_streams import THROUGH
from fuseflow.samml.text import read_attributes
from fuseflow.tensors import Format

FOLDED_OPERATIONS = ("broadcast", "repeatsig")
GENERIC_PRIMITIVES: dict[str, type[n.Primitive]] = {
    kind.op: kind for kind in n.NODE_TYPES if kind not in WRITERS and kind not in BY_PRIMITIVE
}
"""The primitives that a message `Primitive` can hold, by name: all that have no message of their own."""
UNSUPPORTED = ("coord_hold", "coord_mask", "gen_ref", "concat", "func")


class ProtoReader:
    """A reader that makes nodes from operations. `messages` holds the operations by the names of their nodes."""

    def __init__(self, message: pb.ComalGraph) -> None:
        self.name = message.name or message.graph.name or "graph"
        self.operations = list(message.graph.operators)
        self.declares = bool(message.tensors)
        self.ports_by_stream: dict[StreamKey, n.Port] = {}
        self.aliases: dict[StreamKey, StreamKey] = {}  # a stream that is another one: broadcasts, repeat signals
        self.by_id: dict[int, list[StreamKey]] = {}
        self.root: n.Root | None = None
        self.messages: dict[str, Any] = {}

    def run(self) -> tuple[n.Primitive, ...]:
        """Return the nodes, inputs first, otherwise in the order of the operations."""
        names = self._names()
        for operation, name in zip(self.operations, names, strict=True):
            self._announce(operation, name)
        nodes: list[n.Primitive] = []
        for operation, name in zip(self.operations, names, strict=True):
            kind = str(operation.WhichOneof("op"))
            if kind not in FOLDED_OPERATIONS:
                nodes += self._read(public_operation(kind), name, getattr(operation, kind))
        return self._sorted(_checked(self.name, [self.root, *nodes] if self.root else nodes))

    def _read(self, kind: str, name: str, message: Any) -> Sequence[n.Primitive]:
        """Return the nodes that an operation stands for."""
        if kind == "primitive":
            return [_primitive(self, name, message)]
        if wire := BY_OPERATION.get(kind):
            return [_field_by_field(self, name, message, wire)]
        nodes = READERS[kind](self, name, message)
        return [nodes] if isinstance(nodes, n.Node) else nodes

    def _names(self) -> list[str]:
        """Return a name for each operation: its own if no other node has it, else with its id. Folded operations make no node."""
        names = [_legal(op.name or op.WhichOneof("op") or "operation") for op in self.operations]
        nodes = [k for k, op in enumerate(self.operations) if op.WhichOneof("op") not in FOLDED_OPERATIONS]
        shared = Counter(names[k] for k in nodes)
        used = {name for name, count in shared.items() if count == 1}
        for k in nodes:
            if shared[names[k]] > 1:
                names[k] += f"_{self.operations[k].id}"
                while names[k] in used:
                    names[k] += "'"
                used.add(names[k])
        return names

    def _announce(self, operation: pb.Operation, name: str) -> None:
        """Record the streams that an operation makes."""
        kind = operation.WhichOneof("op")
        if kind is None:
            raise GraphError(f"graph `{self.name}`, operation `{name}`: not an operation of the schema")
        if kind in UNSUPPORTED:
            raise GraphError(f"graph `{self.name}`, operation `{name}`: {kind} is not executed", hint=_INSTEAD.get(kind, ""))
        message = getattr(operation, kind)
        if kind == "broadcast":
            connected = bundle(message)
            for stream in connected.outputs:
                self._alias(stream, connected.input)
        elif kind == "repeatsig":
            self._alias(message.output_rep_sig, message.input_crd)
        else:
            for output, stream in enumerate(output_streams(public_operation(kind), message)):
                self._make(stream, name, output)
            if kind == "locate":
                self._make(message.output_crd, name + THROUGH, 0)
                self._make(message.output_ref2, name + THROUGH, 1)
            self.messages[name] = message

    def _alias(self, stream: StreamMessage, source: StreamMessage) -> None:
        self.aliases[stream_key(stream)] = stream_key(source)
        self.by_id.setdefault(stream.id.id, []).append(stream_key(stream))

    def _make(self, stream: StreamMessage, name: str, output: int) -> None:
        key = stream_key(stream)
        if key[1] == 0:
            return
        if key in self.ports_by_stream:
            raise GraphError(f"graph `{self.name}`: `{self.ports_by_stream[key].node}` and `{name}` both make stream {key[1]}")
        self.ports_by_stream[key] = n.Port(name, output)
        self.by_id.setdefault(key[1], []).append(key)

    def _sorted(self, nodes: Sequence[n.Primitive]) -> tuple[n.Primitive, ...]:
        by_name = {node.name: node for node in nodes}
        position = {name: k for k, name in enumerate(by_name)}
        readers: dict[str, list[str]] = {name: [] for name in by_name}
        unmet = {node.name: len(node.inputs) for node in nodes}
        for node in nodes:
            for port in node.inputs:
                readers[port.node].append(node.name)
        ready = [position[name] for name, count in unmet.items() if not count]
        names, ordered = list(by_name), list[n.Primitive]()
        while ready:
            name = names[heappop(ready)]
            ordered.append(by_name[name])
            for reader in readers[name]:
                unmet[reader] -= 1
                if not unmet[reader]:
                    heappush(ready, position[reader])
        if len(ordered) < len(nodes):
            self._refuse_circles(readers, position)
        return tuple(ordered)

    def _refuse_circles(self, readers: Mapping[str, Sequence[str]], position: Mapping[str, int]) -> NoReturn:
        import networkx as nx  # takes long to load, and only a graph that is refused needs it

        reads: nx.DiGraph[str] = nx.DiGraph((name, reader) for name, those in readers.items() for reader in those)
        circles = [c for c in nx.strongly_connected_components(reads) if len(c) > 1 or reads.has_edge(*c, *c)]
        names = ", ".join(f"`{name}`" for name in sorted(set().union(*circles), key=position.__getitem__))
        raise GraphError(f"graph `{self.name}`: streams run in a circle through {names}")

    # What the readers of operations use ------------------------------------------------------------------------------------------

    def port(self, name: str, stream: StreamMessage) -> n.Port:
        """Return the port that a stream comes from. A stream of another kind is taken where none of the right kind has the id."""
        key = stream_key(stream)
        for _ in range(len(self.aliases) + 2):
            if key not in self.aliases and key not in self.ports_by_stream:
                others = self.by_id.get(key[1], [])
                if key[1] == 0 or len(others) != 1:
                    self.refuse(name, f"reads stream {key[1]}, which nothing makes" if key[1] else "an input is not connected")
                key = others[0]
            if key in self.ports_by_stream:
                return self.ports_by_stream[key]
            key = self.aliases[key]
        self.refuse(name, f"stream {key[1]} is a broadcast of itself")

    def ports(self, name: str, streams: Iterable[StreamMessage]) -> tuple[n.Port, ...]:
        return tuple(self.port(name, stream) for stream in streams)

    def port_or_root(self, name: str, stream: StreamMessage, root: bool) -> n.Port:
        """Return the port of an input. An unconnected input that is marked as the root's comes from an implicit root."""
        if stream.id.id or not root:
            return self.port(name, stream)
        self.root = self.root or n.Root("implicit_root", ())
        return n.Port(self.root.name)

    def refuse(self, name: str, why: str) -> NoReturn:
        raise GraphError(f"graph `{self.name}`, operation `{name}`: {why}")

    def sized(self, name: str, message: Any) -> None:
        """Refuse streams whose elements have no shape that is known here: tiles that nothing declares, or vectors of another tool."""
        if self.declares or message.stream_shape == 1:
            return
        if message.blocked and not message.stream_shape:
            self.refuse(name, "is `blocked`, and `stream_shape` does not say how large the tiles are")
        if message.stream_shape and not message.blocked:
            self.refuse(name, f"streams of vectors of {message.stream_shape} are not executed; tiles are `blocked`")


def _checked(graph: str, nodes: list[n.Primitive]) -> list[n.Primitive]:
    """Refuse streams that their node does not make, as those of a joiner with more outputs than inputs, or a wrong `signal`."""
    output_counts = {node.name: len(node.port_names()) for node in nodes}
    for node in nodes:
        for port in node.inputs:
            if not 0 <= port.output < output_counts.get(port.node, 0):
                raise GraphError(
                    f"graph `{graph}`, operation `{node.name}`: reads output {port.output} of `{port.node}`, which has none"
                )
    return nodes


def declared_graph(name: str, message: pb.ComalGraph, nodes: tuple[n.Primitive, ...]) -> n.Graph:
    """Return the graph of `nodes` with what the extension fields of a message declare."""
    return n.Graph(
        name,
        tuple(map(_declared_tensor, message.tensors)),
        nodes,
        tuple(message.outputs),
        tuple(n.Edge(edge.node, edge.input) for edge in message.fiber_fifos),
        tuple((n.Edge(d.edge.node, d.edge.input), d.depth) for d in message.depths),
    )


def _declared_tensor(t: pb.Tensor) -> n.TensorDecl:
    format = Format.of(*t.levels, order=tuple(t.order))
    decl = n.TensorDecl(t.name, tuple(t.shape), format, t.dtype, t.fill, tuple(t.tile))
    return replace(decl, resident=t.resident, buffer=t.buffer, preload=t.preload)


_INSTEAD = {"func": "name the operators that the intrinsic stands for"}


def _legal(name: str) -> str:
    return re.sub(r"[\s()\[\],;#=]", "_", name)


def _primitive(r: ProtoReader, name: str, m: pb.Primitive) -> n.Primitive:
    if m.op not in GENERIC_PRIMITIVES:
        raise GraphError(
            f"graph `{r.name}`, operation `{name}`: the primitive `{m.op}` is not known",
            hint=did_you_mean(m.op, GENERIC_PRIMITIVES),
        )
    try:
        values = read_attributes(n.ATTRIBUTES[GENERIC_PRIMITIVES[m.op]], m.attributes.split())
    except ValueError:
        r.refuse(name, f"cannot read the attributes `{m.attributes}` of {m.op}")
    return GENERIC_PRIMITIVES[m.op](name, r.ports(name, stored_streams(m, ("inputs",))), **values)


def _field_by_field(r: ProtoReader, name: str, m: Any, wire: WireFormat) -> n.Primitive:
    own = n.ATTRIBUTES[wire.primitive]
    values: dict[str, Any] = {a.field: tuple(getattr(m, a.field)) if a.type == "integers" else getattr(m, a.field) for a in own}
    return wire.primitive(name, r.ports(name, stored_streams(m, wire.inputs)), **values)


def _scan(r: ProtoReader, name: str, m: pb.FiberLookup) -> n.Primitive:
    return n.Scan(name, (r.port_or_root(name, m.input_ref, m.root),), m.tensor, m.mode, m.sequential)


def _locate(r: ProtoReader, name: str, m: pb.Locate) -> list[n.Primitive]:
    crd = r.port(name, m.input_crd)
    if m.tensor:
        parent = () if m.outermost else (r.port(name, m.parent_ref if m.HasField("parent_ref") else m.input_ref),)
        nodes: list[n.Primitive] = [n.Locate(name, (crd, *parent), m.tensor, m.level)]
    else:
        nodes = [n.Locate(name, (crd,), "", 0)]
    if m.output_ref2.id.id or m.output_crd.id.id:
        nodes.append(n.Join(name + THROUGH, (crd, r.port(name, m.input_ref)), "intersect", (1,)))
    return nodes


def _join(r: ProtoReader, name: str, m: pb.Joiner) -> n.Primitive:
    counts = tuple(m.payloads) or tuple(int(pair.HasField("in_ref")) for pair in m.input_pairs)
    if sum(max(count, 1) for count in counts) != len(m.input_pairs):
        r.refuse(name, f"has {len(m.input_pairs)} input pairs, its payload counts are {counts}")
    pairs = iter(m.input_pairs)
    inputs: list[n.Port] = []
    for count in counts:
        side = [next(pairs) for _ in range(max(count, 1))]
        inputs.append(r.port(name, side[0].crd))
        inputs += [r.port(name, chosen(pair.in_ref, "stream")) for pair in side[:count]]
    if m.kind:
        return n.Join(name, tuple(inputs), m.kind, counts)  # type: ignore[arg-type]  # for `verify` to judge
    return n.Join(name, tuple(inputs), "union" if m.join_type == pb.Joiner.UNION else "intersect", counts)


def _repeat(r: ProtoReader, name: str, m: pb.Repeat) -> n.Primitive:
    stream = r.port_or_root(name, chosen(m, "input_ref"), m.root)
    if m.HasField("signal"):
        return n.Repeat(name, (stream, n.Port(m.signal.node, m.signal.output)))
    return n.Repeat(name, (stream, r.port(name, chosen(m, "input_rep_sig"))))


def _load(r: ProtoReader, name: str, m: pb.ArrayVals) -> n.Primitive:
    r.sized(name, m)
    return n.Load(name, (r.port(name, m.input_ref),), m.tensor, m.sequential)


def _alu(r: ProtoReader, name: str, m: pb.ALU) -> n.Primitive:
    r.sized(name, m)
    inputs = r.ports(name, m.vals.inputs)
    if m.function:
        operands = tuple(n.Operand(slot.value, slot.constant) for slot in m.operands)
        return n.Alu(name, inputs, m.function, operands)
    if m.WhichOneof("conn") == "crds" or len(m.stages) != 1:
        r.refuse(name, "an ALU on coordinates, or of another number of stages than one, is not executed")
    op, slot = m.stages[0].op, n.Operand(0.0)
    if len(inputs) == 2 and (op in _BINARY or op == pb.ALU.ELEMMUL):
        return n.Alu(name, inputs, _BINARY.get(op, "mul"), (slot, slot))
    if len(inputs) == 1 and op in _UNARY:
        return n.Alu(name, inputs, _UNARY[op], (slot,))
    if len(inputs) == 1 and op == pb.ALU.MAX and m.scalar == 0:
        return n.Alu(name, inputs, "relu", (slot,))
    if len(inputs) == 1 and op in _SCALAR:
        return n.Alu(name, inputs, _SCALAR[op], (slot, n.Operand(m.scalar, constant=True)))
    r.refuse(name, f"ALU operation {op} of {len(inputs)} streams is not executed")


_BINARY, _UNARY, _SCALAR, _REDUCE = (
    {v: k for k, v in table.items()} for table in ({**BINARY, "max": pb.ALU.MAX}, UNARY, SCALAR, REDUCE)
)


def _reduce(r: ProtoReader, name: str, m: pb.Reduce) -> n.Primitive:
    r.sized(name, m)
    function = m.function or _REDUCE.get(m.reduce_type, "sum")  # ADDSUM differs from ADD on tiles only
    return n.Reduce(name, (r.port(name, m.input_val),), function)


def _accumulate(r: ProtoReader, name: str, m: pb.SparseAccumulator) -> n.Primitive:
    r.sized(name, m)
    inputs = r.ports(name, (*reversed(m.input_outer_crds), m.input_inner_crd, m.input_val))
    return n.Accumulate(name, inputs, m.function or "sum", m.order or len(m.input_outer_crds))


def _coord_drop(r: ProtoReader, name: str, m: pb.CoordDrop) -> n.Primitive:
    # An outer coordinate leaves when no inner one is below it: the inner coordinates are their own values.
    outer, inner = r.ports(name, (m.input_outer_crd, m.input_inner_crd))
    return n.Drop(name, (outer, inner, inner))


def _drop(r: ProtoReader, name: str, m: pb.Drop) -> n.Primitive:
    inputs = r.ports(name, (*m.input_crds, chosen(m.input, "stream")))
    return n.Drop(name, inputs, m.value if m.HasField("value") else None)


def _fork(r: ProtoReader, name: str, m: pb.Fork) -> n.Primitive:
    return n.Fork(name, (r.port(name, bundle(m).input),), len(bundle(m).outputs))


def _merge(r: ProtoReader, name: str, m: pb.Join) -> n.Primitive:
    if not bundle(m).inputs:
        r.refuse(name, "joins no lanes")
    return n.Merge(name, r.ports(name, bundle(m).inputs), m.levels if m.HasField("levels") else 1)


def _write(r: ProtoReader, name: str, m: pb.FiberWrite) -> n.Primitive:
    return n.WriteLevel(name, (r.port(name, m.input_crd),), m.tensor, int(m.mode_val) if m.mode_val.isdecimal() else -1)


READERS: dict[str, Callable[[ProtoReader, str, Any], n.Primitive | list[n.Primitive]]] = {
    "fiber_lookup": _scan,
    "locate": _locate,
    "joiner": _join,
    "repeat": _repeat,
    "array": _load,
    "alu": _alu,
    "reduce": _reduce,
    "spacc": _accumulate,
    "coord_drop": _coord_drop,
    "drop": _drop,
    "fork": _fork,
    "join": _merge,
    "fiber_write": _write,
}
