"""The page that compares two runs: their regions over time, speed-ups, differences in their settings, and their nodes one by one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from markupsafe import Markup

from fuseflow.loop_progress import counted
from fuseflow.report.page.assets import compact, render
from fuseflow.report.page.catalog import change_texts, explained_region, region_limit
from fuseflow.report.page.charts import BarPart, RooflinePoint, roofline, time_bar
from fuseflow.report.page.graph_drawings import Drawing, draw_graph
from fuseflow.report.page.html_elements import Cell, Column, Link, element, html_table
from fuseflow.report.page.page import printable
from fuseflow.report.page.regions import repeated_label
from fuseflow.report.page.run_directory import StoredRun, Values
from fuseflow.report.page.run_pairs import NodePair, RegionPair, node_pairs, region_pairs, speed_up, speed_up_table
from fuseflow.report.page.things import Kind, Thing, Things
from fuseflow.yaml_text import block_yaml

SIDES = ("A", "B")
ByNode: TypeAlias = dict[tuple[str, str], Thing]
"""The pairs of nodes of one run, by the region and the name of each node."""


@dataclass(frozen=True, slots=True)
class PairPage:
    """The content of the page about a pair of regions. `graphs` are the drawings of either side, with their titles."""

    name: str
    thing: Thing
    before: int
    after: int
    nodes: Markup
    graphs: tuple[tuple[str, Drawing], ...]


@printable
def comparison_page(before: StoredRun, after: StoredRun, names: tuple[str, str]) -> str:
    """Return the page that compares a run with an earlier one, its baseline. Raises `FileError` for values that are not as fuseflow writes
    them."""
    things, pairs = Things(), region_pairs(before, after)
    pages = [_pair_page(k, pair, before, after, things) for k, pair in enumerate(counted(pairs, "laying out graphs"), 1)]
    cycles = before.result["cycles"], after.result["cycles"]
    bars = [
        _bar(stored, [(pair.before, pair.after)[k] for pair in pairs], pages, max(cycles))
        for k, stored in enumerate((before, after))
    ]
    links = [
        Link(", ".join(map(repeated_label, pair.after)) or "none", page.thing) for pair, page in zip(pairs, pages, strict=True)
    ]
    return render(
        "comparison.html.jinja",
        things,
        runs=[
            {"side": side, "name": name, "run": stored.result, "bar": bar}
            for side, name, stored, bar in zip(SIDES, names, (before, after), bars, strict=True)
        ],
        speed_up=speed_up(*cycles),
        pairs=pages,
        speed_ups=speed_up_table(pairs, links, cycles),
        roofline=_roofline(before, after, pages, pairs),
        differences=_differences(before.result, after.result),
        memory=_memory(before.result, after.result),
    )


def _pair_page(k: int, pair: RegionPair, before: StoredRun, after: StoredRun, things: Things) -> PairPage:
    thing = things.add("region", f"{k}. {pair.name}")
    cycles = pair.cycles
    thing.facts += [("cycles in A", f"{cycles[0]:,}"), ("cycles in B", f"{cycles[1]:,}")]
    thing.facts += [("speed-up", speed_up(*cycles))] if all(cycles) else []
    thing.facts += [("regions of A", ", ".join(r["name"] for r in pair.before) or "none")]
    thing.facts += [("regions of B", ", ".join(r["name"] for r in pair.after) or "none"), ("Einsums", ", ".join(pair.einsums))]
    nodes = node_pairs(pair, before, after)
    by_node: tuple[ByNode, ByNode] = ({}, {})
    rows = [_node_row(node, things, thing.name, by_node) for node in nodes]
    for side, stored, regions in zip(SIDES, (before, after), (pair.before, pair.after), strict=True):
        for region in regions:
            limit = region_limit(region, explained_region(stored, region["name"]))
            if limit is not None:
                thing.facts.append((f"limit in {side}", limit.sentence.replace("`", "")))
                thing.link(f"limiting node in {side}", [by_node[side == "B"].get((region["name"], limit.node or ""))])
            thing.facts += [(f"would help {side}", text) for text in list(change_texts(stored, region["name"]))[:3]]
    graphs = (*_graphs(before, pair.before, "A", by_node[0]), *_graphs(after, pair.after, "B", by_node[1]))
    return PairPage(pair.name, thing, *cycles, _node_table(rows), graphs)


def _node_row(node: NodePair, things: Things, region: str, by_node: tuple[ByNode, ByNode]) -> tuple[Cell, ...]:
    label = f"{node.name} ({node.op}{', ' + node.einsum if node.einsum else ''})"
    thing = things.add("node", label, region)
    for side, known, inside in zip(SIDES, by_node, (node.before, node.after), strict=True):
        known |= dict.fromkeys(inside.names, thing)
        thing.facts.append((f"nodes in {side}", f"{len(inside.names):,}" if inside.names else "none"))
        if inside.names:
            thing.facts.append((f"busy in {side}", f"{inside.busy:,} cycles"))
            thing.facts.append((f"firings in {side}", f"{inside.firings:,}"))
    sides = (node.before, node.after)
    keys = ("firings", "busy", "starved", "memory", "blocked")
    both = [getattr(side, key) if side.names else None for key in keys for side in sides]
    counts = (len(side.names) for side in sides)
    return (Link(node.name, thing), node.op, node.einsum, *counts, node.change, *both)


def _node_table(rows: Sequence[Sequence[Cell]]) -> Markup:
    meanings = {
        "firings": "of all these nodes together",
        "busy, cycles": "in how many cycles the busiest of them works",
        "starved, cycles": "in how many it waits for a token",
        "memory, cycles": "in how many it waits for the memory",
        "blocked, cycles": "in how many it waits for anything else",
    }
    columns = [
        Column("node", "its name, without lanes", words=True),
        Column("op", words=True),
        Column("Einsum", "for which it works", words=True),
        *(Column(f"{side}, nodes", "how many there are: lanes, and regions that compute the same") for side in SIDES),
        Column("change, cycles", "how much longer the busiest works in B"),
        *(Column(f"{side}, {head}", meaning) for head, meaning in meanings.items() for side in SIDES),
    ]
    return html_table(columns, rows)


def _graphs(stored: StoredRun, regions: Sequence[Values], side: str, by_node: ByNode) -> Iterator[tuple[str, Drawing]]:
    """Yield a title and a drawing for each region. Nodes are marked as the pairs of nodes that they are in. `side` names the run."""
    for region in regions:
        name = region["name"]
        if name not in stored.compiled:
            continue
        compiled, graph = stored.compiled[name]
        nodes = {node["name"]: node for node in region["statistics"]["nodes"]}

        def mark(kind: Kind, node: str, name: str = name) -> Thing | None:
            return by_node.get((name, node)) if kind == "node" else None

        drawing = draw_graph(graph, compiled["places"], nodes, region["cycles"], mark)
        if drawing.picture is not None:
            yield f"{side}: {repeated_label(region)}, {region['cycles']:,} cycles", drawing


def _bar(stored: StoredRun, sides: Sequence[Sequence[Values]], pages: Sequence[PairPage], scale: int) -> Markup:
    """Return a bar of the regions of one run over time, each in the colour of its pair. `sides` has its regions by pair."""
    owner = {region["name"]: k for k, regions in enumerate(sides) for region in regions}
    parts = []
    for region in stored.result["regions"]:
        pair, spent = pages[owner[region["name"]]], region["times"] * region["cycles"]
        parts.append(BarPart(repeated_label(region), spent, f"{repeated_label(region)}: {spent:,} cycles", pair.thing))
    return time_bar(parts, scale, [owner[region["name"]] for region in stored.result["regions"]])


def _roofline(before: StoredRun, after: StoredRun, pages: Sequence[PairPage], pairs: Sequence[RegionPair]) -> Markup | None:
    """Draw the regions of both runs, the regions of the first run hollow. Each leads to its pair."""
    points = []
    for k, stored in enumerate((before, after)):
        owner = {region["name"]: page for page, pair in zip(pages, pairs, strict=True) for region in (pair.before, pair.after)[k]}
        for region in stored.result["regions"]:
            page, name = owner[region["name"]], f"{SIDES[k]}: {repeated_label(region)}"
            points.append(RooflinePoint.of(name, region, page.thing, hollow=not k))
    memories = [region["statistics"]["memory"] for stored in (before, after) for region in stored.result["regions"]]
    peaks = {None if memory is None else float(memory["peak_bytes_per_cycle"]) for memory in memories}
    return roofline(points, peaks.pop() if len(peaks) == 1 else None)


def _differences(before: Values, after: Values) -> Markup | None:
    """Return a table of the settings that differ between the runs `before` and `after`, or None if none does."""
    keys = ("model", "data", "options", "seed", "machine", "schedule", "engine", "versions")
    changed = [key for key in keys if before.get(key) != after.get(key)]
    rows: list[tuple[Cell, ...]] = []
    for key in changed:
        texts = [_text(run.get(key)) for run in (before, after)]
        rows.append((key, *(element("pre", element("code", block_yaml(text))) if key == "schedule" else text for text in texts)))
    first, second = (dict(_flat(run["machine_settings"])) for run in (before, after))
    for key in dict.fromkeys((*first, *second)):
        if first.get(key) != second.get(key):
            rows.append((f"machine: {key}", _text(first.get(key)), _text(second.get(key))))
    columns = [Column(head, words=True) for head in ("what", "A", "B")]
    return html_table(columns, rows, sortable=False) if rows else None


def _text(value: Any) -> str:
    return "" if value is None else compact(value) if isinstance(value, dict) else str(value)


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the settings in mappings of mappings, as `memory.channels`."""
    for key, value in values.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _memory(before: Values, after: Values) -> Markup | None:
    """Return a table of the bytes that nodes requested, by tensor of either run, the largest change first. None if there is none."""
    totals = [
        {name: sum(sum(kind.values()) for kind in kinds.values()) for name, kinds in run["bytes"]["by_tensor"].items()}
        for run in (before, after)
    ]
    names = sorted({*totals[0], *totals[1]}, key=lambda n: (-abs(totals[1].get(n, 0) - totals[0].get(n, 0)), n))
    columns = (Column("tensor", words=True), Column("A, bytes"), Column("B, bytes"), Column("change, bytes", "B less A"))
    rows = [(n, *(t.get(n, 0) for t in totals), totals[1].get(n, 0) - totals[0].get(n, 0)) for n in names]
    return html_table(columns, rows) if rows else None
