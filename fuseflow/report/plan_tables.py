"""The explanation of a plan, as tables and as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from rich.markup import escape
from rich.table import Table

from fuseflow.explain.plan import PlanReport
from fuseflow.report.tables import plain_table


def part_table(report: PlanReport) -> Table:
    """Return a table with a row for each part of each operand."""
    columns = ("entries", "blocks", "bytes", "cycles\na block", "cycles\nin all")
    table = plain_table("operand", "part", *columns, numbers_from=2)
    for part in report.parts:
        blocks, weight, cost = (
            "" if n is None else f"{n:,.{d}f}" for n, d in ((part.blocks, 0), (part.weight, 2), (part.cost, 0))
        )
        table.add_row(escape(part.operand), part.form, f"{part.entries:,}", blocks, f"{part.nbytes:,}", weight, cost)
    return table


def comparison(report: PlanReport) -> Table:
    """Return a table of the cycles with the plan and without it."""
    table = plain_table("", "with the plan", "without", "", numbers_from=1)
    lines = [("estimated cycles", report.estimated), *([("cycles", report.simulated)] if report.simulated else [])]
    for name, (after, before) in lines:
        table.add_row(name, f"{after:,.0f}", f"{before:,.0f}", f"{before / after:.2f} x" if after else "")
    return table


def plan_json(report: PlanReport, model: str, schedule: str) -> dict[str, Any]:
    """Return the explanation as plain values."""
    return {
        "schema": 1,
        "model": model,
        "schedule": schedule,
        "parts": [{**asdict(part), "cost": part.cost} for part in report.parts],
        "estimated_cycles": list(report.estimated),
        "cycles": None if report.simulated is None else list(report.simulated),
    }
