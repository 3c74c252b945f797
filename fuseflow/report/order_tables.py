"""The explanation of loop orders as text and tables, and as JSON: why each region runs in its order, and how many orders there were."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from itertools import islice
from typing import Any, assert_never

from rich.markup import escape
from rich.table import Table

from fuseflow.costs import Estimate
from fuseflow.costs.statistics import DEFAULT_DENSITY
from fuseflow.explain.order import OrderReport, inputs_without_data, summarize_loops
from fuseflow.fusion import FusedRegion
from fuseflow.fusion.order_candidates import OrderCandidate, enumerate_orders
from fuseflow.fusion.order_counts import OrderCount
from fuseflow.fusion.order_search import COST_TOLERANCE
from fuseflow.fusion.region_program import order_edges
from fuseflow.report.tables import plain_table
from fuseflow.run.compiled import Compiled
from fuseflow.samml.nodes import Graph, Scan

RULES: dict[str, str] = {
    "reference": "every use inlined on its own, all mode orders",
    "merged": "equal views merged, all mode orders",
    "legal": "as compiled: dense levels in any order",
}


def order_lines(report: OrderReport) -> Iterator[str | Table]:
    """Yield the lines, which are rich markup, and the tables about the order of one region."""
    region = report.region.fused
    yield escape(f"region {report.region.name}: {', '.join(report.region.einsums) or 'a copy in another order'}")
    yield escape(f"order {','.join(region.order)}: {chosen_because(region)}" if region.order else "one value: no loops")
    yield ""
    if region.indices:
        yield index_table(region)
        yield ""
    yield from (escape(f"{above} before {below}: {why}") for above, below, why in order_edges(region))
    if not order_edges(region) and len(region.indices) > 1:
        yield "no loop has to enclose another"
    if not region.locate:
        yield "dense levels are scanned and joined, not located"
    if region.rescan and (rescanned := _rescanned(report.region.graph)):
        yield escape(f"scanned again in every loop around it, and not kept: the outermost level of {', '.join(rescanned)}")
    yield ""
    if report.counts:
        yield count_table(report.counts)
        yield ""
    if len(region.compared) > 1:
        yield candidate_table(region)
        for candidate in region.compared:
            if candidate.cost is None:
                order = ",".join(candidate.order)
                reason = candidate.refusal.removeprefix(f"order {order} of region `{region.name}` ")
                yield escape(f"refused: {order} {reason}")
        yield ""


def _rescanned(graph: Graph) -> list[str]:
    """Return the tensors whose outermost level a graph scans inside of a loop, although it could be kept."""
    types, levels = graph.types(), {decl.name: decl.format.levels for decl in graph.tensors}
    scans = [node for node in graph.nodes if isinstance(node, Scan) and node.level == 0 and levels[node.tensor][0].kept]
    return sorted({node.tensor for node in scans if types[node.inputs[0]].depth})


def chosen_because(region: FusedRegion) -> str:
    """Return the reason for the order of a region in words."""
    if len(list(islice(enumerate_orders(region.constraints, region.indices), 2))) == 1:
        asked = bool(region.asked) or any(why.startswith("the schedule orders") for *_, why in order_edges(region))
        return "the only one that the schedule leaves" if asked else "the only legal one"
    refused = sum(c.cost is None for c in region.compared)
    among = f"{len(region.compared)} orders compared{f', {refused} of them refused' if refused else ''}: "
    match region.compared.extent:
        case "all":
            among += "all that differ"
        case "sample":
            among += "a sample, and what was reached from its cheapest"
        case "first":
            before = f" after {refused} that were refused" if refused else ""
            return f"the first one in the order of storage and of the program{before}; no others were compared"
        case _:
            assert_never(region.compared.extent)
    if refused == len(region.compared) - 1:
        return f"the only one that is not refused ({among})"
    near = f"within {COST_TOLERANCE - 1:.0%} of the least estimated cost"
    if region.compared.orders[0] == region.order:
        return f"the nearest to the order of the program, and {near} ({among})"
    return f"{near}, and the nearest of these to the order of the program ({among})"


def index_table(region: FusedRegion) -> Table:
    """Return a table of the meaning of every index, outermost loop first."""
    blocked = ["in blocks of"] if region.blocks else []
    table = plain_table(
        "loop", "size", *blocked, "kept by", "reduced by", "read in", "also called", numbers_from=6 + len(blocked)
    )
    for column in table.columns[1 : 2 + len(blocked)]:
        column.justify = "right"
    place = {v: p for p, v in enumerate(region.order or region.indices)}
    for loop in sorted(summarize_loops(region), key=lambda loop: place[loop.index]):
        cells = (", ".join(loop.results), "\n".join(loop.reduced), "\n".join(loop.views), "\n".join(loop.names))
        block = [str(loop.block) if loop.block > 1 else ""] if blocked else []
        table.add_row(loop.index, f"{loop.size:,}", *block, *map(escape, cells))
    return table


def count_table(counts: Mapping[str, OrderCount]) -> Table:
    """Return a table of the number of orders by counting rule."""
    table = plain_table("orders", "", "variables", "unconstrained", "constrained", numbers_from=2)
    for rule, count in counts.items():
        table.add_row(rule, RULES[rule], str(count.variables), f"{count.unconstrained:,}", str(count.constrained))
    return table


def candidate_table(region: FusedRegion) -> Table:
    """Return a table of the orders that were compared, the cheapest first."""
    table = plain_table(
        "compared", "roofline", "estimated\nfirings", "estimated\nFLOPs", "estimated\nbytes", "cost", "", numbers_from=1
    )
    table.columns[6].justify = "left"
    least = min(c.rank for c in region.compared)
    for candidate in sorted(region.compared, key=lambda c: c.rank):
        cost = candidate.cost
        note = "chosen" if candidate.order == region.order else "refused" if cost is None else ""
        numbers = (cost.cycles, cost.firings, cost.flops, cost.bytes) if isinstance(cost, Estimate) else ()
        relative = f"{cost.rank / least:.2f}" if cost is not None and least else ""
        cells = [f"{n:,.0f}" for n in numbers] or [""] * 4
        table.add_row(",".join(candidate.order), *cells, relative, note)
    return table


def assumed_line(compiled: Compiled) -> str | None:
    """Return a line about the density that is assumed for tensors without data, or None if all have data."""
    names = inputs_without_data(compiled)
    assumed = f"compressed levels are taken to hold {DEFAULT_DENSITY:.0%} of their coordinates"
    return escape(f"no data for {', '.join(names)}: {assumed}") if names else None


def order_json(compiled: Compiled, reports: tuple[OrderReport, ...]) -> dict[str, Any]:
    """Return the explanation as plain values (schema 1). Counts are whole numbers, however large."""
    return {
        "schema": 1,
        "model": compiled.name,
        "data": compiled.source.data,
        "schedule": compiled.schedule.to_yaml(),
        "seed": compiled.seed,
        "without_data": list(inputs_without_data(compiled)),
        "regions": [_region_json(report) for report in reports],
    }


def _region_json(report: OrderReport) -> dict[str, Any]:
    region = report.region.fused
    return {
        "name": report.region.name,
        "einsums": list(report.region.einsums),
        "order": list(region.order),
        "why": chosen_because(region),
        "loops": [asdict(loop) for loop in summarize_loops(region)],
        "constraints": [{"above": above, "below": below, "why": why} for above, below, why in order_edges(region)],
        "counts": {
            rule: {
                "variables": count.variables,
                "unconstrained": count.unconstrained,
                "constrained": count.constrained.orders,
                "exact": count.constrained.exact,
            }
            for rule, count in report.counts.items()
        },
        "compared": [_candidate_json(candidate) for candidate in region.compared],
    }


def _candidate_json(candidate: OrderCandidate) -> dict[str, Any]:
    cost = candidate.cost
    known = ("cycles", "firings", "flops", "bytes", "rank") if isinstance(cost, Estimate) else ()
    numbers = {name: round(getattr(cost, name)) for name in known}
    return {"order": list(candidate.order), "cost": numbers or None, "refused": candidate.refusal or None}
