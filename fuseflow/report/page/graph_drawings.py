"""Drawings of the dataflow graph of a region, and of the partial order of its loops, in layers.

Inputs of a node are above it; coordinates are dashed, references dotted, values solid. Arrows of an order come from outer loops.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import networkx as nx

from fuseflow.report.page.layered_layout import layout_layers
from fuseflow.report.page.svg import Markup, curve, element, number, shorten, shorten_middle, svg, text
from fuseflow.report.page.things import Kind, Thing, number_of
from fuseflow.samml.node import Role
from fuseflow.samml.nodes import Graph, Primitive
from fuseflow.samml.text import show_attributes

MAX_DRAWN_NODES = 5000
"""The number of nodes up to which a graph is drawn, since larger drawings cannot be read."""
WIDE, HIGH = 172, 42
ACROSS, DOWN = 184, 78
MARGIN = 10
LOOP_WIDE, LOOP_HIGH, LOOP_ACROSS, LOOP_DOWN = 84, 30, 100, 64
LETTERS = 25
"""The letters of a label that fit into a box."""

KINDS: dict[Role, str] = {
    "source": "none", "level": "reads", "value": "reads", "join": "joins", "move": "repeats", "lane": "lanes", "compute": "computes",
    "write": "writes",
}  # fmt: skip
"""The style of a box in the page."""

Marks: TypeAlias = Callable[[Kind, str], Thing | None]
"""A function that returns a thing of the page by its kind, `node` or `fifo`, and its name. A drawing outside a page has no things."""


def no_marks(kind: Kind, name: str) -> Thing | None:
    """Return None, as the thing of a node or FIFO in a drawing that stands alone: no text refers to it."""
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
    result, by node. `marks` gives the things that nodes and FIFOs are on a page, and `path` the share of the critical path that each
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
        stream = f"{port.node}.{graph.by_name[port.node].port_names()[port.output]}"
        wires.append(curve(ends, classes, f"{stream} to {name}, input {k}", number_of(marks("fifo", f"{name}.{k}"))))
    labels = node_labels([node.name for node in kept], LETTERS)
    boxes = [
        _box(node, labels[node.name], point(*layout.at[node.name], 0.0), statistics.get(node.name), cycles, marks, path)
        for node in kept
    ]
    size = layout.width * ACROSS + 2 * MARGIN, layout.layers * DOWN + MARGIN
    return svg(*size, Markup("").join([*wires, *boxes]), f"dataflow graph of {graph.name}")


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
    share = path.get(node.name)
    border = None if share is None else f"stroke-width:{number(1 + 6 * share)}px"  # thicker for a larger share of the path
    inside = [
        element("title", tip),
        element("rect", width=WIDE, height=HIGH, rx=5, style=border),
        element("rect", y=HIGH - 4, width=busy * WIDE, height=4, rx=2, class_="load") if busy else Markup(""),
        text(WIDE / 2, 16, name, "name", "middle"),
        text(WIDE / 2, 31, shorten_middle(label, LETTERS + 2), "op", "middle"),
    ]
    place = f"translate({number(top[0] - WIDE / 2)} {number(top[1])})"
    classes = f"node {KINDS[node.role]}{' on-path' if node.name in path else ''}"
    return element("g", Markup("").join(inside), class_=classes, transform=place, data_t=number_of(marks("node", node.name)))


def node_labels(names: Sequence[str], letters: int) -> Mapping[str, str]:
    """Return a label of at most `letters` letters for each name. Labels differ as names do, unless names differ nowhere that fits.

    >>> names = ["h.0.attn.query.weight.split_val", "h.0.attn.key.weight.split_val"]
    >>> list(node_labels(names, 25).values())
    ['…n.query.weight.split_val', '…ttn.key.weight.split_val']
    """
    labels = {name: shorten_middle(name, letters) for name in names}
    alike = {label for label, count in Counter(labels.values()).items() if count > 1}
    for label in alike:
        group = [name for name in names if labels[name] == label]
        others = {labels[name] for name in names if labels[name] != label}
        for way in _ways(group, letters):
            if len(set(way)) == len(group) and not others & set(way):
                labels.update(zip(group, way, strict=True))
                break
    return labels


def _ways(group: Sequence[str], letters: int) -> Iterable[list[str]]:
    """Yield lists of short forms for `group`, names whose usual short forms are equal: other heads and tails, then the letters
    around the first difference."""
    for head in range(letters - 1):
        yield [f"{name[:head]}…{name[len(name) - (letters - head - 1) :]}" for name in group]
    start = next((at for at, column in enumerate(zip(*group, strict=False)) if len(set(column)) > 1), min(map(len, group)))
    yield [f"…{name[start : start + letters - 2]}…" for name in group]


def draw_order(loops: Sequence[Any], constraints: Sequence[Any], order: Sequence[str]) -> Markup:
    """Draw the loops with their sizes and their places in the chosen order. Arrows that follow from others are left out."""
    places = {index: k for k, index in enumerate(order or [loop["index"] for loop in loops], 1)}
    sizes = {loop["index"]: loop["size"] for loop in loops}
    nodes = sorted(sizes, key=lambda index: places.get(index, 0))
    whole: nx.DiGraph[str] = nx.DiGraph()
    whole.add_nodes_from(nodes)
    whole.add_edges_from((c["above"], c["below"]) for c in constraints)
    why = {(c["above"], c["below"]): c["why"] for c in constraints}
    edges = sorted(nx.transitive_reduction(whole).edges, key=lambda e: (places.get(e[0], 0), places.get(e[1], 0)))
    layout = layout_layers(nodes, edges)

    def point(x: float, layer: int, low: float = LOOP_HIGH / 2) -> tuple[float, float]:
        return x * LOOP_ACROSS, layer * LOOP_DOWN + 8 + low

    parts = []
    for a, b in edges:
        bends = [point(x, layer) for x, layer in layout.bends[a, b]]
        ends = [point(*layout.at[a], LOOP_HIGH), *bends, point(*layout.at[b], -2.0)]
        parts.append(curve(ends, "wire arrow", f"{a} before {b}: {why[a, b]}"))
    for index in nodes:
        x, y = point(*layout.at[index], 0.0)
        inside = [
            element("title", f"loop {index}: {sizes[index]:,} iterations at most, loop {places.get(index, '?')} from outside"),
            element("rect", x=x - LOOP_WIDE / 2, y=y, width=LOOP_WIDE, height=LOOP_HIGH, rx=15),
            text(x, y + 13, shorten(f"{places.get(index, '?')}. {index}", 12), "name", "middle"),
            text(x, y + 25, f"{sizes[index]:,}", "op", "middle"),
        ]
        parts.append(element("g", Markup("").join(inside), class_="node none"))
    return svg(layout.width * LOOP_ACROSS, layout.layers * LOOP_DOWN - 16, Markup("").join(parts), "partial order of the loops")
