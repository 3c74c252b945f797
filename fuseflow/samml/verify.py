"""Verification of a graph (`verify`), and the facts of its streams that it proves (`stream_facts`).

Names, declarations and edges are checked here. The nodes check themselves: the number, kinds and depths of their inputs, the
tensors and levels that references index, and that streams which meet in a node are aligned. A graph that passes can be executed
on any data of its shapes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NoReturn, TypeAlias, TypeVar

from fuseflow.errors import GraphError, did_you_mean
from fuseflow.ops import canonical
from fuseflow.samml import nodes as n
from fuseflow.samml.node_check import GraphContext, NodeCheck, StreamFacts
from fuseflow.samml.stream_alignment import StreamShape, StreamShapes
from fuseflow.samml.writers import LaneWriter
from fuseflow.tensors.dtypes import DTYPES

K = TypeVar("K", bound=Hashable)
Writer: TypeAlias = n.WriteLevel | n.WriteValues

PRELOAD_HINT = "how many entries a compressed level has is known in a run alone: store it dense, or read it as it is needed"
READ_ONLY = (
    ("resident", "is resident", "lie in the configuration"),
    ("buffer", "has a reuse buffer", "be read again"),
    ("preload", "is preloaded", "be read ahead"),
)
"""The placements that no output has, with the reason."""
NAME = re.compile(r"[^\s()\[\],;#=]+")
"""A pattern for the names of tensors and nodes, so that the text form can hold them."""


def verify(graph: n.Graph) -> Mapping[n.Port, StreamFacts]:
    """Return the facts of every stream. Raises `GraphError`, naming graph, node and input, unless the graph is well-formed."""
    if not graph.name or graph.name != graph.name.strip() or set(graph.name) & {"\n", "#"}:
        raise GraphError(f"the graph's name {graph.name!r} is empty or has a line break, a `#` or spaces around it")
    if not graph.nodes:
        raise GraphError(f"graph `{graph.name}`: has no nodes, so it computes nothing")
    _verify_tensors(graph)
    _verify_names(graph)
    prover = proved(graph)
    _verify_outputs(graph, prover)
    _verify_edges(graph)
    _verify_turns(graph)
    return prover.facts


class StreamProver:
    """A walk through the nodes of a graph that proves the facts of their streams, node by node."""

    def __init__(self, graph: n.Graph) -> None:
        self.facts: dict[n.Port, StreamFacts] = {}
        self._context = GraphContext(graph.name, graph.declared, frozenset(graph.outputs))
        self._names = {node.name for node in graph.nodes}
        self._nodes: dict[str, n.Node] = {}  # the checked nodes by name

    @property
    def shapes(self) -> StreamShapes:
        """The factory of the shapes of the streams."""
        return self._context.shapes

    @property
    def derivations(self) -> Mapping[StreamShape, tuple[Hashable, ...]]:
        """The shapes that were first made by an align to a lane or a merge of lanes, each with that origin."""
        return self._context.shapes.derivations

    def visit(self, node: n.Primitive) -> None:
        """Add the facts of the outputs of a node. Raises `GraphError` if the node may not read its inputs."""
        context, facts = self._context, self.facts
        check = NodeCheck(context, node.name, node.op, node.inputs, [facts[port] for port in node.inputs if port in facts])
        if type(node) not in n.ATTRIBUTES:
            check.refuse("is no primitive")
        for port in node.inputs:
            if port not in facts:
                self._refuse_port(check, port)
        outputs = node.check(check)
        self._nodes[node.name] = node
        context.add(node.name, partial(n.stream_name, node), node.gives_parents)
        if isinstance(node, n.Link):
            context.passed[n.Port(node.name)] = check.made(0)
        types = node.typed([s.type for s in check.inputs], context.tensors)
        limits = node.bounds([s.bound for s in check.inputs], context.tensors)
        for k, (kind, output, bound) in enumerate(zip(types, outputs, limits, strict=True)):
            facts[n.Port(node.name, k)] = StreamFacts(kind, output.shape, output.nullable, output.position, bound)

    def _refuse_port(self, check: NodeCheck, port: n.Port) -> NoReturn:
        if port.node in self._nodes:
            check.refuse(f"reads output {port.output} of `{port.node}`, which has {len(self._nodes[port.node].port_names())}")
        if port.node in self._names:
            check.refuse(f"reads `{port.node}` before it is defined")
        check.refuse(f"reads `{port.node}`, which is not in the graph", hint=did_you_mean(port.node, self._names))


def proved(graph: n.Graph) -> StreamProver:
    """Return a prover that has visited all nodes. Raises `GraphError` at the first node that may not read its inputs."""
    prover = StreamProver(graph)
    for node in graph.nodes:
        prover.visit(node)
    return prover


def stream_facts(graph: n.Graph) -> dict[n.Port, StreamFacts]:
    """Return the facts of every stream. Raises `GraphError` at the first node that may not read its inputs."""
    return proved(graph).facts


def _verify_tensors(graph: n.Graph) -> None:
    _verify_unique(graph, "tensor", [t.name for t in graph.tensors])
    _verify_unique(graph, "output", graph.outputs)
    for tensor in graph.tensors:
        _verify_tensor(graph, tensor)
    for name in graph.outputs:
        if name not in graph.declared:
            _refuse(graph, f"output `{name}` is not declared", did_you_mean(name, graph.declared))
        for placement, why, hint in READ_ONLY:
            if getattr(graph.declared[name], placement):
                _refuse(graph, f"output `{name}` {why}", f"only what is read can {hint}")


def _verify_tensor(graph: n.Graph, tensor: n.TensorDecl) -> None:
    def refuse(why: str, hint: str = "") -> NoReturn:
        _refuse(graph, f"tensor `{tensor.name}` {why}", hint)

    levels, buffer, preload = tensor.format.levels, tensor.buffer, tensor.preload
    _verify_name(graph, "tensor", tensor.name)
    if len(tensor.shape) != len(levels):
        refuse(f"has {len(tensor.shape)} dimensions, its format {tensor.format} has {len(levels)}")
    if min(tensor.shape, default=0) < 0:
        refuse(f"has shape {tensor.shape}")
    if tensor.outer is not None:
        name, count = tensor.outer
        other = graph.declared.get(name)
        whole = other is not None and (other.like == name if tensor.flat else other.outer is None)
        fits = whole and name not in graph.outputs and (tensor.name != name or tensor.format.rank == 1)
        if other is None or not fits or not 0 < count <= min(len(levels), other.format.rank):
            refuse(f"cannot have the {count} outermost levels of `{name}`")
        if any(levels[p] != other.format.levels[p] or tensor.size(p) != other.size(p) for p in range(count)):
            refuse(f"has other levels than `{name}`, of which it is to have the {count} outermost")
        if tensor.like and (tensor.format, tensor.shape, tensor.tile) != (other.format, other.shape, other.tile):
            refuse(f"is like `{name}`, and has another shape or format")
    if tensor.tile and (len(tensor.tile) != 2 or min(tensor.tile) < 1):
        refuse(f"has tiles of {n.show_tile(tensor.tile)}", "a tile has rows and columns, such as 2x3")
    also = " and is resident" * tensor.resident
    if buffer < 0 or (buffer and tensor.resident):
        hint = "a buffer is for what is asked of the memory, and has one byte or more"
        refuse(f"has a reuse buffer of {buffer} bytes{also}", hint)
    if preload < 0 or (preload and (tensor.resident or buffer)):
        also += " and has a reuse buffer" * bool(buffer)
        hint = "what is preloaded is read by one port or more, and never asked of the memory again"
        refuse(f"is preloaded by {preload} ports{also}", hint)
    if preload and any(tensor.stored_arrays(level) for level in range(len(levels))):
        refuse(f"is preloaded, and stored as {tensor.format.short()}", PRELOAD_HINT)
    if tensor.scratchpad and (tensor.resident or buffer or preload):
        also += f" and has a reuse buffer of {buffer} bytes" * bool(buffer) + f" and is preloaded by {preload} ports" * bool(
            preload
        )
        refuse(f"lies in the scratchpad{also}", "a tensor has one of these")
    if tensor.dtype not in DTYPES:
        refuse(f"has the unknown dtype `{tensor.dtype}`", did_you_mean(tensor.dtype, DTYPES))
    nearest = canonical(DTYPES[tensor.dtype].implicit(tensor.fill))
    if (nearest,) != (tensor.fill,):  # in a tuple an implicit NaN equals itself
        refuse(f"has the implicit value {tensor.fill:g}, which is no number of {tensor.dtype}", f"the nearest is {nearest:g}")


def _verify_names(graph: n.Graph) -> None:
    """Raise `GraphError` for two nodes of one name, or one named like a stream of another (`A_i.crd` beside the scan `A_i`)."""
    _verify_unique(graph, "node", [node.name for node in graph.nodes])
    names = graph.by_name
    for node in graph.nodes:
        _verify_name(graph, "node", node.name)
        for k in range(len(node.port_names())):
            other = n.stream_name(node, k)
            if other != node.name and other in names:
                _refuse(graph, f"node `{other}` is named like a stream of node `{node.name}`")


def _verify_name(graph: n.Graph, thing: str, name: str) -> None:
    if not NAME.fullmatch(name):
        _refuse(graph, f"{thing} name `{name}` is empty or has spaces or one of ( ) [ ] , ; # =")


def _verify_unique(graph: n.Graph, thing: str, names: Sequence[str]) -> None:
    if (twice := _twice(names)) is not None:
        _refuse(graph, f"two {thing}s are named `{twice}`")


def _twice(keys: Iterable[K]) -> K | None:
    """Return the first key that is there more than once, or None."""
    return next((key for key, count in Counter(keys).items() if count > 1), None)


def _verify_outputs(graph: n.Graph, prover: StreamProver) -> None:
    """Raise `GraphError` unless each part of each output is written once, by streams that are nested in each other."""
    writers: dict[tuple[str, int | None], list[Writer]] = {}
    for node in graph.nodes:
        if isinstance(node, n.WriteLevel | n.WriteValues):
            part = node.tensor, node.level if isinstance(node, n.WriteLevel) else None
            writers.setdefault(part, []).append(node)
    declared = graph.declared
    for name in graph.outputs:
        if root := declared[name].like:
            _verify_places(graph, prover, declared[name], [writers[part] for part in writers if part[0] == name], root)
            continue
        above: StreamShape | None = None
        above_by = ""
        for level in (*range(declared[name].format.rank), None):
            if (name, level) not in writers:
                _refuse(graph, f"nothing writes {_part(name, level)}")
            by = writers[name, level]
            shape = _written_shape(graph, prover, by, _part(name, level))
            needed = shape if level is None else shape.parent
            # A writer takes no notice of a stop behind a stop, so only the entries count.
            if above is not None and (needed is None or needed.entries is not above.entries):
                _refuse(
                    graph, f"`{by[0].name}` writes {_part(name, level)} from a stream that is not below what `{above_by}` writes"
                )
            above, above_by = shape, by[0].name
        if isinstance(writers[name, None][0], LaneWriter) and not (above and above.covers(declared[name].level_sizes)):
            _refuse(
                graph,
                f"`{name}` is written in lanes, and not provably at all of its coordinates: nobody knows where those of a lane go",
                "merge the lanes, and write once",
            )


def _verify_places(
    graph: n.Graph, prover: StreamProver, tensor: n.TensorDecl, writers: Sequence[Sequence[Writer]], root: str
) -> None:
    """Raise `GraphError` unless the values of an output, and nothing else of it, are written once, by a stream with a value for every
    place of the tensor `root` that it is like, in order."""
    match writers:
        case [[n.WriteValues() as writer]] if not isinstance(writer, LaneWriter):
            if not _Places.of(graph, prover, root).fill(prover.facts[writer.inputs[0]].shape, tensor.format.rank):
                _refuse(graph, f"`{writer.name}` does not provably write a value for each place of `{root}`")
        case _:
            _refuse(graph, f"`{tensor.name}` is like `{root}`: its values alone are written, by one writer")


@dataclass(frozen=True, slots=True)
class _Places:
    """The shapes of streams that have one element for every place of a tensor, in order. `scanned` has, by level, the shapes that scans
    of the level give, each with that of the references that they scan below."""

    tensor: n.TensorDecl
    scanned: Mapping[tuple[int, StreamShape], StreamShape]

    @classmethod
    def of(cls, graph: n.Graph, prover: StreamProver, tensor: str) -> _Places:
        """Return the shapes in a graph whose streams are proved."""
        facts, scanned = prover.facts, dict[tuple[int, StreamShape], StreamShape]()
        for node in graph.nodes:
            if isinstance(node, n.Scan) and node.tensor == tensor and not facts[node.inputs[0]].nullable:
                scanned[node.level, facts[node.ports[0]].shape] = facts[node.inputs[0]].shape
        return cls(graph.declared[tensor], scanned)

    def fill(self, shape: StreamShape, levels: int, in_lane: bool = False) -> bool:
        """Return whether a shape has an element for every place in the outermost `levels` levels, or, if `in_lane`, for all in the part
        that was dealt to a lane."""
        match shape:
            case StreamShape(None, ("single",)):
                return levels == 0
            case StreamShape(_, ("lane", StreamShape() as dealt, *_)) if in_lane:
                return self.fill(dealt, levels, in_lane)
            case StreamShape(StreamShape() as parent, ("merge", *lanes)):
                parts = (self.fill(lane, levels, in_lane=True) for lane in lanes if isinstance(lane, StreamShape))
                return self.fill(parent, levels - 1, in_lane) and all(parts)
            case StreamShape(StreamShape() as parent, ("full", size)) if (
                levels > 0 and self.tensor.format.levels[levels - 1].full
            ):
                return size == self.tensor.size(levels - 1) and self.fill(parent, levels - 1, in_lane)
            case _:
                above = self.scanned.get((levels - 1, shape))
                return above is not None and self.fill(above, levels - 1, in_lane)


def _written_shape(graph: n.Graph, prover: StreamProver, writers: Sequence[Writer], part: str) -> StreamShape:
    """Return the shape that the writers of a part of an output write together. `part` names that part in errors. Raises
    `GraphError` for several writers that are not those of all lanes of one fork, in order."""
    first, shapes = writers[0], [prover.facts[node.inputs[0]].shape for node in writers]
    if not isinstance(first, LaneWriter):
        if len(writers) > 1:
            _refuse(graph, f"{part} is written by `{first.name}` and by `{writers[1].name}`")
        return shapes[0]
    for lane, node in enumerate(writers):
        if not isinstance(node, LaneWriter) or (node.lane, node.lanes, node.levels) != (lane, first.lanes, first.levels):
            _refuse(graph, f"{part} is not written in lanes of `{first.name}`: `{node.name}` is not lane {lane} of {first.lanes}")
    if len(writers) != first.lanes:
        _refuse(graph, f"{part} is written in {len(writers)} of {first.lanes} lanes")
    shape = prover.shapes.merged(shapes, first.levels)
    if shape is None:
        _refuse(graph, f"{part} is written by streams that are not provably the lanes of one fork, `{first.name}` and others")
    return shape


def _part(tensor: str, level: int | None) -> str:
    return f"the values of `{tensor}`" if level is None else f"level {level} of `{tensor}`"


def _verify_edges(graph: n.Graph) -> None:
    names = graph.by_name
    for edge in (*graph.fiber_fifos, *(edge for edge, _ in (*graph.depths, *graph.hops))):
        if edge.node not in names:
            _refuse(graph, f"there is no edge into `{edge.node}`: no such node", did_you_mean(edge.node, names))
        if not 0 <= edge.input < len(names[edge.node].inputs):
            _refuse(graph, f"`{edge.node}` has no input {edge.input}: it has {len(names[edge.node].inputs)}")
    for edge, depth in graph.depths:
        if depth < 1:
            _refuse(graph, f"the FIFO depth of input {edge.input} of `{edge.node}` is {depth}")
    if (twice := _twice(edge for edge, _ in graph.hops)) is not None:
        _refuse(graph, f"input {twice.input} of `{twice.node}` has hops twice")
    for name, count in Counter(name for name, _ in graph.node_hops).items():
        if name not in names:
            _refuse(graph, f"there are hops of `{name}`: no such node", did_you_mean(name, names))
        if count > 1:
            _refuse(graph, f"`{name}` has hops twice")
        if graph.hops_of[name].loop and not isinstance(names[name], n.Accumulate):
            _refuse(
                graph, f"`{name}` has a loop of hops, and is a `{names[name].op}`", "only an `accumulate` goes round its tiles"
            )


def _verify_turns(graph: n.Graph) -> None:
    names = graph.by_name
    for name, _ in graph.turns:
        if name not in names:
            _refuse(graph, f"`{name}` has a turn at a port, and there is no such node", did_you_mean(name, names))
        node = names[name]
        if not isinstance(node, n.TensorUser) or not node.asks_memory(graph.declared):
            _refuse(graph, f"`{name}` has a turn at a port, and does not ask the memory")
    if (twice := _twice(name for name, _ in graph.turns)) is not None:
        _refuse(graph, f"`{twice}` has two turns at ports")


def _refuse(graph: n.Graph, why: str, hint: str = "") -> NoReturn:
    raise GraphError(f"graph `{graph.name}`: {why}", hint=hint)
