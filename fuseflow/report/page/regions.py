"""The content of the page about one region: rows of cells, sentences and drawings, made from the plain values of a result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fuseflow.report.page.dataflow import Drawing, draw_graph
from fuseflow.report.page.order import draw_order
from fuseflow.report.page.roofline import RooflinePoint
from fuseflow.report.page.run_directory import StoredRun, Values
from fuseflow.report.page.svg import Markup

LISTED_FIFOS = 12
"""The number of FIFOs that are listed, the fullest first."""
LISTED_STEPS = 10
"""The number of steps of the critical path that are listed, the longest first."""
NEAR_ROOFLINE = 1.25
"""The factor of its roofline below which a region counts as bound by the roofline."""

Row = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class LaneShares:
    """The lanes of one index, each with its firings in percent of those of the busiest lane."""

    index: str
    rows: tuple[Row, ...]
    imbalance: float


@dataclass(frozen=True, slots=True)
class RegionPage:
    """The content of the page about one region. Rows hold numbers, which the page prints and sorts. `deepened` has the FIFOs that were
    deepened, with their depths."""

    name: str
    anchor: str
    values: Values
    flops: int
    read: int
    written: int
    order: tuple[str, ...]
    sentences: tuple[str, ...]
    loops: Markup | None
    constraints: tuple[Row, ...]
    table: Values | None
    drawing: Drawing | None
    nodes: tuple[Row, ...]
    lanes: tuple[LaneShares, ...]
    fifos: tuple[Row, ...]
    deepened: tuple[Row, ...]
    memory: Values | None
    traffic: tuple[Row, ...]
    path: tuple[Row, ...]
    point: RooflinePoint


def region_page(number: int, values: Values, stored: StoredRun) -> RegionPage:
    """Return the content about the region `values` of a result. Raises `KeyError` and the like for malformed values."""
    statistics, cycles = values["statistics"], values["cycles"]
    explained = _explained(values, stored)
    compiled, graph = stored.compiled.get(values["name"], (None, None))
    by_name = {node["name"]: node for node in statistics["nodes"]}
    traffic, memory = statistics["traffic"], statistics["memory"]
    flops = sum(statistics["flops"].values())
    read, written = (sum(t["bytes"] for t in traffic if t["direction"] == d) for d in ("read", "write"))
    moved = read + written if memory is None else memory["read_bytes"] + memory["written_bytes"]
    return RegionPage(
        name=values["name"],
        anchor=f"region-{number}",
        values=values,
        flops=flops,
        read=read,
        written=written,
        order=() if compiled is None else tuple(compiled["order"]),
        sentences=tuple(_sentences(values, explained)),
        loops=None
        if not (compiled and compiled["loops"])
        else draw_order(compiled["loops"], compiled["constraints"], compiled["order"]),
        constraints=() if compiled is None else tuple((c["above"], c["below"], c["why"]) for c in compiled["constraints"]),
        table=None if not (compiled and compiled["table"]["columns"]) else compiled["table"],
        drawing=None if compiled is None or graph is None else draw_graph(graph, compiled["places"], by_name, cycles),
        nodes=tuple(_node(node, cycles) for node in statistics["nodes"]),
        lanes=tuple(_lanes(index, loads) for index, loads in statistics["lanes"].items()),
        fifos=_fifos(statistics["edges"]),
        deepened=tuple(values["depths"].items()),
        memory=memory,
        traffic=tuple(_traffic(traffic, memory)),
        path=() if explained is None else tuple(_step(s, cycles) for s in explained["path"][:LISTED_STEPS]),
        point=RooflinePoint(values["name"], flops, moved, cycles, values["roofline"]["compute"]),
    )


def _explained(values: Values, stored: StoredRun) -> Values | None:
    regions: Sequence[Values] = () if stored.cycles is None else stored.cycles["regions"]
    return next((region for region in regions if region["name"] == values["name"]), None)


def _sentences(values: Values, explained: Values | None) -> Iterator[str]:
    """Yield sentences about what bounds the region, the most important first."""
    cycles, roof = values["cycles"], values["roofline"]
    if explained is not None:
        yield f"Critical path: {explained['bottleneck']}."
    nodes, memory = values["statistics"]["nodes"], values["statistics"]["memory"]
    busiest = max(nodes, key=lambda node: node["occupied"])
    share = 100 * busiest["occupied"] / cycles if cycles else 0.0
    near = cycles <= NEAR_ROOFLINE * roof["bound"]
    if near and roof["bound"] == roof["compute"]:
        yield f"Bound by computing: `{busiest['name']}` ({busiest['op']}) works in {share:.0f} % of the cycles."
    elif near:
        yield f"Bound by memory: moving its bytes takes {100 * roof['memory'] / cycles:.0f} % of the cycles at least."
    else:
        over = f"{cycles / roof['bound']:.2f} times its roofline of {roof['bound']:,} cycles" if roof["bound"] else "no work"
        yield f"Bound by waiting: it takes {over}; its busiest node, `{busiest['name']}` ({busiest['op']}), works in {share:.0f} %."
        yield from _waits(nodes, cycles)
    if "resources" in values:  # results of before they were counted have none
        yield _occupied(values["resources"])
    config = values.get("config", {"bytes": 0})  # results of before there were configurations have none
    if config["bytes"]:
        yield f"Before it runs, memory loads {config['bytes']:,} resident bytes into its configuration, in {config['cycles']:,} cycles."
    if memory is not None:
        rate, peak = memory["bytes_per_cycle"], memory["peak_bytes_per_cycle"]
        latency = f"a read takes {memory['read_latency']:.0f} cycles"
        yield f"Memory moves {rate:.1f} bytes a cycle, {100 * rate / peak:.0f} % of its peak; {latency}."


def _occupied(resources: Values) -> str:
    """Return the sentence about what a region occupies."""
    counts = (f"{resources[name]:,}" for name in ("mul", "add", "special"))
    lanes = "{} lanes of multiplication, {} of addition and {} of other arithmetic".format(*counts)
    others = f"{resources['port']:,} ports of the memory and {resources['stream']:,} stream units"
    on_chip = f"{resources['fifo']:,} bytes of FIFOs and {resources['workspace']:,} of workspaces"
    return f"It occupies {lanes}, {others}, {on_chip}."


def _waits(nodes: Sequence[Values], cycles: int) -> Iterator[str]:
    """Yield a sentence about the node that waits for memory longest, if that takes more than a tenth of the cycles."""
    node = max(nodes, key=lambda node: node["waited"])
    if node["waited"] > 0.1 * cycles:
        yield f"`{node['name']}` ({node['op']}) waits for answers of the memory in {100 * node['waited'] / cycles:.0f} %."


def _node(node: Values, cycles: int) -> Row:
    """Return the row of a node, with shares of the cycles in percent."""
    parts = (max(node["firings"], node["occupied"]), node["starved"], node["waited"], node["blocked"])
    return (node["name"], node["op"], node["firings"], *(100 * part / cycles if cycles else 0.0 for part in parts))


def _lanes(index: str, loads: Sequence[Values]) -> LaneShares:
    most = max((load["firings"] for load in loads), default=0)
    mean = sum(load["firings"] for load in loads) / max(len(loads), 1)
    rows = tuple((f["lane"], f["nodes"], f["firings"], f["busy"], 100 * f["firings"] / most if most else 0.0) for f in loads)
    return LaneShares(index, rows, most / mean if mean else 1.0)


def _fifos(edges: Sequence[Values]) -> tuple[Row, ...]:
    fullest = sorted(edges, key=lambda edge: -edge["peak"])[:LISTED_FIFOS]
    return tuple((f"{edge['node']}.{edge['input']}", edge["tokens"], edge["peak"]) for edge in fullest if edge["peak"])


def _traffic(traffic: Sequence[Values], memory: Values | None) -> Iterator[Row]:
    """Yield a row for each array: the traffic that nodes asked for and, where memory takes time, lines, bytes moved and latency."""
    for t in traffic:
        ports = [] if memory is None else [p for p in memory["ports"] if _same(p, t)]
        lines = sum(p["requests"] for p in ports)
        moved: Row = ("", "", "")
        if memory is not None:
            latency = sum(p["latency"] * p["requests"] for p in ports) / max(lines, 1)
            moved = (lines, sum(p["moved_bytes"] for p in ports), latency)
        yield (t["tensor"], t["kind"], t["direction"], t["words"], t["bytes"], *moved)


def _same(port: Mapping[str, Any], traffic: Mapping[str, Any]) -> bool:
    return all(port[key] == traffic[key] for key in ("tensor", "kind", "direction"))


def _step(step: Values, cycles: int) -> Row:
    where = "" if step["input"] is None else f"input {step['input']}"
    if step["port"] is not None:
        tensor, kind, direction = step["port"]
        where = f"{direction} {tensor}.{kind}"
    return (step["node"], step["kind"], where, step["cycles"], 100 * step["cycles"] / cycles if cycles else 0.0, step["waits"])
