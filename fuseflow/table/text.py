"""Printing a fusion table, as the paper's figures show it."""

from __future__ import annotations

from fuseflow.table.steps import Column
from fuseflow.table.table import FusionTable


def show(table: FusionTable) -> str:
    """Rows: loops in order, then val. Columns: views, then shared repeats, ranges and joins. `= <x>` names the stream a cell makes."""
    return "\n".join([_title(table), *_grid(table, table.columns)]) + "\n"


def show_steps(table: FusionTable) -> str:
    """The table after every step of Algorithm 2, each with its title. The table before the first step is empty."""
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
