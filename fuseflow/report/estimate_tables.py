"""Tables of an estimate, and of how far it is from a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.markup import escape
from rich.table import Table

from fuseflow.errors import FileError
from fuseflow.estimate.program import ProgramEstimate, RegionEstimate
from fuseflow.report.tables import plain_table

ABOUT = "~"
"""Before a number that is expected, not counted."""


def estimate_table(found: ProgramEstimate) -> Table:
    """A row for each region, as `fuseflow run` has them, with what bounds it."""
    columns = ("cycles", "compute", "control", "memory", "bound by", "firings", "FLOPs", "bytes\nread", "bytes\nwritten")
    table = plain_table("region", "Einsums", *columns, numbers_from=1, footer=True)
    for region in found.regions:
        limits, exact = region.bound, region.work.exact
        name = region.name if region.times == 1 else f"{region.name} x{region.times}"
        table.add_row(
            escape(name),
            f"{len(region.einsums):,}",
            *(f"{number:,.0f}" for number in (limits.cycles, limits.compute, limits.control, limits.memory)),
            limits.limit,
            *(_number(number, exact) for number in (region.firings, region.flops, region.bytes("read"), region.bytes("write"))),
        )
    bytes_ = found.stats["bytes"]
    totals = [_number(number, found.exact) for number in (found.firings, found.flops, bytes_["read"], bytes_["write"])]
    einsums = sum(region.times * len(region.einsums) for region in found.regions)
    for column, cell in zip(
        table.columns, ("total", f"{einsums:,}", f"{found.cycles:,.0f}", "", "", "", "", *totals), strict=True
    ):
        column.footer = cell
    return table


def exact_line(found: ProgramEstimate) -> str:
    if found.exact:
        return "FLOPs, bytes and firings are counted; cycles are an estimate"
    return f"numbers with {ABOUT} are expected from statistics, the others counted; cycles are an estimate"


def flops_table(found: ProgramEstimate) -> Table:
    """FLOPs of each region by operator."""
    table = plain_table("region", "operator", "FLOPs", "%", numbers_from=2)
    for region in found.regions:
        name = _name(region)
        for operator, number in sorted(region.work.operators.items(), key=lambda item: -item[1]):
            share = 100 * number / region.flops if region.flops else 0.0
            table.add_row(escape(name), operator, _number(number, region.work.exact), f"{share:.1f}")
            name = ""
        if not region.work.operators:
            table.add_row(escape(name), "none")
    return table


def traffic_table(found: ProgramEstimate) -> Table:
    """Bytes that the nodes of each region ask for, by tensor and array."""
    table = plain_table("region", "tensor", "array", "bytes\nread", "bytes\nwritten", numbers_from=3)
    for region in found.regions:
        name, rows = _name(region), dict[tuple[str, str], dict[str, str]]()
        for row in region.work.traffic:
            rows.setdefault((row.tensor, row.kind), {})[row.direction] = _number(row.bytes, row.exact)
        before = ""
        for (tensor, kind), cells in rows.items():
            shown = "" if tensor == before else tensor
            table.add_row(escape(name), escape(shown), kind, cells.get("read", "0"), cells.get("write", "0"))
            name, before = "", tensor
    return table


def comparison_table(found: ProgramEstimate, run: Mapping[str, Any]) -> Table:
    """The estimate beside a run, with its errors in percent of the run. Raises `FileError` if the run is one of other regions."""
    table = plain_table("region", "", "estimate", "run", "error %", numbers_from=2)
    for name, rows in (*_regions(found, run), ("total", _totals(found, run))):
        for label, ours, theirs in rows:
            error = f"{100 * (ours - theirs) / theirs:+.2f}" if theirs else ("0.00" if not ours else "")
            table.add_row(escape(name), label, f"{ours:,.0f}", f"{theirs:,.0f}", error)
            name = ""
    return table


def _regions(found: ProgramEstimate, run: Mapping[str, Any]) -> Iterator[tuple[str, list[tuple[str, float, float]]]]:
    """Every region of the run with the one of ours that it is."""
    ours = {name: region for region in found.regions for name in (region.name, *(r.name for r in region.repeats))}
    try:
        theirs = {region["name"]: region for region in run["regions"]}
        all_names = {name for region in run["regions"] for name in (region["name"], *region["repeats"])}
        if set(ours) != all_names:
            missing = ", ".join(sorted(set(ours) ^ all_names)[:4])
            raise FileError(f"the run has other regions than this program: {missing}", hint="give both the same schedule")
        for name, region in theirs.items():
            like, statistics = ours[name], region["statistics"]
            yield (
                name,
                _rows(
                    like.bound.cycles,
                    region["cycles"],
                    like.firings,
                    region["firings"],
                    like.flops,
                    sum(statistics["flops"].values()),
                    *(x for d in ("read", "write") for x in (like.bytes(d), _bytes(statistics["traffic"], d))),
                ),
            )
    except (KeyError, TypeError, AttributeError) as error:
        raise FileError(
            f"that is no result of `fuseflow run --json`: {error}", hint="`fuseflow run MODEL ... --json RUN.json`"
        ) from error


def _bytes(traffic: Any, direction: str) -> float:
    return float(sum(row["bytes"] for row in traffic if row["direction"] == direction))


def _totals(found: ProgramEstimate, run: Mapping[str, Any]) -> list[tuple[str, float, float]]:
    ours = found.stats["bytes"]
    firings = sum(region["times"] * region["firings"] for region in run["regions"])
    moved = run["bytes"]
    return _rows(
        found.cycles,
        run["cycles"],
        found.firings,
        firings,
        found.flops,
        run["flops"],
        ours["read"],
        moved["read"],
        ours["write"],
        moved["write"],
    )


def _rows(*numbers: float) -> list[tuple[str, float, float]]:
    labels = ("cycles", "firings", "FLOPs", "bytes read", "bytes written")
    return [(label, numbers[2 * k], numbers[2 * k + 1]) for k, label in enumerate(labels)]


def _name(region: RegionEstimate) -> str:
    return region.name if region.times == 1 else f"{region.name} x{region.times}"


def _number(number: float, exact: bool) -> str:
    return f"{number:,.0f}" if exact else f"{ABOUT}{number:,.0f}"
