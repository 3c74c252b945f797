"""Tables as wide as the terminal: which columns are left out where there is no room for all, which are wrapped, and the notes below.

A number is never cut. Where a table is too wide, its gaps close, its prose is wrapped, and the columns that say least are left out
(`column_meanings.LEAST_USEFUL`). If that is not enough, names are wrapped, and the rest is shown in parts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from typing import Any

from rich.console import Console
from rich.table import Column, Table

from fuseflow.report.column_meanings import FIRST_USE, LEAST_USEFUL, PROSE

PROSE_WIDTH, NAME_WIDTH = 24, 20
"""The columns of a terminal that are left to prose and to names of rows at least, where these are wrapped."""
GAP, NARROW_GAP = 2, 1
"""The columns of a terminal between two columns of a table."""
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
    heads = [head_text(column) for column in table.columns]
    widths = [natural_width(console, _part(table, [n])) for n in range(len(heads))]
    shown, missing = list(range(len(heads))), list[str]()
    if _width(widths, shown, GAP) <= console.width:
        return table, missing
    prose = {n for n, head in enumerate(heads) if n and head in PROSE and widths[n] > PROSE_WIDTH}
    least = [PROSE_WIDTH if n in prose else width for n, width in enumerate(widths)]
    for head in (head for head in LEAST_USEFUL if head in heads[1:]):
        if _width(least, shown, NARROW_GAP) <= console.width:
            break
        shown = [n for n in shown if not n or heads[n] != head]
        missing.append(head)
    gap = GAP if _width(least, shown, GAP) <= console.width else NARROW_GAP
    room = console.width - _width(least, shown, gap)
    longest = max(prose & {*shown}, key=lambda n: widths[n], default=0)
    wrapped = {n: PROSE_WIDTH + max(room, 0) * (n == longest) for n in prose}
    if room < 0 and widths[0] + room >= NAME_WIDTH:
        wrapped[0] = widths[0] + room
    return _laid_out(table, shown, gap, wrapped), missing


def _width(widths: Sequence[int], shown: Sequence[int], gap: int) -> int:
    """Return the width of a table with the columns `shown`."""
    return sum(widths[n] for n in shown) + gap * (len(shown) - 1)


def _laid_out(table: Table, shown: list[int], gap: int, wrapped: Mapping[int, int]) -> Table:
    """Return a table with the columns `shown`, of which some are `wrapped` at a width."""
    made = _part(table, shown)
    if gap == NARROW_GAP:
        made.padding = 0
    for n, column in zip(shown, made.columns, strict=True):
        if n in wrapped:
            column.no_wrap, column.overflow, column.max_width = False, "fold", wrapped[n]
    return made


def _close_gaps(console: Console, table: Table) -> Table:
    """Return a table with smaller gaps between its columns, if it is too wide."""
    columns = list(range(len(table.columns)))
    return _laid_out(table, columns, GAP if natural_width(console, table) <= console.width else NARROW_GAP, {})


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
