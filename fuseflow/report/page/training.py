"""The chapter about training steps: the losses beside PyTorch's, the costs of the phases, and what is stored between them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from fuseflow.report.page.charts import loss_chart
from fuseflow.report.page.html_elements import Bar, Cell, Column, Link, html_table
from fuseflow.report.page.run_directory import Values
from fuseflow.report.page.things import Things


def training_chapter(training: Values, things: Things) -> dict[str, Any]:
    """Return the pieces of the chapter. `training` has the content of `training.json`."""
    losses = [step["loss"] for step in training["steps"] if step["loss"] is not None]
    return {
        "steps": len(training["steps"]),
        "losses": loss_chart(losses, training["reference_losses"]) if losses else None,
        "beside": bool(training["reference_losses"]),
        "notes": training["notes"],
        "phases": _phase_table(training["phases"]),
        "live": _live_table(training["live"], things),
        "stored": _stored_table(training["stored"], things) if training["stored"] else None,
    }


def _phase_table(phases: Sequence[Values]) -> Markup:
    columns = (
        Column("phase", "regions that are fused across the border of phases have a row of their own", words=True),
        Column("regions"),
        Column("cycles", "of the first step"),
        Column("of all", words=True),
        Column("FLOPs"),
        Column("read, bytes", "what nodes asked for"),
        Column("written, bytes"),
    )
    total = sum(row["cycles"] for row in phases)
    rows = list[tuple[Cell, ...]]()
    for row in phases:
        share = Bar(100 * row["cycles"] / total if total else 0.0)
        numbers = (row["regions"], row["cycles"], share, row["flops"], row["read"], row["written"])
        rows.append((" + ".join(row["phases"]), *numbers))
    return html_table(columns, rows)


def _live_table(live: Sequence[Values], things: Things) -> Markup:
    columns = (
        Column("region", "in the order in which they run", words=True),
        Column("phase", words=True),
        Column("live, bytes", "of intermediates that are stored before its end and read in it or later"),
        Column("of the most", words=True),
    )
    most = max((row["bytes"] for row in live), default=0)
    rows = [
        (
            Link(row["region"], things.find("region", row["region"])),
            " + ".join(row["phases"]),
            row["bytes"],
            Bar(100 * row["bytes"] / most if most else 0.0, "memory"),
        )
        for row in live
    ]
    return html_table(columns, rows, sortable=False)


def _stored_table(stored: Sequence[Values], things: Things) -> Markup:
    columns = (
        Column("stored", "a result of the forward or the loss that later phases read", words=True),
        Column("in region", words=True),
        Column("bytes", "that are written of it"),
        Column("read by", "the Einsums that read it", words=True),
        Column("in regions", words=True),
    )
    rows = [
        (
            Link(row["name"], things.find("tensor", row["name"])),
            row["region"],
            None if row["bytes"] is None else int(row["bytes"]),
            ", ".join(row["einsums"]),
            ", ".join(row["regions"]),
        )
        for row in stored
    ]
    return html_table(columns, rows)
