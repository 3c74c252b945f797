"""The explanation of a run's cycles as text and tables, and as JSON: critical paths, bottlenecks, expected changes; and its summary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple, assert_never

from rich.markup import escape
from rich.table import Table

from fuseflow.explain.cycles import Change, CyclesReport, PathShare, RegionCycles, path_shares
from fuseflow.lower.regions import CompiledRegion
from fuseflow.report.tables import cycle_shares, plain_table
from fuseflow.samml.node import TensorWriter
from fuseflow.samml.nodes import Edge, Fork, Merge, WriteLevel
from fuseflow.sim.events.critical_path import CriticalPath, PathStep
from fuseflow.sim.events.fifo_loops import StepKind
from fuseflow.sim.events.stalls import STATES, Stalls

SCHEMA = 1
CYCLES_FILE = "cycles.json"
"""The file in the directory of a run that holds the explanation of its cycles, if `run --explain` wrote the directory."""


class StepWords(NamedTuple):
    """What a kind of steps of a critical path is called: as a share of the path, as the cause of one step, and as the limit of a region."""

    share: str
    cause: str
    limit: str


STEP_WORDS: dict[StepKind, StepWords] = {
    "work": StepWords("work", "work", "work"),
    "latency": StepWords("latency", "latency", "latency"),
    "full": StepWords("full FIFOs", "lines held", "a full FIFO"),
    "memory": StepWords("memory", "memory", "waits for the memory"),
}
NOTABLE_SHARE = 0.25
"""The share of a path that one node takes in one kind of step from which on the sentence about the path names it, too."""


def cycles_lines(report: CyclesReport, top: int) -> Iterator[str | Table]:
    """Yield the lines, which are rich markup, and the tables of the explanation."""
    for region in report.regions:
        result = region.result
        times = f", {result.times} times" if result.times > 1 else ""
        roofline = f"{result.simulation.bound:,} is the roofline, which it cannot beat"
        yield escape(f"region {result.name}: {result.cycles:,} cycles{times}; {roofline}")
        kinds = _kinds(region.path).items()
        shares = (f"{100 * cycles / region.path.cycles:.0f} % {STEP_WORDS[kind].share}" for kind, cycles in kinds)
        yield f"critical path: {', '.join(shares)}"
        yield escape(bottleneck_sentence(region))
        yield ""
        yield path_table(region, top)
        yield ""
        yield node_table(region, top)
        yield ""
        if any(edge.peak for edge in result.simulation.edges):
            yield edge_table(region, top, report.compiled.machine.first_depth)
            yield ""
    if report.changes:
        yield escape(advice_sentence(report))
        yield ""
        yield change_table(report)


def _kinds(path: CriticalPath) -> dict[StepKind, int]:
    """Return the cycles of each kind of step of a path, the largest first."""
    cycles = {kind: sum(step.cycles for step in path.steps if step.kind == kind) for kind in STEP_WORDS}
    return {kind: cycles[kind] for kind in sorted(cycles, key=lambda kind: -cycles[kind]) if cycles[kind]}


def bottleneck_sentence(region: RegionCycles) -> str:
    """Return a sentence about the largest share of the critical path: the kind of step that takes most cycles, at its main node.

    Another kind has a sentence of its own if one node takes a notable share of the path in it. A FIFO that limits a region is so named
    even if some node works longer than it waits.
    """
    first, *others = (_share_sentence(region, share) for share in named_shares(region.path))
    return f"limited by {'. Then by '.join([first, *others])}"


def named_shares(path: CriticalPath) -> list[PathShare]:
    """Return the shares of a path that its sentence names. The first one is the limit of the region."""
    shares = path_shares(path)
    largest = [next(share for share in shares if share.kind == kind) for kind in _kinds(path)]
    return [*largest[:1], *(share for share in largest[1:] if share.cycles >= NOTABLE_SHARE * path.cycles)]


def _share_sentence(region: RegionCycles, share: PathShare) -> str:
    steps = [s for s in region.path.steps if (s.node, s.kind) == (share.node, share.kind)]
    percent = f"{100 * share.cycles / region.path.cycles:.0f} % of the critical path"
    node = region.region.graph.by_name[share.node]
    function = getattr(node, "function", None)
    culprit = f"`{share.node}` ({node.op} {function})" if function else f"`{share.node}` ({node.op})"
    times = sum(s.times for s in steps)
    each = f"{share.cycles:,} cycles at once" if times == 1 else f"{times:,} times {share.cycles / max(times, 1):,.1f} cycles"
    match share.kind:
        case "work":
            stats = next(found for found in region.result.simulation.nodes if found.name == share.node)
            sentence = f"the work of {culprit}, which fires {stats.firings:,} times"
        case "latency":
            sentence = f"the latency of {culprit}, {each}"
        case "full":
            edges = sorted({s.edge for s in steps if s.edge is not None}, key=lambda edge: edge.input)
            rooms = dict.fromkeys(_full_fifos(region, edge) for edge in edges)
            awaited = f"room in {' and '.join(rooms)}" if rooms else "lines"
            sentence = f"waits for {awaited} of {culprit}"
        case "memory":
            ports = sorted({f"{s.port.direction}s `{s.port.tensor}` ({s.port.kind})" for s in steps if s.port is not None})
            sentence = f"waits for the memory: {culprit} {' and '.join(ports)}, {each}"
        case unknown:
            assert_never(unknown)
    return f"{sentence}{_place(region.region, share.node)} ({percent})"


def _full_fifos(region: RegionCycles, full: Edge) -> str:
    """Return words for the FIFO `full`, whose peak of tokens is its depth, and for the FIFOs between the same nodes that were as
    full: streams that are written and read in step hold each other up, so that making one of them deeper changes nothing."""
    inputs = region.region.graph.by_name[full.node].inputs
    peaks = {e.input: e.peak for e in region.result.simulation.edges if e.node == full.node}
    writer = inputs[full.input].node
    numbers = [str(n) for n, port in enumerate(inputs) if port.node == writer and peaks[n] == peaks[full.input]]
    fifos, plural = ("FIFOs", "s") if len(numbers) > 1 else ("FIFO", "")
    return f"the {fifos} of {peaks[full.input]:,} tokens from `{writer}` to input{plural} {' and '.join(numbers)}"


def _place(region: CompiledRegion, name: str) -> str:
    """Return words about the position of a node relative to the lanes of its region, or "" if the region has no lanes."""
    if not region.places:
        return ""
    lanes = region.places.get(name, ())
    if lanes:
        return f"; it is in lane {' '.join(f'{index}:{lane}' for index, lane in lanes)}"
    match region.graph.by_name[name]:
        case Fork(lanes=count):
            return f"; it is the distributor, which deals to {count} lanes one token a cycle"
        case Merge(lanes=count):
            writers = [w for w in region.graph.nodes if isinstance(w, TensorWriter) and w.inputs[0].node == name]
            fed = f" for the one writer of {_written(writers[0])}" if writers else ""
            return f"; it is the collector, which takes from {count} lanes one token a cycle{fed}"
        case TensorWriter() as node:
            return f"; it is the one writer of {_written(node)}, which takes one token a cycle from all lanes, so that more do not help it"
        case _:
            return "; it is outside the lanes, so that more of them do not help it"


def _written(node: TensorWriter) -> str:
    return f"level {node.level} of `{node.tensor}`" if isinstance(node, WriteLevel) else f"the values of `{node.tensor}`"


def path_table(region: RegionCycles, top: int) -> Table:
    """Return a table of the `top` longest steps of the path, with the rest in one row, so that the rows add up to all cycles."""
    table = plain_table("critical path", "op", "cause", "cycles", "%", "waits", numbers_from=3)
    shown = region.path.steps[:top]
    for step in shown:
        name, op = escape(step.node), region.region.graph.by_name[step.node].op
        waits = f"{step.times:,}" if step.times else ""
        table.add_row(name, op, escape(_what(step)), f"{step.cycles:,}", _percent(step.cycles, region), waits)
    rest = region.path.steps[top:]
    if rest:
        cycles, times = sum(step.cycles for step in rest), sum(step.times for step in rest)
        waits = f"{times:,}" if times else ""
        table.add_row(f"{len(rest)} more", "", "", f"{cycles:,}", _percent(cycles, region), waits)
    return table


def _what(step: PathStep) -> str:
    if step.kind == "full" and step.edge is not None:  # else between the node that asks the memory and the one that waits
        return f"FIFO {step.edge.input} full"
    if step.port is not None:
        return f"{step.port.direction} {step.port.tensor}.{step.port.kind}"
    return STEP_WORDS[step.kind].cause


def _percent(cycles: float, region: RegionCycles) -> str:
    return f"{100 * cycles / region.path.cycles:.1f}"


def node_table(region: RegionCycles, top: int) -> Table:
    """Return a table of the `top` nodes that are on the path longest, then the busiest, in percent of the region's cycles."""
    columns = ("on path\n%", "firings", "busy\n%", "starved\n%", "memory\n%", "blocked\n%")
    table = plain_table("node", "op", *columns, numbers_from=2)
    on_path = Counter[str]()
    for step in region.path.steps:
        on_path[step.node] += step.cycles
    nodes = sorted(region.result.simulation.nodes, key=lambda n: (-on_path[n.name], -n.busy))
    for node in nodes[:top]:
        cells = (_percent(on_path[node.name], region), f"{node.firings:,}", *cycle_shares(node, region.path.cycles))
        table.add_row(escape(node.name), node.op, *cells)
    return table


def edge_table(region: RegionCycles, top: int, usual: int | None) -> Table:
    """Return a table of the `top` FIFOs that the path waits for, then of the FIFOs that held most. `usual` is their default depth."""
    table = plain_table("FIFO", "from", "tokens", "most\nheld", "depth", "on path\n%", numbers_from=2)
    waits: dict[tuple[str, int], int] = {}
    for step in region.path.steps:
        if step.kind == "full" and step.edge is not None:  # else between the node that asks the memory and the one that waits
            waits[step.edge.node, step.edge.input] = step.cycles
    graph, run = region.region.graph, region.result.simulation
    edges = sorted(run.edges, key=lambda e: (-waits.get((e.node, e.input), 0), -e.peak))
    depths = {**dict(graph.depths), **run.depths}
    for edge in edges[:top]:
        depth = next((d for key, d in depths.items() if (key.node, key.input) == (edge.node, edge.input)), usual)
        writer = graph.by_name[edge.node].inputs[edge.input].node
        shown = "" if depth is None else f"{depth:,}"
        on_path = _percent(waits.get((edge.node, edge.input), 0), region)
        table.add_row(escape(f"{edge.node}.{edge.input}"), escape(writer), f"{edge.tokens:,}", f"{edge.peak:,}", shown, on_path)
    return table


def advice_sentence(report: CyclesReport) -> str:
    """Return a sentence about the change that saves most cycles: of those that were run, or, without any, by estimate."""
    now = report.result.cycles
    measured = [change for change in report.changes if change.measured]
    best = (measured or report.changes)[0]
    if best.cycles < now:
        expected = "takes" if best.measured else "is expected to take about"
        return f"{best.flags} {expected} {best.cycles:,} of {now:,} cycles"
    tried = "that was run takes" if report.changes[0].cycles < now else "next to this schedule is expected to take"
    return f"no change {tried} fewer than its {now:,} cycles"


def change_table(report: CyclesReport) -> Table:
    """Return a table of the expected cycles of each change, the best first."""
    table = plain_table("change", "cycles", "ratio", "", numbers_from=1)
    table.columns[3].justify = "left"
    for change in report.changes:
        how = "measured" if change.measured else "estimated"
        table.add_row(escape(change.flags), f"{change.cycles:,}", f"{change.cycles / report.result.cycles:.2f}", how)
    return table


def cycles_json(report: CyclesReport) -> dict[str, Any]:
    """Return the explanation as plain values (schema 1)."""
    s = report.result.settings
    return {
        "schema": SCHEMA,
        "model": s.model,
        "data": s.data,
        "schedule": s.schedule,
        "machine": s.machine.name,
        "machine_settings": s.machine.settings,
        "seed": s.seed,
        "cycles": report.result.cycles,
        "regions": [_region_json(region) for region in report.regions],
        "changes": [{"change": c.flags, "cycles": c.cycles, "measured": c.measured} for c in report.changes],
    }


def _region_json(region: RegionCycles) -> dict[str, Any]:
    stalls = {} if region.stalls is None else {"stalls": _stalls_json(region.stalls)}
    return {
        "name": region.result.name,
        "times": region.result.times,
        "cycles": region.result.cycles,
        "roofline": region.result.simulation.bound,
        "bottleneck": bottleneck_sentence(region),
        "limits": named_shares(region.path)[0].node,
        "limit_kind": named_shares(region.path)[0].kind,
        "path": [
            {
                "node": step.node,
                "kind": step.kind,
                "cycles": step.cycles,
                "waits": step.times,
                "input": None if step.edge is None else step.edge.input,
                "port": None if step.port is None else [step.port.tensor, step.port.kind, step.port.direction],
            }
            for step in region.path.steps
        ],
        **stalls,
    }


def _stalls_json(stalls: Stalls) -> dict[str, Any]:
    """Return stalls as plain values: the cycles of a window and, for each node, a list of cycles for each state, window after window."""
    nodes = {
        name: {state: list(map(int, row)) for state, row in zip(STATES, counts, strict=True) if row.any()}
        for name, counts in stalls.nodes.items()
    }
    return {"window": stalls.window, "processes": dict(stalls.processes), "nodes": nodes}


MOST_REGIONS = 6
"""The most regions that the summary names."""
MOST_CHANGES = 3
"""The most changes that the summary names."""
LEAST_GAIN = 0.01
"""The share of the cycles that a change must save to be named."""


def summary_lines(report: CyclesReport) -> Iterator[str]:
    """Yield the lines of the summary."""
    result, settings = report.result, report.result.settings
    slowest = slowest_region(report)
    data = f" on {settings.data}" if settings.data else ""
    yield f"{settings.model}{data}, machine {settings.machine.name}: {result.cycles:,} cycles, at least {_roofline(report):,}"
    kinds = (f"{100 * share:.0f} % {kind}" for kind, share in limit_shares(report).items())
    yield f"critical path: {', '.join(kinds)}"
    share = slowest.result.times * slowest.result.cycles / result.cycles
    times = f" in each of {slowest.result.times} runs" if slowest.result.times > 1 else ""
    yield f"slowest region: {slowest.result.name}, {slowest.result.cycles:,} cycles{times}, {100 * share:.0f} % of all"
    yield f"it is {bottleneck_sentence(slowest)}"
    yield f"fused: {_fused(report)}"
    yield from _advice(report)


def slowest_region(report: CyclesReport) -> RegionCycles:
    """Return the region that takes most of the cycles, in all its runs."""
    return max(report.regions, key=lambda region: region.result.times * region.result.cycles)


def limit_shares(report: CyclesReport) -> dict[str, float]:
    """Return the share of the critical paths of all regions that each kind of step takes, the largest first."""
    cycles = Counter[str]()
    for region in report.regions:
        for step in region.path.steps:
            cycles[STEP_WORDS[step.kind].share] += region.result.times * step.cycles
    total = max(sum(cycles.values()), 1)
    return {kind: count / total for kind, count in cycles.most_common() if count}


def _roofline(report: CyclesReport) -> int:
    return sum(region.result.times * region.result.simulation.bound for region in report.regions)


def _fused(report: CyclesReport) -> str:
    regions = report.compiled.regions
    named = [f"{region.name} ({len(region.einsums)})" for region in regions[:MOST_REGIONS]]
    named += [f"{len(regions) - MOST_REGIONS} more"] if len(regions) > MOST_REGIONS else []
    count = sum(len(region.einsums) for region in regions)
    return f"{count} Einsums in {len(regions)} region{'s' if len(regions) > 1 else ''}: {', '.join(named)}"


def _helpful(report: CyclesReport) -> list[Change]:
    """Return the changes that take at least `LEAST_GAIN` of the cycles away, the best first."""
    most = (1 - LEAST_GAIN) * report.result.cycles
    return [change for change in report.changes if change.cycles <= most][:MOST_CHANGES]


def _advice(report: CyclesReport) -> Iterator[str]:
    helpful = _helpful(report)
    if report.changes and not helpful:
        yield "no change next to this schedule takes fewer cycles"
    for change in helpful:
        how = "takes" if change.measured else "is expected to take"
        yield f"helps: {change.flags} {how} {change.cycles:,} cycles, {report.result.cycles / change.cycles:.2f} times as fast"


def summary_json(report: CyclesReport) -> dict[str, Any]:
    """Return the summary as plain values (schema 1)."""
    result, settings, slowest = report.result, report.result.settings, slowest_region(report)
    return {
        "schema": SCHEMA,
        "model": settings.model,
        "data": settings.data,
        "schedule": settings.schedule,
        "machine": settings.machine.name,
        "cycles": result.cycles,
        "roofline": _roofline(report),
        "limits": limit_shares(report),
        "slowest": {
            "region": slowest.result.name,
            "times": slowest.result.times,
            "cycles": slowest.result.cycles,
            "node": named_shares(slowest.path)[0].node,
            "bottleneck": bottleneck_sentence(slowest),
        },
        "regions": [{"name": region.name, "einsums": list(region.einsums)} for region in report.compiled.regions],
        "changes": [
            {
                "change": change.flags,
                "cycles": change.cycles,
                "speedup": result.cycles / change.cycles,
                "measured": change.measured,
            }
            for change in _helpful(report)
        ],
    }
