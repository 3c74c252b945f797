"""The content of the page about one region: tables, sentences and drawings, made from the plain values of a result."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import PurePath
from typing import Any

from markupsafe import Markup

from fuseflow.report.page.catalog import (
    WAITS,
    Limit,
    explained_region,
    fifo_capacities,
    node_processes,
    node_shares,
    path_cycles,
    region_limit,
)
from fuseflow.report.page.charts import LENS, STATES, ZOOM, RooflinePoint, stall_strip
from fuseflow.report.page.graph_drawings import Drawing, draw_graph, draw_order
from fuseflow.report.page.html_elements import Bar, Cell, Column, Link, element, fusion_table, html_table
from fuseflow.report.page.run_directory import StoredRun, Values
from fuseflow.report.page.things import Kind, Thing, Things
from fuseflow.report.tables import names_label
from fuseflow.run.artifacts import CONTEXT

LISTED_FIFOS = 200
"""The number of FIFOs that are listed, the fullest first."""
LISTED_STEPS = 10
"""The number of steps of the critical path that are listed, the longest first."""
STRIPS = 400
"""The most nodes that have a strip over time, the nodes that are on the critical path longest first."""
SHARE_COLUMNS = (
    Column("busy, %", "in how many percent of the cycles of the region it works; of two processes, the busier one"),
    Column("starved, %", "in how many it waits for a token"),
    Column("memory, %", "in how many it waits for an answer of the memory"),
    Column("blocked, %", "in how many it waits for anything else, such as room in a FIFO"),
)


@dataclass(frozen=True, slots=True)
class RegionPage:
    """The content of the page about one region."""

    label: str
    thing: Thing
    values: Values
    over: str
    order: tuple[str, ...]
    span: str
    sentences: tuple[str, ...]
    limit: Limit | None
    limits: Link | None
    loops: Markup | None
    constraints: Markup | None
    table: Markup | None
    drawing: Drawing | None
    einsums: Markup | None
    sources: list[dict[str, Any]]
    nodes: Markup
    lanes: list[dict[str, Any]]
    fifos: Markup | None
    memory: Values | None
    traffic: Markup
    path: Markup | None
    point: RooflinePoint
    array: Markup | None
    loading: int | None


def region_page(values: Values, stored: StoredRun, things: Things) -> RegionPage:
    """Return the content about the region `values` of a result. Raises `KeyError` or another of `MALFORMED` for malformed values."""
    name, statistics, cycles = values["name"], values["statistics"], values["cycles"]
    explained = explained_region(stored, name)
    compiled, graph = stored.compiled.get(name, (None, None))
    by_name = {node["name"]: node for node in statistics["nodes"]}
    names = _Names(things, name)
    limit = region_limit(values, explained)
    on_path = {} if explained is None else path_cycles(explained)
    drawing = None
    if compiled is not None and graph is not None:
        path = {node: spent / max(cycles, 1) for node, spent in on_path.items()}
        drawing = draw_graph(graph, compiled["places"], by_name, cycles, names.find, path)
    bound = values["roofline"]["bound"]
    loops, constraints = ((), ()) if compiled is None else (compiled["loops"], compiled["constraints"])
    heads = [Column(head, words=True) for head in ("loop", "before", "why")]
    return RegionPage(
        label=repeated_label(values),
        thing=names.region,
        values=values,
        over=f"{cycles / bound:.2f} times the {bound:,} cycles of its roofline" if bound else "no work",
        order=() if compiled is None else tuple(compiled["order"]),
        span=einsum_span(values["einsums"]),
        sentences=tuple(_sentences(values)),
        limit=limit,
        limits=None if limit is None else Link(limit.words, None if limit.node is None else names.find("node", limit.node)),
        loops=draw_order(loops, constraints, compiled["order"]) if compiled and loops else None,
        constraints=html_table(heads, [(c["above"], c["below"], c["why"]) for c in constraints], False) if constraints else None,
        table=_table(compiled, names, by_name) if compiled and compiled["table"]["columns"] else None,
        drawing=drawing,
        einsums=_einsums(values["einsums"], things),
        sources=_sources(stored.program, values["einsums"], things),
        nodes=_nodes(values, explained, on_path, names),
        lanes=[_lanes(index, loads) for index, loads in statistics["lanes"].items()],
        fifos=_fifos(statistics["edges"], fifo_capacities(values, graph, stored.result["machine_settings"]), names),
        memory=statistics["memory"],
        traffic=_traffic(statistics["traffic"], statistics["memory"], names),
        path=None if explained is None else _path(explained["path"], cycles, names),
        point=RooflinePoint.of(name, values, names.region),
        array=_array(stored.pictures[name]) if name in stored.pictures else None,
        loading=stored.result.get("loading", {}).get("regions", {}).get(name),
    )


def _array(picture: str) -> Markup:
    """Return a picture of a region on an array as an image, in which nothing runs."""
    data = b64encode(picture.encode()).decode()
    return Markup('<img alt="the region on the array" src="data:image/svg+xml;base64,{}">').format(data)


def repeated_label(values: Values) -> str:
    """Return the name of a region, with the names of the regions that run like it."""
    return names_label([values["name"], *values["repeats"]])


class _Names:
    """The names of a region as links to the things of the page: nodes, FIFOs, tensors and Einsums."""

    def __init__(self, things: Things, region: str) -> None:
        self.things, self.name = things, region
        self.region = things.add("region", region)

    def find(self, kind: Kind, name: str) -> Thing | None:
        return self.things.find(kind, name, self.name if kind in ("node", "fifo") else "")

    def link(self, kind: Kind, name: str) -> Link:
        return Link(name, self.find(kind, name))


def _table(compiled: Values, names: _Names, by_name: Mapping[str, Values]) -> Markup:
    """Return the fusion table as HTML. The table has no lanes, so a stream in it leads to the node of the first lane."""
    first = {name.partition("/")[0]: name for name in reversed(list(by_name))}

    def node(stream: str) -> Thing | None:
        return names.find("node", stream if stream in by_name else first.get(stream, stream))

    def column(head: str) -> Thing | None:
        tensor = head.partition("[")[0]
        einsum = names.find("einsum", tensor)
        return names.find("tensor", tensor) if einsum is None or "[" in head else einsum

    return fusion_table(compiled["table"], node, column)


def _einsums(names: Sequence[str], things: Things) -> Markup | None:
    """Return a table of the Einsums with their statements and the lines that they came from."""
    columns = (
        Column("Einsum", "the tensor that it defines", words=True),
        Column("statement", "what it computes", words=True),
        Column("line", "where the model says so", words=True),
    )
    rows = []
    for name in names:
        thing = things.find("einsum", name)
        if thing is None:
            continue
        statement = next((text for label, text in thing.facts if label == "statement"), "")
        lines = thing.links.get("from the line", ())
        line: Cell = Link(PurePath(lines[0].name).name, lines[0]) if lines else ""
        rows.append((Link(name, thing), statement, line))
    return html_table(columns, rows, sortable=False) if rows else None


def _sources(program: Values, einsums: Sequence[str], things: Things) -> list[dict[str, Any]]:
    """Return, by file, the lines that some Einsums came from, with the lines around them. A `gap` is before a line: some are left out."""
    wanted: dict[str, set[int]] = {}
    for values in program.get("einsums", ()):
        if values["name"] in einsums and values["file"] is not None:
            line = values["line"]
            wanted.setdefault(values["file"], set()).update(range(line - CONTEXT, line + CONTEXT + 1))
    files = []
    for source in program.get("sources", ()):
        if (file := source["file"]) in wanted:
            kept = [(number, text) for number, text in source["lines"] if number in wanted[file]]
            gaps = {after for (before, _), (after, _) in pairwise(kept) if after != before + 1}
            lines = [
                {"number": number, "text": text, "thing": things.find("line", f"{file}:{number}"), "gap": number in gaps}
                for number, text in kept
            ]
            files.append({"file": file, "lines": lines})
    return files


def einsum_span(einsums: Sequence[str]) -> str:
    """Return words for the first and the last Einsum of a region, since names such as `full-2` do not tell; "" for none.

    >>> einsum_span(["h.0.norm.sum", "h.0.norm.div", "h.0.attn.add"]), einsum_span(["relu"]), einsum_span([])
    ('3 Einsums, from `h.0.norm.sum` to `h.0.attn.add`', 'one Einsum, `relu`', '')
    """
    if len(einsums) < 2:
        return f"one Einsum, `{einsums[0]}`" if einsums else ""
    return f"{len(einsums)} Einsums, from `{einsums[0]}` to `{einsums[-1]}`"


def _sentences(values: Values) -> Iterator[str]:
    """Yield sentences about what a region occupies, loads and moves."""
    memory = values["statistics"]["memory"]
    if "resources" in values:  # results of before they were counted have none
        yield _occupied(values["resources"])
    config = values.get("config", {"bytes": 0})  # results of before there were configurations have none
    if config["bytes"]:
        yield f"Before it runs, memory loads {config['bytes']:,} resident bytes into its configuration, in {config['cycles']:,} cycles."
    if memory is not None:
        rate, peak = memory["bytes_per_cycle"], memory["peak_bytes_per_cycle"]
        latency = f"a read takes {memory['read_latency']:.0f} cycles"
        yield f"Memory moves {rate:.1f} bytes a cycle, {100 * rate / peak:.0f} % of its peak; {latency}."
        buffered = [port for port in memory["ports"] if port.get("buffer")]
        if buffered:
            lines, hits = (sum(port[name] for port in buffered) for name in ("requests", "hits"))
            found = f"{hits:,} are in it ({100 * hits / max(lines, 1):.0f} %)"
            yield f"Of the {lines:,} lines that ports with a reuse buffer ask for, {found}."


def _occupied(resources: Values) -> str:
    """Return the sentence about the resources that a region occupies."""
    mul, add, special = (f"{resources[name]:,}" for name in ("mul", "add", "special"))
    lanes = f"{mul} lanes of multiplication, {add} of addition and {special} of other arithmetic"
    others = f"{resources['port']:,} ports of the memory and {resources['stream']:,} stream units"
    on_chip = f"{resources['fifo']:,} bytes of FIFOs and {resources['workspace']:,} of workspaces"
    if resources["buffer"]:
        on_chip = f"{on_chip}, {resources['buffer']:,} of reuse buffers"
    return f"It occupies {lanes}, {others}, {on_chip}."


def _nodes(values: Values, explained: Values | None, on_path: Mapping[str, int], names: _Names) -> Markup:
    """Return a row for each node: firings, shares of the cycles, and its strip over time. Nodes that are on the critical path longest come
    first if it is known; else they stand in graph order."""
    cycles, nodes = values["cycles"], values["statistics"]["nodes"]
    columns = [
        Column("node", "its name in the graph", words=True),
        Column("op", "its primitive", words=True),
        Column("firings", "how often it fired"),
        *SHARE_COLUMNS,
    ]
    if explained is None:
        return _scrolls(html_table(columns, (_node(node, cycles, names) for node in nodes)))
    columns.append(Column("on path, %", "in how many percent of the cycles the critical path leads through it"))
    stalls = explained.get("stalls")
    nodes = sorted(nodes, key=lambda node: -on_path.get(node["name"], 0))
    paths = [100 * on_path.get(node["name"], 0) / cycles if cycles else 0.0 for node in nodes]
    rows = [(*_node(node, cycles, names), share) for node, share in zip(nodes, paths, strict=True)]
    if stalls is None:
        return _scrolls(html_table(columns, rows))
    columns.append(Column("over time, cycles", f"what it did, in windows of {stalls['window']:,} cycles", words=True, below=LENS))
    strips: list[Markup | None] = [None] * len(nodes)
    for k, node in enumerate(nodes[:STRIPS]):
        if states := stalls["nodes"].get(node["name"]):
            strips[k] = stall_strip(states, stalls["window"], cycles, stalls["processes"].get(node["name"], 1))
    table = html_table(columns, [(*row, strip) for row, strip in zip(rows, strips, strict=True)])
    legend = Markup("").join(element("i", state, class_=f"fill-{state}") for state in STATES)
    told = element("span", legend + " empty: before the first firing, and after the last", class_="legend")
    tools = element("div", told + ZOOM, class_="tools")
    return element("div", tools + element("div", table, class_="scrolls"), class_="timeline", data_cycles=cycles)


def _scrolls(table: Markup) -> Markup:
    return element("div", table, class_="scrolls")


def _node(node: Values, cycles: int, names: _Names) -> tuple[Cell, ...]:
    """Return the row of a node, with shares of the cycles in percent."""
    shares = node_shares(node, cycles, node_processes(node))
    return (names.link("node", node["name"]), node["op"], node["firings"], *(shares[s] for s in ("busy", *WAITS)))


def _lanes(index: str, loads: Sequence[Values]) -> dict[str, Any]:
    """Return the lanes of one index, each with its firings in percent of the firings of the busiest lane."""
    most = max((load["firings"] for load in loads), default=0)
    mean = sum(load["firings"] for load in loads) / max(len(loads), 1)
    columns = (
        Column("lane"),
        Column("nodes"),
        Column("firings"),
        Column("busiest node, cycles", "the cycles in which its busiest node works"),
        Column("of the busiest lane", "its firings, of those of the lane that fires most", words=True),
    )
    rows = [(f["lane"], f["nodes"], f["firings"], f["busy"], Bar(100 * f["firings"] / most if most else 0.0)) for f in loads]
    return {"index": index, "table": html_table(columns, rows), "count": len(loads), "imbalance": most / mean if mean else 1.0}


def _fifos(edges: Sequence[Values], capacities: Mapping[tuple[str, int], int | None], names: _Names) -> Markup | None:
    fullest = [edge for edge in sorted(edges, key=lambda edge: -edge["peak"])[:LISTED_FIFOS] if edge["peak"]]
    columns = (
        Column("FIFO", "the node that reads it, and the number of its input", words=True),
        Column("tokens", "how many went through it"),
        Column("most held", "the most tokens that were in it at once"),
        Column("capacity", "the tokens that it can hold, in the hops of its route on an array too"),
        Column("full, %", "the most tokens that were in it, of its capacity"),
    )
    rows: list[tuple[Cell, ...]] = []
    for edge in fullest:
        capacity = capacities[edge["node"], edge["input"]]
        room: tuple[Cell, ...] = ("unbounded", None) if capacity is None else (capacity, 100 * edge["peak"] / capacity)
        rows.append((names.link("fifo", f"{edge['node']}.{edge['input']}"), edge["tokens"], edge["peak"], *room))
    return html_table(columns, rows) if rows else None


def _traffic(traffic: Sequence[Values], memory: Values | None, names: _Names) -> Markup:
    """Return a table of the traffic with a row for each array of a tensor (its positions, coordinates or values) and direction: the
    elements and bytes that nodes asked for. On a machine whose memory takes time, a row has the lines and bytes that were moved, too,
    and the mean latency in cycles."""
    is_buffered = memory is not None and any(port.get("buffer") for port in memory["ports"])
    columns = [
        Column("tensor", words=True),
        Column("array", "positions, coordinates or values", words=True),
        Column("direction", words=True),
        Column("elements", "how many nodes asked for"),
        Column("asked, bytes", "the bytes of these elements"),
        Column("lines", "the requests to the memory"),
        *([Column("hits", "how many of these lines were in a reuse buffer")] if is_buffered else []),
        Column("moved, bytes", "the bytes of these lines"),
        Column("latency, cycles", "from a request to its answer, on average"),
    ]
    array = ("tensor", "kind", "direction")
    rows: list[tuple[Cell, ...]] = []
    for t in traffic:
        ports = [] if memory is None else [p for p in memory["ports"] if all(p[key] == t[key] for key in array)]
        lines = sum(p["requests"] for p in ports)
        hits = sum(p.get("hits", 0) for p in ports)
        moved: tuple[Cell, ...] = ("",) * (4 if is_buffered else 3)
        if memory is not None:
            latency = sum(p["latency"] * (p["requests"] - p.get("hits", 0)) for p in ports) / max(lines - hits, 1)
            moved = (lines, *([hits] if is_buffered else []), sum(p["moved_bytes"] for p in ports), latency)
        rows.append((names.link("tensor", t["tensor"]), t["kind"], t["direction"], t["words"], t["bytes"], *moved))
    return html_table(columns, rows)


def _path(steps: Sequence[Values], cycles: int, names: _Names) -> Markup:
    columns = (
        Column("node", words=True),
        Column("cycles", "the cycles of the path that are due to it"),
        Column("of all, %"),
        Column("waits", "how often"),
        Column("what", "work, latency, a full FIFO, or the memory", words=True),
        Column("where", words=True),
    )
    return html_table(columns, [_step(step, cycles, names) for step in steps[:LISTED_STEPS]])


def _step(step: Values, cycles: int, names: _Names) -> tuple[Cell, ...]:
    where: Cell = "" if step["input"] is None else names.link("fifo", f"{step['node']}.{step['input']}")
    if step["port"] is not None:
        tensor, kind, direction = step["port"]
        where = f"{direction} {tensor}.{kind}"
    share = 100 * step["cycles"] / cycles if cycles else 0.0
    return (names.link("node", step["node"]), step["cycles"], share, step["waits"], step["kind"], where)
