"""A drawing of the dataflow graph of a region. Inputs of a node are above it; coordinates are dashed, references dotted, values solid."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from fuseflow.report.page.layered_layout import layout_layers
from fuseflow.report.page.node_labels import node_labels
from fuseflow.report.page.svg import Markup, curve, element, number, shorten_middle, svg, text
from fuseflow.samml.node import Role
from fuseflow.samml.nodes import Graph, Port, Primitive
from fuseflow.samml.text import show_attributes

MAX_DRAWN_NODES = 5000
"""The number of nodes up to which a graph is drawn, since larger drawings cannot be read."""
WIDE, HIGH = 172, 42
ACROSS, DOWN = 184, 78
MARGIN = 10
LETTERS = 25
"""The letters of a label that fit into a box."""

KINDS: dict[Role, str] = {
    "source": "none", "level": "reads", "value": "reads", "join": "joins", "move": "repeats", "lane": "lanes", "compute": "computes",
    "write": "writes",
}  # fmt: skip
"""The style of a box in the page."""

Marks: TypeAlias = Callable[[str, str], int | None]
"""A function that returns the number of a thing of the page by its kind, `node` or `fifo`, and its name. A drawing outside a page has no
numbers."""


def no_marks(kind: str, name: str) -> int | None:
    """Return None, as the number of a node or FIFO in a drawing that stands alone: no text refers to it."""
    return None


@dataclass(frozen=True, slots=True)
class Drawing:
    """A drawing of a graph. `picture` is None if there are too many nodes, `note` says which nodes are left out, and `operations`
    has the number of nodes of each primitive."""

    picture: Markup | None
    note: str
    operations: tuple[tuple[str, int], ...]


def draw_graph(
    graph: Graph,
    places: Mapping[str, Any],
    statistics: Mapping[str, Any],
    cycles: int,
    marks: Marks = no_marks,
    path: Mapping[str, float] | None = None,
) -> Drawing:
    """Draw a graph; of lanes, only the first is drawn. `places` has the lanes of nodes. `statistics` are the statistics of a
    result, by node. `marks` gives the numbers of nodes and FIFOs on a page, and `path` the share of the critical path that each
    of its nodes has."""
    kept = [node for node in graph.nodes if all(lane == 0 for _, lane in places.get(node.name, ()))]
    operations = tuple(sorted(Counter(node.op for node in graph.nodes).items(), key=lambda item: (-item[1], item[0])))
    note = "" if len(kept) == len(graph.nodes) else f"One lane of each index: {len(kept):,} of {len(graph.nodes):,} nodes."
    if len(kept) > MAX_DRAWN_NODES:
        note = f"{len(kept):,} nodes{' in one lane' if note else ''} are too many to draw; graph.dot of the run has them."
        return Drawing(None, note, operations)
    return Drawing(_picture(graph, kept, statistics, cycles, marks, path or {}), note, operations)


def _picture(
    graph: Graph,
    kept: list[Primitive],
    statistics: Mapping[str, Any],
    cycles: int,
    marks: Marks,
    path: Mapping[str, float],
) -> Markup:
    names = {node.name for node in kept}
    links = [(port, node.name, k) for node in kept for k, port in enumerate(node.inputs) if port.node in names]
    layout = layout_layers([node.name for node in kept], [(port.node, name) for port, name, _ in links])

    def point(x: float, layer: int, low: float = HIGH / 2) -> tuple[float, float]:
        return x * ACROSS + MARGIN, layer * DOWN + MARGIN + low

    types, whole = graph.types(), {(edge.node, edge.input) for edge in graph.fiber_fifos}
    wires = []
    for port, name, k in links:
        bends = [point(x, layer) for x, layer in layout.bends[port.node, name]]
        ends = [point(*layout.at[port.node], HIGH), *bends, point(*layout.at[name], 0.0)]
        classes = f"wire {types[port].kind}{' whole' if (name, k) in whole else ''}"
        classes += " on-path" if name in path and port.node in path else ""
        wires.append(curve(ends, classes, f"{_stream(graph, port)} to {name}, input {k}", marks("fifo", f"{name}.{k}")))
    labels = node_labels([node.name for node in kept], LETTERS)
    boxes = [
        _box(node, labels[node.name], point(*layout.at[node.name], 0.0), statistics.get(node.name), cycles, marks, path)
        for node in kept
    ]
    size = layout.width * ACROSS + 2 * MARGIN, layout.layers * DOWN + MARGIN
    return svg(*size, Markup("").join([*wires, *boxes]), f"dataflow graph of {graph.name}")


def _stream(graph: Graph, port: Port) -> str:
    names = graph.by_name[port.node].port_names()
    return f"{port.node}.{names[port.output]}"


def _border(share: float | None) -> str | None:
    """Return the style of the border of a node, which is as thick as its share of the critical path is large."""
    return None if share is None else f"stroke-width:{number(1 + 6 * share)}px"


def _box(
    node: Primitive,
    name: str,
    top: tuple[float, float],
    work: Any,
    cycles: int,
    marks: Marks,
    path: Mapping[str, float],
) -> Markup:
    label = f"{node.op} {show_attributes(node)}".rstrip()
    busy = min(work["occupied"] / cycles, 1.0) if work and cycles else 0.0
    tip = f"{node.name}: {label}" + (f"; {work['firings']:,} firings, busy {100 * busy:.1f} %" if work else "")
    inside = [
        element("title", tip),
        element("rect", width=WIDE, height=HIGH, rx=5, style=_border(path.get(node.name))),
        element("rect", y=HIGH - 4, width=busy * WIDE, height=4, rx=2, class_="load") if busy else Markup(""),
        text(WIDE / 2, 16, name, "name", "middle"),
        text(WIDE / 2, 31, shorten_middle(label, LETTERS + 2), "op", "middle"),
    ]
    place = f"translate({number(top[0] - WIDE / 2)} {number(top[1])})"
    classes = f"node {KINDS[node.role]}{' on-path' if node.name in path else ''}"
    return element("g", Markup("").join(inside), class_=classes, transform=place, data_t=marks("node", node.name))
