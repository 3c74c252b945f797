"""The text form of a fusion table, as in the paper's figures."""

from __future__ import annotations

from fuseflow.table.steps import Column
from fuseflow.table.table import FusionTable


def show(table: FusionTable) -> str:
    """Return the table as text. Its rows are the loops in order and `val`, its columns the views, then shared repeats, ranges and joins.

    In a cell, `= <x>` names the stream that the cell makes.
    """
    return "\n".join([_title(table), *_grid(table, table.columns)]) + "\n"


def show_steps(table: FusionTable) -> str:
    """Return the table after every step of Algorithm 2 as text, each under the title of the step."""
    lines = [_title(table)]
    for number, step in enumerate(table.steps, 1):
        lines += ["", f"step {number}, {step.title}", *_grid(table, table.after(number))]
    return "\n".join(lines) + "\n"


def _title(table: FusionTable) -> str:
    return f"table {table.region}, order {','.join(table.order)}"


def _grid(table: FusionTable, columns: tuple[Column, ...]) -> list[str]:
    head = ["", *(c.name for c in columns)]
    rows = [head] + [[row, *("; ".join(c.cell(row)) for c in columns)] for row in table.rows]
    width = [max(len(r[k]) for r in rows) for k in range(len(head))]
    return [" | ".join(cell.ljust(w) for cell, w in zip(r, width, strict=True)).rstrip() for r in rows]
