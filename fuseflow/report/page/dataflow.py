"""A drawing of the dataflow graph of a region. What a node reads is above it; coordinates are dashed, references dotted, values solid."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fuseflow.report.page.layered_layout import layout_layers
from fuseflow.report.page.svg import Markup, curve, element, shorten, svg, text
from fuseflow.samml.node import Role
from fuseflow.samml.nodes import Graph, Port, Primitive
from fuseflow.samml.text import show_attributes

MAX_DRAWN_NODES = 1000
"""The number of nodes up to which a graph is drawn, since larger drawings cannot be read."""
WIDE, HIGH = 132, 34
ACROSS, DOWN = 142, 62
LETTERS = 20

KINDS: dict[Role, str] = {
    "source": "none", "level": "reads", "value": "reads", "join": "joins", "move": "repeats", "lane": "lanes", "compute": "computes",
    "write": "writes",
}  # fmt: skip
"""The style of a box in the page."""


@dataclass(frozen=True, slots=True)
class Drawing:
    """A drawing of a graph. `picture` is None if there are too many nodes, `note` says what is left out, and `operations` has the number of
    nodes of each primitive."""

    picture: Markup | None
    note: str
    operations: tuple[tuple[str, int], ...]


def draw_graph(graph: Graph, places: Mapping[str, Any], statistics: Mapping[str, Any], cycles: int) -> Drawing:
    """Draw a graph, in which the first lane stands for all. `statistics` are those of a result, by node."""
    kept = [node for node in graph.nodes if all(lane == 0 for _, lane in places.get(node.name, ()))]
    operations = tuple(sorted(Counter(node.op for node in graph.nodes).items(), key=lambda item: (-item[1], item[0])))
    note = "" if len(kept) == len(graph.nodes) else f"One lane of each index: {len(kept):,} of {len(graph.nodes):,} nodes."
    if len(kept) > MAX_DRAWN_NODES:
        note = f"{len(kept):,} nodes{' in one lane' if note else ''} are too many to draw; graph.dot of the run has them."
        return Drawing(None, note, operations)
    return Drawing(_picture(graph, kept, statistics, cycles), note, operations)


def _picture(graph: Graph, kept: list[Primitive], statistics: Mapping[str, Any], cycles: int) -> Markup:
    names = {node.name for node in kept}
    links = [(port, node.name, k) for node in kept for k, port in enumerate(node.inputs) if port.node in names]
    layout = layout_layers([node.name for node in kept], [(port.node, name) for port, name, _ in links])

    def point(x: float, layer: int, low: float = HIGH / 2) -> tuple[float, float]:
        return x * ACROSS, layer * DOWN + 8 + low

    types, whole = graph.types(), {(edge.node, edge.input) for edge in graph.fiber_fifos}
    wires = []
    for port, name, k in links:
        bends = [point(x, layer) for x, layer in layout.bends[port.node, name]]
        ends = [point(*layout.at[port.node], HIGH), *bends, point(*layout.at[name], 0.0)]
        classes = f"wire {types[port].kind}{' whole' if (name, k) in whole else ''}"
        wires.append(curve(ends, classes, f"{_stream(graph, port)} to {name}, input {k}"))
    boxes = [_box(node, point(*layout.at[node.name], 0.0), statistics.get(node.name), cycles) for node in kept]
    size = layout.width * ACROSS, layout.layers * DOWN
    return svg(*size, Markup("").join([*wires, *boxes]), f"dataflow graph of {graph.name}")


def _stream(graph: Graph, port: Port) -> str:
    names = graph.by_name[port.node].port_names()
    return f"{port.node}.{names[port.output]}"


def _box(node: Primitive, top: tuple[float, float], work: Any, cycles: int) -> Markup:
    x, y = top[0] - WIDE / 2, top[1]
    label = f"{node.op} {show_attributes(node)}".rstrip()
    busy = min(work["occupied"] / cycles, 1.0) if work and cycles else 0.0
    tip = f"{node.name}: {label}" + (f"; {work['firings']:,} firings, busy {100 * busy:.1f} %" if work else "")
    inside = [
        element("title", tip),
        element("rect", x=x, y=y, width=WIDE, height=HIGH, rx=4),
        element("rect", x=x, y=y + HIGH - 4, width=busy * WIDE, height=4, class_="busy") if busy else Markup(""),
        text(top[0], y + 13, shorten(node.name, LETTERS), "name", "middle"),
        text(top[0], y + 25, shorten(label, LETTERS + 2), "op", "middle"),
    ]
    return element("g", Markup("").join(inside), class_=f"node {KINDS[node.role]}")
