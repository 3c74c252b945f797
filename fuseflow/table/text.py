"""Printing a fusion table, as the paper's figures show it."""

from __future__ import annotations

from fuseflow.table.table import FusionTable


def show(table: FusionTable) -> str:
    """Rows: loops in order, then val. Columns: views, then shared repeats, ranges and joins. `= <x>` names the stream a cell makes."""
    head = ["", *(c.name for c in table.columns)]
    rows = [head] + [[row, *("; ".join(c.cell(row)) for c in table.columns)] for row in table.rows]
    width = [max(len(r[k]) for r in rows) for k in range(len(head))]
    lines = [" | ".join(cell.ljust(w) for cell, w in zip(r, width, strict=True)).rstrip() for r in rows]
    return "\n".join([f"table {table.region}, order {','.join(table.order)}", *lines]) + "\n"
