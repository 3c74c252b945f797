"""The values of drawings: the dataflow graph of a region, and the partial order of its loops.

The script `graphs.js` lays them out in layers and draws them. Inputs of a node are above it; arrows of an order come from outer loops.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import networkx as nx
from markupsafe import Markup

from fuseflow.report.page.html_elements import figure, shorten, shorten_middle
from fuseflow.report.page.things import Kind, Thing, number_of
from fuseflow.samml.node import Role
from fuseflow.samml.nodes import Graph, Primitive
from fuseflow.samml.text import show_attributes

MAX_DRAWN_NODES = 5000
"""The number of nodes up to which a graph is drawn, since larger drawings cannot be read."""
LETTERS = 22
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
    """A drawing of a graph. `picture` is None if there are too many nodes, `note` says what is shown of it, `folded` says what a button
    shows besides, if there is something, and `operations` has the number of nodes of each primitive."""

    picture: Markup | None
    note: str
    folded: str
    operations: tuple[tuple[str, int], ...]


def draw_graph(
    graph: Graph,
    places: Mapping[str, Any],
    statistics: Mapping[str, Any],
    cycles: int,
    marks: Marks = no_marks,
    path: Mapping[str, float] | None = None,
) -> Drawing:
    """Draw a graph; of lanes, only the first is drawn until one asks for all. `places` has the lanes of nodes. `statistics` are the
    statistics of a result, by node. `marks` gives the things that nodes and FIFOs are on a page, and `path` the share of the critical path
    that each of its nodes has."""
    first = {node.name for node in graph.nodes if all(lane == 0 for _, lane in places.get(node.name, ()))}
    operations = tuple(sorted(Counter(node.op for node in graph.nodes).items(), key=lambda item: (-item[1], item[0])))
    every, lanes = len(graph.nodes), _lanes_text(places)
    if len(first) > MAX_DRAWN_NODES:
        one = " in one lane" if len(first) < every else ""
        note = f"{len(first):,} nodes{one} are too many to draw; graph.dot of the run has them."
        return Drawing(None, note, "", operations)
    shown = list(graph.nodes) if every <= MAX_DRAWN_NODES else [node for node in graph.nodes if node.name in first]
    note = f"{lanes}, one shown: {len(first):,} of {every:,} nodes" if len(first) < every else ""
    if note and every > MAX_DRAWN_NODES:
        note += "; all are too many to draw, and are in graph.dot of the run"
    folded = f"show all {every:,}" if note and every <= MAX_DRAWN_NODES else ""
    values = _graph_values(graph, shown, first, statistics, cycles, marks, path or {})
    return Drawing(figure("graph", values, f"dataflow graph of {graph.name}"), note, folded, operations)


def _lanes_text(places: Mapping[str, Any]) -> str:
    """Return the number of lanes of each index, as in `4 lanes of i`."""
    counts: dict[str, int] = {}
    for lanes in places.values():
        for index, lane in lanes:
            counts[index] = max(counts.get(index, 0), lane + 1)
    return ", ".join(f"{count:,} lanes of {index}" for index, count in counts.items())


def _graph_values(
    graph: Graph,
    shown: Sequence[Primitive],
    first: set[str],
    statistics: Mapping[str, Any],
    cycles: int,
    marks: Marks,
    path: Mapping[str, float],
) -> dict[str, Any]:
    """Return the nodes and the edges of a graph as plain values, without what is usual."""
    places = {node.name: k for k, node in enumerate(shown)}
    labels = node_labels([node.name for node in shown], LETTERS)
    types, whole = graph.types(), {(edge.node, edge.input) for edge in graph.fiber_fifos}
    lanes = _lanes_shares(path)
    nodes, edges = list[dict[str, Any]](), list[dict[str, Any]]()
    for node in shown:
        values = _node_values(node, labels[node.name], statistics.get(node.name), cycles, path.get(node.name))
        if node.name not in first:
            values["lane"] = True
        elif "/" in node.name and (share := lanes.get(node.name.partition("/")[0])) is not None:
            values["lanes_path"] = round(share, 4)
        nodes.append(values | _mark(marks("node", node.name)))
        for k, port in enumerate(node.inputs):
            if port.node not in places:
                continue
            stream = f"{port.node}.{graph.by_name[port.node].port_names()[port.output]}"
            edge: dict[str, Any] = {"from": places[port.node], "to": places[node.name], "kind": types[port].kind}
            edge |= {"whole": True} if (node.name, k) in whole else {}
            edges.append(edge | {"tip": f"{stream} to {node.name}, input {k}"} | _mark(marks("fifo", f"{node.name}.{k}")))
    return {"nodes": nodes, "edges": edges}


def _lanes_shares(path: Mapping[str, float]) -> dict[str, float]:
    """Return the share of the critical path that a node has in all lanes, by its name without its lane."""
    shares: dict[str, float] = {}
    for name, share in path.items():
        family = name.partition("/")[0]
        shares[family] = shares.get(family, 0.0) + share
    return shares


def _mark(thing: Thing | None) -> dict[str, int]:
    number = number_of(thing)
    return {} if number is None else {"t": number}


def _node_values(node: Primitive, name: str, work: Any, cycles: int, share: float | None) -> dict[str, Any]:
    label = f"{node.op} {show_attributes(node)}".rstrip()
    busy = min(work["occupied"] / cycles, 1.0) if work and cycles else 0.0
    tip = f"{node.name}: {label}" + (f"; {work['firings']:,} firings, busy {100 * busy:.1f} %" if work else "")
    values: dict[str, Any] = {"name": name, "op": shorten_middle(label, LETTERS), "kind": KINDS[node.role], "tip": tip}
    values |= {"busy": round(busy, 4)} if busy else {}
    return values | ({} if share is None else {"path": round(share, 4)})


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
    names = sorted(sizes, key=lambda index: places.get(index, 0))
    whole: nx.DiGraph[str] = nx.DiGraph()
    whole.add_nodes_from(names)
    whole.add_edges_from((c["above"], c["below"]) for c in constraints)
    why = {(c["above"], c["below"]): c["why"] for c in constraints}
    pairs = sorted(nx.transitive_reduction(whole).edges, key=lambda e: (places.get(e[0], 0), places.get(e[1], 0)))
    nodes = [
        {
            "name": shorten(f"{places.get(index, '?')}. {index}", LETTERS // 2),
            "op": f"{sizes[index]:,}",
            "kind": "none",
            "tip": f"loop {index}: {sizes[index]:,} iterations at most, loop {places.get(index, '?')} from outside",
        }
        for index in names
    ]
    at = {index: k for k, index in enumerate(names)}
    edges = [{"from": at[a], "to": at[b], "kind": "val", "tip": f"{a} before {b}: {why[a, b]}"} for a, b in pairs]
    return figure("order", {"nodes": nodes, "edges": edges}, "partial order of the loops")
