"""The costs of public primitives, as a table and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.markup import escape
from rich.table import Table

from fuseflow.explain.primitives import PrimitivesCost
from fuseflow.report.tables import plain_table


def primitives_table(costs: Sequence[PrimitivesCost]) -> Table:
    """Return a table of the costs of public primitives, with a row for each region, and for each reason why a region has no
    public form."""
    table = plain_table("region", "cycles in\nour primitives", "in public\nprimitives", "more", numbers_from=1)
    for cost in costs:
        name, own = escape(cost.region), f"{cost.own:,.0f}"
        if cost.public is not None:
            more = (cost.public - cost.own) / cost.own if cost.own else 0.0
            table.add_row(name, own, f"{cost.public:,.0f}", f"{more:+.1%}")
        else:
            table.add_row(name, own, "", "")
    return table


def private_lines(costs: Sequence[PrimitivesCost]) -> list[str]:
    """Return a line for each thing that has no public form."""
    return [f"{cost.region}: {reason}" for cost in costs for reason in cost.private]


def notice_lines(costs: Sequence[PrimitivesCost]) -> list[str]:
    """Return a line for each region whose public form does not hold for all values."""
    return [cost.notice for cost in costs if cost.notice]


def primitives_json(costs: Sequence[PrimitivesCost]) -> list[dict[str, Any]]:
    """Return the costs as plain values."""
    return [
        {
            "region": cost.region,
            "own": round(cost.own),
            "public": None if cost.public is None else round(cost.public),
            "private": list(cost.private),
            "notice": cost.notice,
        }
        for cost in costs
    ]
