"""A drawing of the partial order of the loops of a region, with arrows from loops that must be outside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import networkx as nx

from fuseflow.report.page.layered_layout import layout_layers
from fuseflow.report.page.svg import Markup, curve, element, shorten, svg, text

WIDE, HIGH, ACROSS, DOWN = 84, 30, 100, 64


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

    def point(x: float, layer: int, low: float = HIGH / 2) -> tuple[float, float]:
        return x * ACROSS, layer * DOWN + 8 + low

    parts = []
    for a, b in edges:
        bends = [point(x, layer) for x, layer in layout.bends[a, b]]
        ends = [point(*layout.at[a], HIGH), *bends, point(*layout.at[b], -2.0)]
        parts.append(curve(ends, "wire arrow", f"{a} before {b}: {why[a, b]}"))
    for index in nodes:
        x, y = point(*layout.at[index], 0.0)
        inside = [
            element("title", f"loop {index}: {sizes[index]:,} iterations at most, loop {places.get(index, '?')} from outside"),
            element("rect", x=x - WIDE / 2, y=y, width=WIDE, height=HIGH, rx=15),
            text(x, y + 13, shorten(f"{places.get(index, '?')}. {index}", 12), "name", "middle"),
            text(x, y + 25, f"{sizes[index]:,}", "op", "middle"),
        ]
        parts.append(element("g", Markup("").join(inside), class_="node none"))
    return svg(layout.width * ACROSS, layout.layers * DOWN - 16, Markup("").join(parts), "partial order of the loops")
