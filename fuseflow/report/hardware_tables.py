"""The table of circuits that ran beside the simulator."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from fuseflow.hardware.cosimulate import Cosimulation
from fuseflow.report.tables import plain_table


def cosimulation_table(rows: Sequence[Cosimulation]) -> Table:
    """Return a table with a row for each region."""
    columns = (
        "region",
        "circuit is",
        "nodes",
        "modules",
        "firings",
        "cycles of circuit",
        "of simulator",
        "tokens compared",
        "seconds",
    )
    table = plain_table(*columns, numbers_from=2)
    for row in rows:
        counts = (row.nodes, row.modules, row.firings, row.cycles, row.simulator_cycles, row.tokens)
        table.add_row(row.name, _verdict(row), *(f"{count:,}" for count in counts), f"{row.seconds:.1f}")
    return table


def _verdict(row: Cosimulation) -> str:
    if row.difference is not None:
        return "different"
    return "equal, deadlock" if row.waiting else "equal"
