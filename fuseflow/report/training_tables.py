"""Tables and lines about training steps: costs by phase, and losses beside those of PyTorch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.markup import escape
from rich.table import Table

from fuseflow.report.tables import add_footer, plain_table
from fuseflow.run.result import RegionResult
from fuseflow.run.training.phase_costs import StoredForLater, phase_costs
from fuseflow.run.training.training_run import TrainingRun

MOST_LOSSES = 10
"""The most losses in a line."""


def phase_table(regions: Iterable[RegionResult]) -> Table:
    """Return a table of the first step with a row for each phase, and the totals. Regions that are fused across the border of phases have a
    row of their own."""
    costs = phase_costs(regions)
    columns = ("regions", "cycles", "%", "FLOPs", "bytes\nread", "bytes\nwritten")
    table = plain_table("phase", *columns, numbers_from=1, footer=True)
    total = sum(cost.cycles for cost in costs)
    for cost in costs:
        share = f"{100 * cost.cycles / total:.1f}" if total else ""
        numbers = [f"{n:,}" for n in (cost.regions, cost.cycles, cost.flops, cost.read, cost.written)]
        table.add_row(" + ".join(cost.phases), *numbers[:2], share, *numbers[2:])
    sums = [sum(column) for column in zip(*((c.regions, c.cycles, c.flops, c.read, c.written) for c in costs), strict=True)]
    shown = [f"{n:,}" for n in sums]
    add_footer(table, "total", *shown[:2], "", *shown[2:])
    return table


def training_lines(run: TrainingRun) -> list[str]:
    """Return the losses of the steps, those of PyTorch's own run beside them, and the notes of the run, a line each."""
    lines = [f"losses: {losses_text(run.losses)}"] if run.losses else []
    lines += [f"PyTorch's own run: {losses_text(run.reference_losses)}"] if run.reference_losses else []
    return [*lines, *(escape(note) for note in run.notes)]


def losses_text(losses: Sequence[float]) -> str:
    """Return losses as a text, with at most `MOST_LOSSES` of them: the first ones, and the last.

    >>> losses_text([1.41, 1.3312])
    '1.4100 1.3312'
    """
    shown = [f"{loss:.4f}" if 1e-3 <= abs(loss) < 1e4 or loss == 0 else f"{loss:.4g}" for loss in losses]
    if len(shown) > MOST_LOSSES:
        shown = [*shown[: MOST_LOSSES - 1], "...", shown[-1]]
    return " ".join(shown)


def stored_table(rows: Iterable[StoredForLater]) -> Table:
    """Return a table of what is stored for the backward, with its readers."""
    table = plain_table("stored for the backward", "phase", "in region", "read by", "in regions", numbers_from=5)
    for row in rows:
        readers, regions = escape(", ".join(row.einsums)), escape(", ".join(row.regions))
        table.add_row(escape(row.name), row.phase, escape(row.region), readers, regions)
    return table
