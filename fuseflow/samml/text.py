"""The text form of a graph: `show` prints it, `parse` reads it back without loss (and without verifying).

    graph spmv
    tensor A[4, 5]  csr
    tensor x[5]  dense
    tensor y[4]  dense
    output y

    root = root()
    A_i = scan(root) A.0 sequential
    A_k = scan(A_i.ref) A.1 sequential
    x_k = locate(A_k.crd) x.0
    A_val = load(A_k.ref) A sequential
    x_val = load(x_k) x
    mul = alu(A_val, x_val) mul N->0,N->0
    sum_k = reduce(mul) sum
    write_i = write(A_i.crd) y.0
    write_val = write(sum_k) y.vals

One node a line: its name, its primitive with the streams it reads, its attributes. A stream is `node.port`, or `node` if the node
makes one stream. Sides of a join are separated by `;`. A slot of an alu is `N->x`, the next stream with its implicit value, or a
number. After the nodes: `fiber_fifo node[input]`, `depth node[input] 64`, and `hops node[input] 3`, or `hops node[input] 3 slots=0`
for hops that hold nothing; `turn node 0 of 2` for a node that shares a port to the memory; and `node_hops node inner=2 loop=5 port=3`.
The line of a tensor ends with `resident` if the tensor is in the configuration of the accelerator, with `buffer 65536` if its ports
have reuse buffers, with `preload 8` if it is preloaded, and with `scratchpad moved` if it lies in the scratchpad.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, TypeVar

from fuseflow.errors import FuseFlowError, GraphError, Span, did_you_mean
from fuseflow.number_literals import show_number
from fuseflow.samml import nodes as n
from fuseflow.samml.node import AttributeType
from fuseflow.tensors import Format

T = TypeVar("T")

VALUES = "vals"
"""The word that is written in place of a level for the values of a tensor."""


def show(graph: n.Graph) -> str:
    """Return the graph as text that ends with a newline."""
    lines = [f"graph {graph.name}"]
    lines += [_show_tensor(tensor) for tensor in graph.tensors]
    lines += [f"output {', '.join(graph.outputs)}", ""] if graph.outputs else [""]
    by_name = graph.by_name
    lines += [_show_node(node, by_name) for node in graph.nodes]
    lines += [""] if graph.fiber_fifos or graph.depths or graph.hops or graph.turns or graph.node_hops else []
    lines += [f"fiber_fifo {edge.node}[{edge.input}]" for edge in graph.fiber_fifos]
    lines += [f"depth {edge.node}[{edge.input}] {depth}" for edge, depth in graph.depths]
    lines += [f"hops {edge.node}[{edge.input}] {hops.count}{'' if hops.slots else ' slots=0'}" for edge, hops in graph.hops]
    lines += [f"turn {node} {turn.number} of {turn.of}" for node, turn in graph.turns]
    lines += [f"node_hops {node} inner={hops.inner} loop={hops.loop} port={hops.port}" for node, hops in graph.node_hops]
    return "\n".join(lines) + "\n"


def show_attributes(node: n.Node) -> str:
    """Return the attributes of a node as the text form shows them."""
    words: list[str] = []
    for attribute in n.ATTRIBUTES[type(node)]:
        value = getattr(node, attribute.field)
        key = f"{attribute.field}=" if attribute.keyed else ""
        if attribute.type == "level":
            words[-1] += f".{value}"  # behind its tensor
        elif attribute.type == "flag":
            words += [attribute.field] if value else []
        elif value is not None:
            words.append(key + _CODECS[attribute.type][0](value))
    return " ".join(words)


def _show_tensor(tensor: n.TensorDecl) -> str:
    words = [f"tensor {tensor.standalone().name}[{', '.join(map(str, tensor.shape))}] ", tensor.format.short()]
    words += [tensor.dtype] if tensor.dtype != "f32" else []
    words += [f"tile {n.show_tile(tensor.tile)}"] if tensor.tile else []
    fill = show_number(tensor.fill)
    words += [f"fill {fill}"] if fill != "0" else []  # -0 is not 0 here
    words += ["resident"] if tensor.resident else []
    words += [f"{key} {value}" for key in ("buffer", "preload", "scratchpad", "like") if (value := getattr(tensor, key))]
    return " ".join(words)


def _show_node(node: n.Node, by_name: Mapping[str, n.Node]) -> str:
    names = [n.stream_name(by_name[port.node], port.output) for port in node.inputs]
    if isinstance(node, n.Join):
        inputs = "; ".join(", ".join(names[k] for k in (crd, *payloads)) for crd, payloads in node.sides())
    else:
        inputs = ", ".join(names)
    return f"{node.name} = {_word(type(node))}({inputs}) {show_attributes(node)}".rstrip()


def parse(text: str, file: str = "<text>") -> n.Graph:
    """Return the graph in a text; `file` names it in errors. Raises `GraphError` with the line; `verify` checks the graph."""
    reader = _Reader()
    for number, line in enumerate(text.splitlines(), 1):
        statement = line.partition("#")[0].strip() if not line.startswith("graph ") else line.strip()
        if not statement:
            continue
        try:
            reader.read(statement)
        except FuseFlowError as error:
            raise GraphError(error.message, hint=error.hint, span=Span(file, number)) from None
    return reader.graph()


_TENSOR = re.compile(
    r"([^\s\[]+)\[([\d,\s]*)\]\s+(.+?)(?:\s+([a-z]+\d+))?(?:\s+tile\s+(\d+x\d+))?(?:\s+fill\s+(\S+))?(\s+resident)?(?:\s+buffer\s+(\d+))?"
    rf"(?:\s+preload\s+(\d+))?(?:\s+scratchpad\s+({'|'.join(n.TRANSFERS[1:])}))?(?:\s+like\s+(\S+))?"
)
_NODE = re.compile(r"(\S+)\s*=\s*(\w+)\(([^()]*)\)\s*(.*)")
_EDGE = re.compile(r"([^\s\[]+)\[(\d+)\]\s*(\d+)?(?:\s+slots=(\d+))?")
_TURN = re.compile(r"(\S+)\s+(\d+)\s+of\s+(\d+)")
_NODE_HOPS = re.compile(r"(\S+)\s+inner=(\d+)\s+loop=(\d+)\s+port=(\d+)")
_STATEMENTS = ("graph", "tensor", "output", "fiber_fifo", "depth", "hops", "turn", "node_hops")


@dataclass(slots=True)
class _Reader:
    name: str = "graph"
    tensors: list[n.TensorDecl] = field(default_factory=list)
    nodes: list[n.Primitive] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    fifos: list[n.Edge] = field(default_factory=list)
    depths: list[tuple[n.Edge, int]] = field(default_factory=list)
    hops: list[tuple[n.Edge, n.Hops]] = field(default_factory=list)
    turns: list[tuple[str, n.Turn]] = field(default_factory=list)
    node_hops: list[tuple[str, n.NodeHops]] = field(default_factory=list)
    ports: dict[str, n.Port] = field(default_factory=dict)

    def graph(self) -> n.Graph:
        return n.Graph(
            self.name, tuple(self.tensors), tuple(self.nodes), tuple(self.outputs), tuple(self.fifos), tuple(self.depths),
            tuple(self.hops), tuple(self.turns), tuple(self.node_hops),
        )  # fmt: skip

    def read(self, line: str) -> None:
        word, _, rest = line.partition(" ")
        if match := _NODE.fullmatch(line):
            self.read_node(match)
        elif word == "graph":
            self.name = rest.strip()
        elif word == "tensor":
            self.tensors.append(_read_tensor(rest.strip()))
        elif word == "output":
            self.outputs += [name.strip() for name in rest.split(",")]
        elif word in ("fiber_fifo", "depth", "hops"):
            self.read_edge(word, rest.strip())
        elif word == "turn":
            self.read_turn(rest.strip())
        elif word == "node_hops":
            self.read_node_hops(rest.strip())
        else:
            raise GraphError(
                f"cannot read `{line}`", hint=f"a line is `name = primitive(streams)`, or one of {', '.join(_STATEMENTS)}"
            )

    def read_edge(self, word: str, text: str) -> None:
        match = _EDGE.fullmatch(text)
        if not match or (match[3] is None) != (word == "fiber_fifo") or (match[4] is not None and word != "hops"):
            raise GraphError(
                f"cannot read `{word} {text}`",
                hint="write `fiber_fifo node[input]`, `depth node[input] 64`, `hops node[input] 3` or `hops node[input] 3 slots=0`",
            )
        edge = n.Edge(match[1], _parsed(match[2], int, "whole number"))
        if match[3] is None:
            self.fifos.append(edge)
        elif word == "depth":
            self.depths.append((edge, _parsed(match[3], int, "whole number")))
        else:
            self.hops.append(
                (edge, n.Hops(_parsed(match[3], int, "whole number"), _parsed(match[4] or "2", int, "whole number")))
            )

    def read_turn(self, text: str) -> None:
        match = _TURN.fullmatch(text)
        if not match:
            raise GraphError(f"cannot read `turn {text}`", hint="write `turn node 0 of 2`")
        number, of = (_parsed(digits, int, "whole number") for digits in match.groups()[1:])
        self.turns.append((match[1], n.Turn(number, of)))

    def read_node_hops(self, text: str) -> None:
        match = _NODE_HOPS.fullmatch(text)
        if not match:
            raise GraphError(f"cannot read `node_hops {text}`", hint="write `node_hops node inner=2 loop=5 port=3`")
        inner, loop, port = (_parsed(digits, int, "whole number") for digits in match.groups()[1:])
        self.node_hops.append((match[1], n.NodeHops(inner, loop, port)))

    def read_node(self, match: re.Match[str]) -> None:
        name, op, streams, attributes = match.groups()
        sides = [[self.port(text.strip()) for text in side.split(",") if text.strip()] for side in streams.split(";")]
        if len(sides) > 1 and op != "join":
            raise GraphError(f"`{name}`: only a join has sides; write `,` instead of `;`")
        words = attributes.split()
        node = _read_join(name, sides, words) if op == "join" else _read_plain(name, op, tuple(sides[0]), words)
        self.nodes.append(node)
        self.ports |= {n.stream_name(node, k): n.Port(name, k) for k in range(len(node.port_names()))}

    def port(self, text: str) -> n.Port:
        if text not in self.ports:
            raise GraphError(f"no stream `{text}` so far", hint=did_you_mean(text, self.ports))
        return self.ports[text]


def _read_tensor(text: str) -> n.TensorDecl:
    match = _TENSOR.fullmatch(text)
    if not match:
        raise GraphError(
            f"cannot read the tensor `{text}`",
            hint="write `tensor A[4, 5] csr f32 fill 0`, tiles as `tile 2x3` before the fill; then `resident`, `buffer 64`, `preload 8`, "
            "`scratchpad moved`, `like B`",
        )
    name, dims, layout, dtype, tile, fill, resident, buffer, preload, scratchpad, like = match.groups()
    shape = tuple(_parsed(d, int, "whole number") for d in dims.split(",") if d.strip())
    blocks = tuple(_parsed(side, int, "whole number") for side in tile.split("x")) if tile else ()
    format = Format.parse(layout, len(shape))
    decl = n.TensorDecl(
        name,
        shape,
        format,
        dtype or "f32",
        _parsed(fill or "0", float, "number"),
        blocks,
        resident=resident is not None,
        buffer=_parsed(buffer or "0", int, "whole number"),
        preload=_parsed(preload or "0", int, "whole number"),
        scratchpad=n.transfer(scratchpad or ""),
    )
    return decl.with_structure_of(like or "")


def _word(primitive: type[n.Node]) -> str:
    return primitive.word or primitive.op


WORDS: dict[str, tuple[type[n.Primitive], ...]] = {
    _word(one): tuple(kind for kind in n.NODE_TYPES if _word(kind) == _word(one)) for one in n.NODE_TYPES
}
"""The primitives for each word of the text form. Where there are several, their attributes distinguish them."""


def _read_join(name: str, sides: list[list[n.Port]], words: list[str]) -> n.Join:
    if len(words) != 1 or words[0] not in n.JOIN_KINDS:
        raise GraphError(f"`{name}`: a join is intersect, union or left", hint=did_you_mean(" ".join(words), n.JOIN_KINDS))
    inputs = tuple(port for side in sides for port in side)
    return n.Join(name, inputs, words[0], tuple(len(side) - 1 for side in sides))


def _read_plain(name: str, op: str, inputs: tuple[n.Port, ...], words: list[str]) -> n.Primitive:
    """Return a node, which is no join, from its name, the word of its primitive, its inputs and the words of its attributes.
    Raises `GraphError` for an unknown word."""
    for kind in WORDS.get(op, ()):
        try:
            return kind(name, inputs, **read_attributes(n.ATTRIBUTES[kind], words))
        except ValueError:
            continue
    if op not in WORDS:
        raise GraphError(f"`{name}`: unknown primitive `{op}`", hint=did_you_mean(op, WORDS))
    raise GraphError(f"`{name}`: cannot read the attributes `{' '.join(words)}` of {op}")


def read_attributes(attributes: Sequence[n.Attribute], words: Sequence[str]) -> dict[str, Any]:
    """Return the fields of a node, given the words that `show_attributes` writes. Raises `ValueError` for other words."""
    values: dict[str, Any] = {}
    left = list(words)
    for attribute, after in zip_longest(attributes, attributes[1:]):
        if attribute.type == "level":
            continue  # read with its tensor
        key = attribute.field if attribute.type == "flag" else f"{attribute.field}=" if attribute.keyed else ""
        if attribute.type in ("flag", "number or none") and not (left and left[0].startswith(key)):
            continue
        if not left or not left[0].startswith(key):
            raise ValueError
        text = left.pop(0).removeprefix(key)
        if attribute.type == "tensor" and after is not None and after.type == "level":
            values[attribute.field], values[after.field] = _place(text)
        else:
            values[attribute.field] = _CODECS[attribute.type][1](text)
    if left:
        raise ValueError
    return values


def _values(text: str) -> str:
    if not text.endswith(f".{VALUES}"):
        raise ValueError
    return text.removesuffix(f".{VALUES}")


def _flag(text: str) -> bool:
    if text:
        raise ValueError
    return True


def _place(text: str) -> tuple[str, int]:
    tensor, _, level = text.rpartition(".")
    return tensor, int(level)


def _slot(text: str) -> n.Operand:
    return n.Operand(float(text.removeprefix("N->")), constant=not text.startswith("N->"))


def _show_slots(slots: Sequence[n.Operand]) -> str:
    return ",".join(show_number(s.value) if s.constant else f"N->{show_number(s.value)}" for s in slots)


_CODECS: Mapping[AttributeType, tuple[Callable[[Any], str], Callable[[str], Any]]] = {
    "tensor": (str, str),
    "values": (lambda tensor: f"{tensor}.{VALUES}", _values),
    "word": (str, str),
    "integer": (str, int),
    "integers": (lambda numbers: ",".join(map(str, numbers)), lambda text: tuple(map(int, text.split(",")))),
    "number": (show_number, float),
    "number or none": (show_number, float),
    "flag": (str, _flag),
    "slots": (_show_slots, lambda text: tuple(map(_slot, text.split(",")))),
}
"""How a field of each type is written and read, after its key. A level is written after its tensor; a flag is only its key."""


def _parsed(text: str, read: Callable[[str], T], what: str) -> T:
    try:
        return read(text)
    except ValueError:
        raise GraphError(f"`{text.strip()}` is not a {what}") from None
