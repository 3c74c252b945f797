"""The catalog of a page: all things of a run, with the facts that the page shows for each, and their links.

Every part of a page says in one way what limits a region: as the critical path says where one is known. Without one, the busiest node and
the memory are compared with the cycles of the region.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fuseflow.report.cycle_tables import STEP_WORDS
from fuseflow.report.page.run_directory import StoredRun, Values
from fuseflow.report.page.things import Things
from fuseflow.samml.nodes import Graph, Primitive
from fuseflow.samml.text import show_attributes

LISTED_CHANGES = 6
"""The most changes of a schedule that are shown beside a region, the changes with the largest expected gain first."""


def catalog(stored: StoredRun) -> Things:
    """Return all things of a run (regions, nodes, FIFOs, tensors, Einsums), which a page lists by number. Raises `KeyError` or
    another of `MALFORMED` for malformed values."""
    things, regions = Things(), stored.result["regions"]
    for region in regions:
        things.add("region", region["name"])
    _add_einsums(things, stored)
    for region in regions:
        _add_nodes(things, region, stored)
        _add_fifos(things, region, stored)
        _describe_region(things, region, stored)
    _add_tensors(things, stored)
    return things


def change_texts(stored: StoredRun, region: str | None = None) -> Iterator[str]:
    """Yield the changes that would take fewer cycles, the best first: the changes of one region, or all."""
    if stored.cycles is None:
        return
    now = stored.result["cycles"]
    for change in stored.cycles["changes"]:
        named = f" {region}." in f" {change['change']}" or f" {region}=" in f" {change['change']}"
        if change["cycles"] < now and (region is None or named):
            how = "measured" if change["measured"] else "estimated"
            yield f"{change['change']}: {change['cycles']:,} of {now:,} cycles, {how}"


def explained_region(stored: StoredRun, name: str) -> Values | None:
    """Return the values of `explain cycles` about a region, or None if it was not run."""
    regions: Sequence[Values] = () if stored.cycles is None else stored.cycles["regions"]
    return next((region for region in regions if region["name"] == name), None)


def path_cycles(explained: Values) -> dict[str, int]:
    """Return the cycles of the critical path at each node, by name."""
    on_path: dict[str, int] = {}
    for step in explained["path"]:
        on_path[step["node"]] = on_path.get(step["node"], 0) + step["cycles"]
    return on_path


def node_shares(node: Values, cycles: int, processes: int = 1) -> dict[str, float]:
    """Return the percent of the cycles in which a node was busy, starved, waiting for memory and blocked. Of two processes, busy
    is the busier one, and the rest is the mean of both, so that no share is above 100."""
    parts = {"busy": max(node["firings"] / processes, node["occupied"])}
    parts |= {state: node[key] / processes for state, key in WAITS.items()}
    return {state: round(100 * part / cycles, 1) if cycles else 0.0 for state, part in parts.items()}


WAITS = {"starved": "starved", "memory": "waited", "blocked": "blocked"}
"""The statistic of each kind of waiting."""


def node_processes(node: Values) -> int:
    """Return the number of processes whose cycles are added up in the numbers of a node: 2 if it fills one workspace while it
    empties another."""
    return 1 if node.get("workspace") is None else 2


def _add_einsums(things: Things, stored: StoredRun) -> None:
    homes = {einsum: region["name"] for region in stored.result["regions"] for einsum in region["einsums"]}
    for name, region in homes.items():
        things.add("einsum", name).region = things.add("region", region)
    for values in stored.program.get("einsums", ()):
        thing = things.add("einsum", values["name"])
        thing.facts.append(("statement", values["text"]))
        if values["module"]:
            thing.facts.append(("module", values["module"]))
        if values["file"] is not None:
            line = things.add("line", f"{values['file']}:{values['line']}")
            thing.link("from the line", [line])
            line.link("Einsums", [thing])
            line.region = line.region or thing.region
    for source in stored.program.get("sources", ()):
        for number, text in source["lines"]:
            if (quoted := things.find("line", f"{source['file']}:{number}")) is not None:
                quoted.facts.append(("source", text.strip()))


def _add_nodes(things: Things, region: Values, stored: StoredRun) -> None:
    name, cycles = region["name"], region["cycles"]
    compiled, graph = stored.compiled.get(name, ({}, None))
    nodes: Mapping[str, Primitive] = {} if graph is None else graph.by_name
    explained = explained_region(stored, name)
    on_path = {} if explained is None else path_cycles(explained)
    for values in region["statistics"]["nodes"]:
        thing = things.add("node", values["name"], name)
        node = nodes.get(values["name"])
        shares = node_shares(values, cycles, node_processes(values))
        if explained is not None:
            shares["path"] = round(100 * on_path.get(values["name"], 0) / cycles, 1) if cycles else 0.0
        thing.shares = shares
        operation = f"{values['op']} {'' if node is None else show_attributes(node)}".rstrip()
        thing.facts += [("operation", operation), ("firings", f"{values['firings']:,}")]
        thing.facts += [("busy", f"{shares['busy']} % of the cycles"), ("starved, waiting for a token", f"{shares['starved']} %")]
        thing.facts += [("waiting for memory", f"{shares['memory']} %"), ("blocked", f"{shares['blocked']} %")]
        if "path" in shares:
            thing.facts.append(("on the critical path", f"{shares['path']} % of the cycles"))
    if graph is not None:
        _link_nodes(things, name, graph, compiled.get("origins", {}))


def _link_nodes(things: Things, region: str, graph: Graph, origins: Mapping[str, Sequence[str]]) -> None:
    readers: dict[str, list[str]] = {}
    for node in graph.nodes:
        for port in node.inputs:
            readers.setdefault(port.node, []).append(node.name)
    for node in graph.nodes:
        thing = things.find("node", node.name, region)
        if thing is None:
            continue
        thing.link("reads", (things.find("node", port.node, region) for port in node.inputs))
        thing.link("read by", (things.find("node", name, region) for name in readers.get(node.name, ())))
        name = getattr(node, "tensor", None)
        if isinstance(name, str):
            tensor = things.add("tensor", name)
            thing.link("tensor", [tensor])
            tensor.link("nodes", [thing])
        for einsum in (things.find("einsum", name) for name in origins.get(node.name, ())):
            if einsum is not None:
                lines = einsum.links.get("from the line", ())
                thing.link("works for", [einsum])
                thing.link("from the line", lines)
                for other in (einsum, *lines):
                    other.link("nodes", [thing])


def _add_fifos(things: Things, region: Values, stored: StoredRun) -> None:
    name = region["name"]
    _, graph = stored.compiled.get(name, ({}, None))
    capacities = fifo_capacities(region, graph, stored.result["machine_settings"])
    for edge in region["statistics"]["edges"]:
        thing = things.add("fifo", f"{edge['node']}.{edge['input']}", name)
        thing.facts += [("tokens", f"{edge['tokens']:,}"), ("most held", f"{edge['peak']:,} tokens")]
        thing.facts.append(("capacity", capacity_text(capacities.get((edge["node"], edge["input"])))))
        reader = things.find("node", edge["node"], name)
        thing.link("into", [reader])
        if graph is not None and edge["node"] in graph.by_name:
            thing.link("from", [things.find("node", graph.by_name[edge["node"]].inputs[edge["input"]].node, name)])
        if reader is not None:
            reader.link("FIFOs", [thing])


def fifo_capacities(region: Values, graph: Graph | None, settings: Values) -> dict[tuple[str, int], int | None]:
    """Return the tokens that each FIFO of a region can hold, by the node that reads it and the number of its input; None where it is
    unbounded. A FIFO that was deepened in the run has its new depth, one that the graph gives a depth that one, and others that of the
    machine; the slots of its hops on an array are added."""
    usual = settings.get("fifo_depth")
    usual = settings.get("fifo_depth_start") if usual == "auto" else usual
    given = {} if graph is None else {(edge.node, edge.input): depth for edge, depth in graph.depths}
    hops = {} if graph is None else {(edge.node, edge.input): hop.count * hop.slots for edge, hop in graph.hops}
    capacities: dict[tuple[str, int], int | None] = {}
    for edge in region["statistics"]["edges"]:
        place = edge["node"], edge["input"]
        depth = region["depths"].get(f"{edge['node']}.{edge['input']}", given.get(place, usual))
        capacities[place] = None if depth is None else depth + hops.get(place, 0)
    return capacities


def capacity_text(capacity: int | None) -> str:
    return "unbounded" if capacity is None else f"{capacity:,} tokens"


def _describe_region(things: Things, region: Values, stored: StoredRun) -> None:
    thing = things.add("region", region["name"])
    explained = explained_region(stored, region["name"])
    bound = region["roofline"]["bound"]
    thing.facts.append(("cycles", f"{region['cycles']:,}" + (f", {region['times']} times" if region["times"] > 1 else "")))
    thing.facts.append(("roofline", f"{bound:,} cycles at least"))
    limit = region_limit(region, explained)
    if limit is not None:
        thing.facts.append(("limit", limit.sentence.replace("`", "")))
    limiting = None if limit is None or limit.node is None else things.find("node", limit.node, region["name"])
    thing.link("limiting node", [limiting])
    thing.link("Einsums", (things.find("einsum", einsum) for einsum in region["einsums"]))
    advice = list(change_texts(stored, region["name"]))[:LISTED_CHANGES]
    thing.facts += [("would help", text) for text in advice]
    if limiting is not None:
        limiting.facts[:0] = [("limits", f"the region {region['name']}"), *(("would help", text) for text in advice)]


def _add_tensors(things: Things, stored: StoredRun) -> None:
    moved: Mapping[str, Any] = stored.result["bytes"]["by_tensor"]
    declared = {tensor["name"]: tensor for tensor in stored.program.get("tensors", ())}
    for name in dict.fromkeys((*declared, *moved)):
        thing = things.add("tensor", name)
        if name in declared:
            shape = " x ".join(f"{size:,}" for size in declared[name]["shape"]) or "one number"
            thing.facts += [("shape", shape), ("stored", declared[name]["type"])]
        for direction, label in (("read", "bytes read"), ("write", "bytes written")):
            total = sum(kind[direction] for kind in moved.get(name, {}).values())
            thing.facts.append((label, f"{total:,}"))
    for values in stored.program.get("einsums", ()):
        einsum, result = things.find("einsum", values["name"]), things.find("tensor", values["name"])
        if einsum is None:
            continue
        operands = [tensor for name in values["operands"] if (tensor := things.find("tensor", name)) is not None]
        einsum.link("reads tensors", operands)
        for tensor in operands:
            tensor.link("read by", [einsum])
        if result is not None:
            result.link("defined by", [einsum])
            einsum.link("defines", [result])


NEAR_ROOFLINE = 1.25
"""The factor of its roofline below which the roofline limits a region whose critical path is not known."""


@dataclass(frozen=True, slots=True)
class Limit:
    """What limits a region: a sentence without its full stop, few words for a table, and the node, if it is one node."""

    sentence: str
    words: str
    node: str | None = None


def region_limit(region: Mapping[str, Any], explained: Mapping[str, Any] | None) -> Limit | None:
    """Return what limits a region of a result, given what `explain cycles` says of it; None for a region without nodes."""
    if explained is not None:
        on_path = path_cycles(explained)  # explanations of earlier versions do not name what limits a region
        node = explained.get("limits") or max(on_path, key=lambda node: on_path[node], default=None)
        words = STEP_WORDS.get(explained.get("limit_kind", ""))
        return Limit(explained["bottleneck"], ", ".join(filter(None, (node, words and words.limit))), node)
    nodes, cycles, roof = region["statistics"]["nodes"], region["cycles"], region["roofline"]
    if not nodes:
        return None
    busiest = max(nodes, key=lambda node: node["occupied"])
    name, share = busiest["name"], 100 * busiest["occupied"] / cycles if cycles else 0.0
    is_near = cycles <= NEAR_ROOFLINE * roof["bound"]
    if is_near and roof["bound"] == roof["compute"]:
        sentence = (
            f"limited by the work of `{name}` ({busiest['op']}), its busiest node, which works in {share:.0f} % of the cycles"
        )
        return Limit(sentence, f"{name}, work", name)
    if is_near:
        share = 100 * roof["memory"] / cycles
        return Limit(
            f"limited by the bandwidth of the memory: moving the bytes takes {share:.0f} % of the cycles at least", "bandwidth"
        )
    sentence = f"limited by waits: `{name}` ({busiest['op']}), its busiest node, works in {share:.0f} % of the cycles; "
    return Limit(f"{sentence}`--explain` says what is waited for", "waits")
