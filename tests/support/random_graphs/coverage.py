"""What cases exercise: `modes` of a graph, and `events` in its streams. A generator that loses one of them fails a test."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from fuseflow.samml import nodes as n
from fuseflow.samml.node_check import StreamFacts
from fuseflow.samml.tokens import D, N, Stop, Token
from fuseflow.samml.verify import stream_facts
from fuseflow.tile_ops import TileShape


def modes(graph: n.Graph) -> Iterator[str]:
    """Names of what the nodes of a graph do, some more than once."""
    known = stream_facts(graph)
    for node in graph.nodes:
        yield type(node).__name__
        yield from _modes(graph, node, [known[port] for port in node.inputs])
        if any(known[port].type.tile for port in node.inputs):
            yield f"{node.op} of tiles"
    yield from (f"{len(edges)} readers" for edges in graph.readers().values() if len(edges) in (2, 3))
    yield from (f"depth {depth}" for _, depth in graph.depths)
    for readers in graph.readers().values():
        depths = dict(graph.depths)
        if len({depths.get(edge) for edge in readers}) > 1:
            yield "readers of different depth"


def _modes(graph: n.Graph, node: n.Node, inputs: list[StreamFacts]) -> Iterator[str]:
    match node:
        case n.Scan():
            yield f"scan {graph.declared[node.tensor].format.levels[node.level].text}"
            yield f"scan level {node.level}"
            yield f"scan sequential {node.sequential}"
        case n.Load():
            yield f"load {graph.declared[node.tensor].dtype}"
            yield f"load fill {graph.declared[node.tensor].fill:g}"
            yield f"load sequential {node.sequential}"
        case n.Locate():
            yield f"locate {len(inputs)} of {inputs[0].type.kind}"
            if inputs[0].nullable:
                yield f"locate {len(inputs)} of coordinates or N"
        case n.Join():
            yield f"join {node.kind} {len(node.payloads)}"
            yield from (f"join payloads {count}" for count in node.payloads)
            largest = max(inputs[crd].bound for crd, _ in node.sides())
            if any(payloads and inputs[crd].shape.full and inputs[crd].bound < largest for crd, payloads in node.sides()):
                yield f"join {node.kind} of a smaller full side"
        case n.Align():
            yield f"align {inputs[2].type.kind} {inputs[2].type.depth - inputs[0].type.depth}"
        case n.Repeat():
            yield f"repeat {inputs[0].type.kind} by {inputs[1].type.kind}"
        case n.Alu():
            yield f"alu {node.function}"
            yield f"alu {len(inputs)} of {len(node.operands)}"
            yield from _shapes([x.type.tile for x in inputs])
        case n.Reduce():
            yield f"reduce {node.function}"
        case n.Accumulate():
            yield f"accumulate {node.function} {node.order}"
            yield f"accumulate order {node.order}"
        case n.Permute():
            yield f"permute {len(node.order)} levels"
            yield "permute rows" if node.order[-1] == len(node.order) - 1 else "permute columns"
        case n.Select():
            yield f"select of {node.levels} levels"
            yield f"select in groups {node.every > 0}"
            yield f"select by {node.by}, marks {node.marks}"
        case n.Drop():
            what = "empty" if node.value is None else "value"
            yield f"drop {what} {len(inputs) - 1}"
            yield f"drop {inputs[-1].type.kind}"
        case n.Fork():
            yield f"fork {inputs[0].type.kind}"
            yield f"fork to {node.lanes}"
        case n.Merge():
            yield f"merge {inputs[0].type.kind} {node.levels}"
            yield f"merge of {node.lanes}"
        case n.WriteLevel():
            yield f"write {graph.declared[node.tensor].format.levels[node.level].text}"
        case n.WriteValues():
            yield f"write {graph.declared[node.tensor].dtype} rank {inputs[0].type.depth}"


def _shapes(tiles: list[TileShape]) -> Iterator[str]:
    """What meets in an operator."""
    if () in tiles and any(tiles):
        yield "tiles and numbers"
    heights, widths = ({tile[axis] for tile in tiles if tile} for axis in (0, 1))
    if len(heights) > 1 and len(widths) > 1:
        yield "rows and columns"


def events(graph: n.Graph, tokens: Mapping[n.Port, Sequence[Token]]) -> Iterator[str]:
    """Names of what came into the nodes of a graph: `N`, empty lists, nothing at all, stops of high levels."""
    for node in graph.nodes:
        for port in node.inputs:
            yield from (f"{node.op} of {event}" for event in _seen(tokens[port]))
        if isinstance(node, n.Workspace):
            values = node.ports[-1]
            yield from (f"{node.op} to {event}" for event in _seen(tokens[values]))


def _seen(tokens: Sequence[Token]) -> set[str]:
    found = set[str]()
    if any(token is N for token in tokens):
        found.add("N")
    if tokens[0].__class__ is Stop:
        found.add("first list empty")
    for before, token in zip([None, *tokens], tokens, strict=False):
        if isinstance(token, Stop):
            if before.__class__ is Stop:
                found.add("empty list" if token.low == 0 else "list without lists")
            if token.high >= 10:
                found.add("stop 10")
        elif token is D and before.__class__ is Stop and len(tokens) == 2:
            found.add("nothing")
    return found
