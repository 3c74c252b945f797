"""The chapter about training steps: the losses beside PyTorch's, the costs of the phases, and what is stored between them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fuseflow.report.page.html_tables import Bar, Cell, Column, Link, html_table
from fuseflow.report.page.run_directory import Values
from fuseflow.report.page.svg import Markup, element, line, number, svg, text
from fuseflow.report.page.things import Things

LEFT, TOP, WIDE, HIGH, BELOW, RIGHT = 60, 12, 420, 190, 46, 20
"""The sides of the picture of losses around its axes, and the width and the height of these, in pixels."""
RADIUS = 3.5
MOST_POINTS = 40
"""The most steps whose points are drawn. More of them are curves alone."""


def training_chapter(training: Values, things: Things) -> dict[str, Any]:
    """Return the pieces of the chapter. `training` has the content of `training.json`."""
    losses = [step["loss"] for step in training["steps"] if step["loss"] is not None]
    return {
        "steps": len(training["steps"]),
        "losses": loss_curve(losses, training["reference_losses"]) if losses else None,
        "beside": bool(training["reference_losses"]),
        "notes": training["notes"],
        "phases": _phase_table(training["phases"]),
        "live": _live_table(training["live"], things),
        "stored": _stored_table(training["stored"], things) if training["stored"] else None,
    }


def loss_curve(losses: Sequence[float], reference: Sequence[float]) -> Markup:
    """Return a picture of the loss of each step, beside the losses of the reference."""
    shown = [*losses, *reference]
    low, high = min(shown), max(shown)
    room = (high - low) / 20 or abs(high) / 20 or 1.0
    low, high = low - room, high + room

    def place(step: int, loss: float) -> tuple[float, float]:
        across = step / (len(losses) - 1) if len(losses) > 1 else 0.5
        return LEFT + WIDE * across, TOP + HIGH * (high - loss) / (high - low)

    parts = list[Markup]()
    for k in range(5):
        loss = low + (high - low) * k / 4
        _, y = place(0, loss)
        parts += [line(LEFT, y, LEFT + WIDE, y, "grid"), text(LEFT - 6, y + 4, f"{loss:.3g}", "op", "end")]
    for step in sorted({round(k * (len(losses) - 1) / 4) for k in range(5)}):
        parts.append(text(place(step, low)[0], TOP + HIGH + 16, str(step + 1), "op", "middle"))
    parts.append(text(LEFT + WIDE / 2, TOP + HIGH + 36, "step", "op", "middle"))
    parts.append(_curve([place(k, loss) for k, loss in enumerate(reference)], "gap"))
    parts.append(_curve([place(k, loss) for k, loss in enumerate(losses)], "losses"))
    if len(losses) <= MOST_POINTS:
        rows = ((k, loss, "point hollow") for k, loss in enumerate(reference))
        own = ((k, loss, "point") for k, loss in enumerate(losses))
        for kind in (rows, own):
            parts += [_point(*place(k, loss), f"step {k + 1}: {loss:.6g}", class_) for k, loss, class_ in kind]
    return svg(LEFT + WIDE + RIGHT, TOP + HIGH + BELOW, Markup("").join(parts), "losses by step")


def _curve(points: Sequence[tuple[float, float]], class_: str) -> Markup:
    """Return lines from point to point, or nothing for fewer than two."""
    if len(points) < 2:
        return Markup("")
    return element("polyline", points=" ".join(f"{number(x)},{number(y)}" for x, y in points), class_=class_, fill="none")


def _point(x: float, y: float, tip: str, class_: str) -> Markup:
    radius = RADIUS if class_ == "point" else RADIUS + 2.5
    return element("g", element("circle", element("title", tip), cx=x, cy=y, r=radius), class_=class_)


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
