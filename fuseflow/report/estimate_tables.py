"""Tables of an estimate, and of its errors against a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.markup import escape
from rich.table import Table

from fuseflow.errors import FileError
from fuseflow.estimate.program_estimate import ProgramEstimate
from fuseflow.report.tables import CONFIG_COLUMNS, add_footer, config_numbers, plain_table, region_label

ABOUT = "~"
"""The mark before a number that is expected from statistics and not counted."""


def estimate_table(estimate: ProgramEstimate) -> Table:
    """Return a table with a row for each region, as `fuseflow run` prints it, and the bound of the region."""
    bounds = ("compute", "imbalance", "FIFOs", "control", "memory", "bound by")
    config = CONFIG_COLUMNS if estimate.config.bytes else ()
    columns = ("cycles", *bounds, "firings", "FLOPs", "bytes\nread", "bytes\nwritten", *config)
    table = plain_table("region", "Einsums", *columns, numbers_from=1, footer=True)
    for region in estimate.regions:
        limits, moved = region.bound, (region.bytes("read"), region.bytes("write"))
        cycles = (limits.cycles, limits.compute, limits.imbalance, limits.fifos, limits.control, limits.waits)
        counts = (region.firings, region.flops, *moved, *config_numbers(region.config, config))
        table.add_row(
            escape(region_label(region.name, region.repeats)),
            f"{len(region.einsums):,}",
            *(f"{number:,.0f}" for number in cycles),
            limits.limit,
            *(_number(number, region.work.exact) for number in counts),
        )
    moved = estimate.stats["bytes"]["read"], estimate.stats["bytes"]["write"]
    totals = (estimate.firings, estimate.flops, *moved, *config_numbers(estimate.config, config))
    einsums = sum(region.times * len(region.einsums) for region in estimate.regions)
    sums = (_number(number, estimate.exact) for number in totals)
    add_footer(table, "total", f"{einsums:,}", f"{estimate.cycles:,.0f}", *[""] * len(bounds), *sums)
    return table


def exact_line(estimate: ProgramEstimate) -> str:
    if estimate.exact:
        return "FLOPs, bytes and firings are counted; cycles are an estimate"
    return f"numbers with {ABOUT} are expected from statistics, the others counted; cycles are an estimate"


def flops_table(estimate: ProgramEstimate) -> Table:
    """Return a table of the FLOPs of each region by operator."""
    table = plain_table("region", "operator", "FLOPs", "%", numbers_from=2)
    for region in estimate.regions:
        name = region_label(region.name, region.repeats)
        for operator, number in sorted(region.work.operators.items(), key=lambda item: -item[1]):
            share = 100 * number / region.flops if region.flops else 0.0
            table.add_row(escape(name), operator, _number(number, region.work.exact), f"{share:.1f}")
            name = ""
        if not region.work.operators:
            table.add_row(escape(name), "none")
    return table


def traffic_table(estimate: ProgramEstimate) -> Table:
    """Return a table of the bytes that the nodes of each region request, by tensor and array."""
    table = plain_table("region", "tensor", "array", "bytes\nread", "bytes\nwritten", numbers_from=3)
    for region in estimate.regions:
        name, rows = region_label(region.name, region.repeats), dict[tuple[str, str], dict[str, str]]()
        for row in region.work.traffic:
            rows.setdefault((row.tensor, row.kind), {})[row.direction] = _number(row.bytes, row.exact)
        before = ""
        for (tensor, kind), cells in rows.items():
            shown = "" if tensor == before else tensor
            table.add_row(escape(name), escape(shown), kind, cells.get("read", "0"), cells.get("write", "0"))
            name, before = "", tensor
    return table


def comparison_table(estimate: ProgramEstimate, run: Mapping[str, Any]) -> Table:
    """Return a table of the estimate beside a run, with errors in percent. Raises `FileError` if the run has other regions, or is none."""
    table = plain_table("region", "", "estimate", "run", "error %", numbers_from=2)
    try:
        for name, rows in (*_regions(estimate, run), ("total", _totals(estimate, run))):
            for label, estimated, measured in rows:
                table.add_row(escape(name), label, f"{estimated:,.0f}", f"{measured:,.0f}", _error(estimated, measured))
                name = ""
    except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise FileError(
            f"that is no result of `fuseflow run --json`: {error}", hint="`fuseflow run MODEL ... --json RUN.json`"
        ) from error
    return table


def _error(estimated: float, measured: float) -> str:
    """Return how far an estimate is off, in percent with its sign; empty where nothing was measured, though something was expected."""
    if not measured:
        return "" if estimated else "0"
    error = f"{100 * (estimated - measured) / measured:+.1f}"
    return "0" if error in ("+0.0", "-0.0") else error


def _regions(estimate: ProgramEstimate, run: Mapping[str, Any]) -> Iterator[tuple[str, list[tuple[str, float, float]]]]:
    """Yield the name of every region of the run with rows of a label, an estimated and a measured number."""
    regions = {name: region for region in estimate.regions for name in region.names}
    run_regions = {region["name"]: region for region in run["regions"]}
    all_names = {name for region in run["regions"] for name in (region["name"], *region["repeats"])}
    if set(regions) != all_names:
        missing = ", ".join(sorted(set(regions) ^ all_names)[:4])
        raise FileError(f"the run has other regions than this program: {missing}", hint="give both the same schedule")
    for name, region in run_regions.items():
        like, statistics = regions[name], region["statistics"]
        estimated = (like.bound.cycles, like.firings, like.flops, like.bytes("read"), like.bytes("write"), like.config.bytes)
        measured = (
            region["cycles"],
            region["firings"],
            sum(statistics["flops"].values()),
            *(sum(row["bytes"] for row in statistics["traffic"] if row["direction"] == d) for d in ("read", "write")),
            _config_bytes(region),
        )
        yield name, _rows(estimated, measured)


def _totals(estimate: ProgramEstimate, run: Mapping[str, Any]) -> list[tuple[str, float, float]]:
    firings = sum(region["times"] * region["firings"] for region in run["regions"])
    expected, moved = estimate.stats["bytes"], run["bytes"]
    estimated = (estimate.cycles, estimate.firings, estimate.flops, expected["read"], expected["write"], estimate.config.bytes)
    return _rows(estimated, (run["cycles"], firings, run["flops"], moved["read"], moved["write"], _config_bytes(run)))


def _config_bytes(values: Mapping[str, Any]) -> float:
    """Return the bytes of the configuration in a run or a region; older results, without configurations, have 0."""
    return float(values["config"]["bytes"]) if "config" in values else 0.0


def _rows(estimated: Sequence[float], measured: Sequence[float]) -> list[tuple[str, float, float]]:
    """Return rows of a label and two numbers, estimated and measured. Configurations have none if both are 0."""
    labels = ("cycles", "firings", "FLOPs", "bytes read", "bytes written", "config bytes")
    rows = list(zip(labels, estimated, measured, strict=True))
    return rows if estimated[-1] or measured[-1] else rows[:-1]


def _number(number: float, exact: bool) -> str:
    return f"{number:,.0f}" if exact else f"{ABOUT}{number:,.0f}"
