"""A small table that a value shows of itself in a notebook."""

from __future__ import annotations

import html
from dataclasses import dataclass

from fuseflow.errors import visible

MOST_ROWS = 40
"""The most rows that are shown. Rows after them are only counted."""
MOST_CHARACTERS = 60
"""The characters of a name that are shown."""

ROOFLINE = "roofline (cycles it cannot beat)"
"""The head of a column of rooflines."""

Cell = str | int | float


@dataclass(frozen=True, slots=True)
class SummaryTable:
    """A title, columns with their units, and a row for each part of a value. The `total` is one more row, or empty.

    >>> SummaryTable("gcn: 17,810 cycles", ("region", "cycles"), (("layer1", 17_810),)).to_html()
    '<table><caption>gcn: 17,810 cycles</caption><thead><tr><th>region</th>...<td...>17,810</td>...</table>'
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    total: tuple[Cell, ...] = ()

    def to_html(self) -> str:
        """Return the table as HTML without styles of its own, which notebooks show as their tables."""
        head = "".join(f"<th>{_text(column)}</th>" for column in self.columns)
        body = "".join(_row(row) for row in self.rows[:MOST_ROWS])
        if (more := len(self.rows) - MOST_ROWS) > 0:
            body += f'<tr><td colspan="{len(self.columns)}">and {more:,} more</td></tr>'
        foot = f"<tfoot>{_row(self.total)}</tfoot>" if self.total else ""
        return f"<table><caption>{_text(self.title)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody>{foot}</table>"


def _row(cells: tuple[Cell, ...]) -> str:
    return f"<tr>{''.join(_cell(cell) for cell in cells)}</tr>"


def _cell(cell: Cell) -> str:
    if isinstance(cell, str):
        return f"<td>{_text(cell)}</td>"
    number = f"{cell:,}" if isinstance(cell, int) else f"{cell:,.0f}" if abs(cell) >= 100 else f"{cell:.3g}"
    return f'<td style="text-align: right">{number}</td>'


def _text(name: str) -> str:
    """Return a name as HTML: its markup and control characters are shown, and its middle is left out if it is long."""
    shown = visible(name)
    if len(shown) > MOST_CHARACTERS:
        shown = f"{shown[: MOST_CHARACTERS // 2]}…{shown[-MOST_CHARACTERS // 3 :]}"
    return html.escape(shown)
