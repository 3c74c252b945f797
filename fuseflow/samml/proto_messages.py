"""The table of the protobuf messages of primitives, with the work that readers of the public schema cannot do.

Where a public message can express a node, it is used; extension fields hold the rest, so that fuseflow's reader loses nothing. A
primitive without a row is written as a message `Primitive`, with attributes as in the text form. So a new primitive needs no row.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fuseflow.errors import GraphError, did_you_mean
from fuseflow.samml import nodes as n
from fuseflow.samml import tortilla_pb2 as pb
from fuseflow.samml.proto_format import WireFormat, member
from fuseflow.samml.proto_reader import ProtoReader
from fuseflow.samml.proto_writer import ProtoWriter
from fuseflow.samml.public_streams import located
from fuseflow.samml.text import read_attributes, show_attributes
from fuseflow.tile_ops import TileShape

Inputs = tuple[n.Port, ...]
Values = Mapping[str, Any]

# Levels ---------------------------------------------------------------------------------------------------------------------


def _unknown_level(w: ProtoWriter, node: n.Scan | n.WriteLevel) -> str:
    """Return what other readers cannot do with a level: they know `compressed` levels, and take every other level for dense."""
    level = w.declared[node.tensor].format.levels[node.level]
    return f"have no {level.text} level" if level.public is None else ""


def _fill_scan(w: ProtoWriter, node: n.Scan | n.WriteLevel, m: Any) -> None:
    level = w.declared[node.tensor].format.levels[node.level]
    m.format = level.public or level.text


def _fill_write(w: ProtoWriter, node: n.WriteLevel, m: Any) -> None:
    _fill_scan(w, node, m)
    m.mode_val, m.size = str(node.level), str(w.declared[node.tensor].size(node.level))


def _unknown_locate(w: ProtoWriter, node: n.Locate) -> str:
    level = w.declared[node.tensor].format.levels[node.level]
    return "" if level.full else f"locate in full levels only, not in a {level.text} one"


def _fill_locate(w: ProtoWriter, node: n.Locate, m: Any) -> None:
    crd, *parent = node.inputs
    if join := w.public.passing.get(node.name):
        w.making(join, 0, m.output_crd)
        w.making(join, 1, m.output_ref2)
    if w.kind(crd) != "crd":
        w.warn(node.name, "other readers locate by coordinates as they are scanned, not by repeated ones")
    if not parent:
        m.outermost = True
        passed = w.public.reads[n.Edge(node.name, 0)][1:]
        for ref in passed:
            w.reading(ref, m.input_ref)
        if not passed:
            w.warn(node.name, "other readers need references beside the coordinates")
    elif node.level == 0:
        w.reading(parent[0], m.input_ref)
    else:
        w.reading(parent[0], m.parent_ref)
        w.warn(node.name, f"other readers locate below reference 0 only, not below those of `{node.tensor}.{node.level - 1}`")


def _complete_locate(r: ProtoReader, name: str, m: Any, inputs: Inputs) -> Values:
    if not m.tensor:
        return {"level": 0}
    if m.outermost:
        return {}
    return {"inputs": (*inputs, r.port(name, m.parent_ref if m.HasField("parent_ref") else m.input_ref))}


# Joins and drops ------------------------------------------------------------------------------------------------------------

JOIN = {"intersect": pb.Joiner.INTERSECT, "union": pb.Joiner.UNION}


def _fill_join(w: ProtoWriter, node: n.Join, m: Any) -> None:
    m.join_type = JOIN.get(node.kind, 0)
    m.payloads.extend(node.payloads)
    for crd, payloads in node.sides():
        for payload in payloads:
            pair = m.input_pairs.add()
            w.reading(node.inputs[crd], pair.crd)
            w.reading(node.inputs[payload], member(pair.in_ref, "stream", w.kind(node.inputs[payload])))
        if not payloads:
            w.reading(node.inputs[crd], m.input_pairs.add().crd)
            w.warn(node.name, "other readers need a payload on every side of a join")


def _complete_join(r: ProtoReader, name: str, m: Any, _: Inputs) -> Values:
    counts = tuple(m.payloads) or tuple(int(pair.HasField("in_ref")) for pair in m.input_pairs)
    if sum(max(count, 1) for count in counts) != len(m.input_pairs):
        r.refuse(name, f"has {len(m.input_pairs)} input pairs, its payload counts are {counts}")
    pairs = iter(m.input_pairs)
    inputs: list[n.Port] = []
    for count in counts:
        side = [next(pairs) for _ in range(max(count, 1))]
        inputs.append(r.port(name, side[0].crd))
        inputs += [r.port(name, member(pair.in_ref, "stream")) for pair in side[:count]]
    kind = m.kind or ("union" if m.join_type == pb.Joiner.UNION else "intersect")
    return {"inputs": tuple(inputs), "kind": kind, "payloads": counts}


# Moves and lanes ------------------------------------------------------------------------------------------------------------


def _fill_repeat(w: ProtoWriter, node: n.Repeat, m: Any) -> None:
    stream, signal = node.inputs
    (public_signal,) = w.public.reads[n.Edge(node.name, 1)]
    if w.kind(stream) == "crd":
        w.warn(node.name, "other readers repeat references and values, not coordinates")
    if w.kind(public_signal) == "crd":
        operation = pb.Operation(name=node.name)
        w.operations[node.name].insert(0, operation)
        signals = operation.repeatsig
        w.reading(signal, signals.input_crd)
        inner = n.Port(node.name, 1)  # between the two messages, no stream of the graph
        signals.output_rep_sig.name = m.rep_ref.name = f"{node.name}.signal"
        w.makers[inner], w.reads[inner] = signals.output_rep_sig, [m.rep_ref]
        w.warn(node.name, "other readers repeat by references or values, and these coordinates have none beside them")
    else:
        w.reading(public_signal, member(m, "input_rep_sig", w.kind(public_signal)))
        if public_signal != signal:
            m.signal.node, m.signal.output = signal.node, signal.output


def _complete_repeat(r: ProtoReader, name: str, m: Any, inputs: Inputs) -> Values:
    if m.HasField("signal"):
        return {"inputs": (*inputs, n.Port(m.signal.node, m.signal.output))}
    return {"inputs": (*inputs, r.port(name, member(m, "input_rep_sig")))}


def _complete_merge(r: ProtoReader, name: str, m: Any, inputs: Inputs) -> Values:
    if not inputs:
        r.refuse(name, "joins no lanes")
    return {} if m.HasField("levels") else {"levels": 1}


# Values ---------------------------------------------------------------------------------------------------------------------

BINARY = {"add": pb.ALU.ADD, "sub": pb.ALU.SUB, "mul": pb.ALU.MUL, "div": pb.ALU.DIV}
UNARY = {"exp": pb.ALU.EXP, "sin": pb.ALU.SIN, "cos": pb.ALU.COS, "rsqrt": pb.ALU.RSQRT, "sigmoid": pb.ALU.SIGMOID}
PARTIAL = {"fold_sum": "add", "fold_prod": "mul"}
"""The public operator that equals each operator which combines the partial results of lanes."""
SCALAR = {"add": pb.ALU.SCALARADD, "mul": pb.ALU.SCALARMUL, "div": pb.ALU.SCALARDIV, "max": pb.ALU.MAX}
BLOCKED = {"matmul": pb.ALU.MUL, "mul": pb.ALU.ELEMMUL}
REDUCE = {"sum": pb.Reduce.ADD, "max": pb.Reduce.MAX}
PUBLIC_ORDER = 2
"""The highest order of an accumulate that other readers execute."""


def _fill_load(w: ProtoWriter, node: n.Load, m: Any) -> None:
    if w.facts[node.inputs[0]].nullable and w.declared[node.tensor].fill != 0:
        w.warn(node.name, f"other readers take absent entries of `{node.tensor}` as 0")


def _fill_alu(w: ProtoWriter, node: n.Alu, m: Any) -> None:
    if public := _public_alu(w, node):
        op, m.scalar = public
        m.stages.add(op=op)
    fills = [slot.value for slot in node.operands if not slot.constant]
    if any(fill != 0 and w.facts[port].nullable for fill, port in zip(fills, node.inputs, strict=True)):
        w.warn(node.name, "other readers take absent operands as 0")


def _public_alu(w: ProtoWriter, node: n.Alu) -> tuple[int, float] | None:
    """Return the public operation that does the same as a node on its input streams, and its scalar; None if there is none."""
    tiles: set[TileShape] = {w.facts[port].type.tile for port in node.inputs}
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


def _complete_alu(r: ProtoReader, name: str, m: Any, inputs: Inputs) -> Values:
    if m.function:
        return {}
    if m.WhichOneof("conn") == "crds" or len(m.stages) != 1:
        r.refuse(name, "an ALU on coordinates, or of another number of stages than one, is not executed")
    op, slot = m.stages[0].op, n.Operand(0.0)
    if len(inputs) == 2 and (op in _BINARY or op == pb.ALU.ELEMMUL):
        return {"function": _BINARY.get(op, "mul"), "operands": (slot, slot)}
    if len(inputs) == 1 and op in _UNARY:
        return {"function": _UNARY[op], "operands": (slot,)}
    if len(inputs) == 1 and op == pb.ALU.MAX and m.scalar == 0:
        return {"function": "relu", "operands": (slot,)}
    if len(inputs) == 1 and op in _SCALAR:
        return {"function": _SCALAR[op], "operands": (slot, n.Operand(m.scalar, constant=True))}
    r.refuse(name, f"ALU operation {op} of {len(inputs)} streams is not executed")


_BINARY, _UNARY, _SCALAR, _REDUCE = (
    {v: k for k, v in table.items()} for table in ({**BINARY, "max": pb.ALU.MAX}, UNARY, SCALAR, REDUCE)
)


def _unknown_accumulate(w: ProtoWriter, node: n.Accumulate) -> str:
    if node.function != "sum":
        return f"have no accumulation by {node.function}"
    return f"have no accumulation of order {node.order}, only up to {PUBLIC_ORDER}" if node.order > PUBLIC_ORDER else ""


# Primitives without a message of their own ----------------------------------------------------------------------------------


def _fill_primitive(w: ProtoWriter, node: n.Primitive, m: Any) -> None:
    m.op, m.attributes = node.op, show_attributes(node)


def _complete_primitive(r: ProtoReader, name: str, m: Any, inputs: Inputs) -> Values:
    try:
        return read_attributes(n.ATTRIBUTES[GENERIC[m.op].primitive], m.attributes.split())
    except ValueError:
        r.refuse(name, f"cannot read the attributes `{m.attributes}` of {m.op}")


def _refuse_unknown(r: ProtoReader, name: str, m: Any, inputs: Inputs) -> Values:
    hint = did_you_mean(m.op, GENERIC)
    raise GraphError(f"graph `{r.name}`, operation `{name}`: the primitive `{m.op}` is not known", hint=hint)


# The table ------------------------------------------------------------------------------------------------------------------

COORD_DROP = WireFormat(
    "coord_drop",
    n.Drop,
    ("input_outer_crd", "input_inner_crd"),
    ("output_outer_crd", "output_inner_crd"),
    # An outer coordinate leaves when no inner one is below it: the inner coordinates are their own values.
    complete=lambda r, name, m, inputs: {"inputs": (*inputs, inputs[1])},
)
"""The message of a drop that depends on coordinates alone."""

_LEVELS = ("input_crds", "input_val"), ("output_crds", "output_val")
FORMATS: tuple[WireFormat, ...] = (
    WireFormat("root", n.Root, (), ("output_ref",)),
    WireFormat(
        "fiber_lookup",
        n.Scan,
        ("input_ref",),
        ("output_crd", "output_ref"),
        renamed={"level": "mode"},
        beyond=_unknown_level,
        fill=_fill_scan,
    ),
    WireFormat("range", n.Range, ("input_ref",), ("output_crd",)),
    WireFormat(
        "locate",
        n.Locate,
        ("input_crd",),
        ("output_ref1",),
        beyond=_unknown_locate,
        fill=_fill_locate,
        complete=_complete_locate,
    ),
    WireFormat(
        "joiner",
        n.Join,
        (),
        ("output_crd", "output_refs"),
        extra=("kind",),
        beyond=lambda w, node: "" if node.kind in JOIN else f"have no {node.kind} join",
        fill=_fill_join,
        complete=_complete_join,
    ),
    WireFormat("align", n.Align, ("old_crd", "new_crd", "input"), ("output",)),
    WireFormat("repeat", n.Repeat, ("input_ref",), ("output_ref",), fill=_fill_repeat, complete=_complete_repeat),
    WireFormat("array", n.Load, ("input_ref",), ("output_val",), fill=_fill_load),
    WireFormat(
        "alu",
        n.Alu,
        ("vals.inputs",),
        ("vals.output",),
        beyond=lambda w, node: "" if _public_alu(w, node) else f"have no `{node.function}` of these operands",
        fill=_fill_alu,
        complete=_complete_alu,
    ),
    WireFormat(
        "reduce",
        n.Reduce,
        ("input_val",),
        ("output_val",),
        extra=("function",),
        beyond=lambda w, node: "" if node.function in REDUCE else f"have no reduction by {node.function}",
        fill=lambda w, node, m: setattr(m, "reduce_type", REDUCE.get(node.function, 0)),
        # ADDSUM differs from ADD on tiles only.
        complete=lambda r, name, m, inputs: {"function": m.function or _REDUCE.get(m.reduce_type, "sum")},
    ),
    WireFormat(
        "spacc",
        n.Accumulate,
        ("~input_outer_crds", "input_inner_crd", "input_val"),
        ("~output_outer_crds", "output_inner_crd", "output_val"),
        extra=("function",),
        beyond=_unknown_accumulate,
        complete=lambda r, name, m, inputs: {"function": m.function or "sum", "order": m.order or len(m.input_outer_crds)},
    ),
    WireFormat("permute", n.Permute, *_LEVELS),
    COORD_DROP,
    WireFormat(
        "drop",
        n.Drop,
        ("input_crds", "input"),
        ("output_crds", "output"),
        beyond=lambda w, node: "drop coordinates by coordinates, not by values",
    ),
    WireFormat("select", n.Select, *_LEVELS),
    WireFormat("flatten", n.Flatten, ("outer_crd", "inner_crd"), ("output_crd",)),
    WireFormat("split", n.SplitLevel, ("input_crd",), ("outer_crd", "inner_crd")),
    WireFormat(
        "fork",
        n.Fork,
        ("conn.input",),
        ("conn.outputs",),
        complete=lambda r, name, m, inputs: {"lanes": len(member(m, "conn").outputs)},
    ),
    WireFormat(
        "join",
        n.Merge,
        ("conn.inputs",),
        ("conn.output",),
        extra=("levels",),
        beyond=lambda w, node: "take whole fibers of the lanes in turn, which are not the elements here" * (node.levels != 1),
        complete=_complete_merge,
    ),
    WireFormat(
        "fiber_write",
        n.WriteLevel,
        ("input_crd",),
        beyond=_unknown_level,
        fill=_fill_write,
        complete=lambda r, name, m, inputs: {"level": int(m.mode_val) if m.mode_val.isdecimal() else -1},
    ),
    WireFormat("val_write", n.WriteValues, ("input_val",)),
)
BY_OPERATION: Mapping[str, WireFormat] = {wire.operation: wire for wire in FORMATS}
BY_PRIMITIVE: Mapping[type[n.Node], WireFormat] = {wire.primitive: wire for wire in FORMATS}
GENERIC: Mapping[str, WireFormat] = {
    kind.op: WireFormat("primitive", kind, ("inputs",), ("outputs",), fill=_fill_primitive, complete=_complete_primitive)
    for kind in n.NODE_TYPES
    if kind not in BY_PRIMITIVE
}
"""The formats of the primitives without a message in the table, by the name of the primitive."""
UNKNOWN = WireFormat("primitive", n.Root, (), ("outputs",), complete=_refuse_unknown)
"""The format of a message `Primitive` whose primitive is unknown: reading it raises `GraphError`."""


def node_format(w: ProtoWriter, node: n.Primitive) -> WireFormat | None:
    """Return the format of the message of a node, or None if the message of another node covers it."""
    match node:
        case n.Join() if w.public.passing.get(located(node)) is node:
            return None  # the message of the locate says it
        case n.Drop() if w.public.reads[n.Edge(node.name, len(node.inputs) - 1)] == ():
            return COORD_DROP
    return BY_PRIMITIVE.get(type(node)) or GENERIC[node.op]


def message_format(operation: str, m: Any) -> WireFormat:
    """Return the format of a message, given the public name of its operation."""
    return BY_OPERATION.get(operation) or GENERIC.get(m.op, UNKNOWN)
