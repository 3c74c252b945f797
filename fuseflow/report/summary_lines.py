"""The summary of a run: what limits it, its slowest region and node, what was fused, and what would take fewer cycles."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from fuseflow.explain.cycles import Change, CyclesReport, RegionCycles
from fuseflow.report.cycle_tables import KIND_LABELS, bottleneck_sentence, named_shares

SCHEMA = 1
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
            cycles[KIND_LABELS[step.kind]] += region.result.times * step.cycles
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
