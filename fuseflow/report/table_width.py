"""Tables as wide as the terminal: which columns are left out where there is no room for all, which are wrapped, and the notes below.

A number is never cut. Where a table is too wide, its gaps close, its prose is wrapped, and the columns that say least are left out
(`column_meanings.LEAST_USEFUL`). If that is not enough, names are wrapped, and the rest is shown in parts.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from typing import Any

from rich.console import Console
from rich.table import Column, Table

from fuseflow.report.column_meanings import FIRST_USE, LEAST_USEFUL, PROSE

PROSE_WIDTH, NAME_WIDTH = 24, 20
"""The columns of a terminal that are left to prose and to names of rows at least, where these are wrapped."""
ALL_COLUMNS = 10_000
"""The width of a console that shows all columns of every table."""


class TableConsole(Console):
    """A console that knows whether tables keep all their columns (`wide`), and which notes on tables were `told`."""

    def __init__(self, *, wide: bool = False, **settings: Any) -> None:
        super().__init__(**settings)
        self.wide = wide
        self.told: set[str] = set()


def head_text(column: Column) -> str:
    """Return the head of a column in one line."""
    return " ".join(str(column.header).split())


def print_table(console: Console, table: Table) -> None:
    """Print a table so that it fits the console, and below it the columns that are left out, and what readers must know of others. A
    `TableConsole` that is `wide` keeps all columns, in parts if it must, and tells each note once."""
    wide, told = (console.wide, console.told) if isinstance(console, TableConsole) else (False, set[str]())
    shown, missing = (_close_gaps(console, table), []) if wide else fit(console, table)
    for part in folded(console, shown):
        console.width = max(console.width, natural_width(console, part))
        console.print(part)
    for note in _notes(shown, missing):
        if note not in told:
            told.add(note)
            console.print(note, soft_wrap=True, markup=False)


def _notes(table: Table, missing: list[str]) -> Iterator[str]:
    heads = [head_text(column) for column in table.columns]
    yield from (f"{head}: {FIRST_USE[head]}" for head in heads if head in FIRST_USE)
    if missing:
        yield f"no room for {', '.join(missing).replace('- ', '')}: `--wide` shows all columns"


def fit(console: Console, table: Table) -> tuple[Table, list[str]]:
    """Return a table that fits the console, if that is possible, and the heads of the columns that were left out."""
    if natural_width(console, table) <= console.width:
        return table, []
    shown, missing = _close_gaps(console, _wrapped(table, PROSE_WIDTH)), list[str]()
    for head in LEAST_USEFUL:
        if natural_width(console, shown) <= console.width:
            break
        places = [n for n, column in enumerate(shown.columns) if n and head_text(column) == head]
        if places:
            shown = _part(shown, [n for n in range(len(shown.columns)) if n not in places])
            missing.append(head)
    shown.padding = table.padding
    shown = _close_gaps(console, shown)
    room = console.width - natural_width(console, shown)
    return (_wrapped(shown, PROSE_WIDTH + room) if room >= 0 else _name_wrapped(console, shown, -room)), missing


def _close_gaps(console: Console, table: Table) -> Table:
    """Return a table with smaller gaps between its columns, if it is too wide."""
    closed = _part(table, list(range(len(table.columns))))
    if natural_width(console, table) > console.width:
        closed.padding = 0
    return closed


def _wrapped(table: Table, width: int) -> Table:
    """Return a table with its longest prose wrapped at a width, and all other prose at `PROSE_WIDTH`."""
    wrapped = _part(table, list(range(len(table.columns))))
    prose = [column for place, column in enumerate(wrapped.columns) if place and head_text(column) in PROSE]
    longest = max(prose, key=lambda column: max(map(_length, column.cells), default=0), default=None)
    for column in prose:
        column.no_wrap, column.overflow, column.max_width = False, "fold", width if column is longest else PROSE_WIDTH
    return wrapped


def _length(cell: object) -> int:
    return len(str(cell))


def _name_wrapped(console: Console, table: Table, excess: int) -> Table:
    """Return a table that is narrower by `excess`, by wrapping the names of its rows, if that leaves `NAME_WIDTH` to them."""
    widest = natural_width(console, _part(table, [0]))
    if widest - excess < NAME_WIDTH:
        return table
    wrapped = _part(table, list(range(len(table.columns))))
    names = wrapped.columns[0]
    names.no_wrap, names.overflow, names.max_width = False, "fold", widest - excess
    return wrapped


def natural_width(console: Console, table: Table) -> int:
    """Return the columns of a terminal that a table takes if nothing is cut."""
    return console.measure(table, options=console.options.update(width=ALL_COLUMNS)).maximum


def folded(console: Console, table: Table) -> Iterator[Table]:
    """Yield a table in parts that are as wide as the console, if that is possible. The first column, which names the rows, is in each."""
    if natural_width(console, table) <= console.width or len(table.columns) < 3:
        yield table
        return
    shown = [0]
    for number in range(1, len(table.columns)):
        if len(shown) > 1 and natural_width(console, _part(table, [*shown, number])) > console.width:
            yield _part(table, shown)
            shown = [0]
        shown.append(number)
    yield _part(table, shown)


def _part(table: Table, shown: list[int]) -> Table:
    """Return a copy of a table with only the columns that are numbered in `shown`."""
    part = copy(table)
    part.columns = [copy(table.columns[number]) for number in shown]
    for place, column in enumerate(part.columns):
        column._index = place
    return part
