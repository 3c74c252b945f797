"""Tables that are wider than the terminal: their columns are shown in several parts, each with the first column."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy

from rich.console import Console
from rich.table import Table


def natural_width(console: Console, table: Table) -> int:
    """Return the columns of a terminal that a table takes if nothing is cut."""
    return console.measure(table, options=console.options.update(width=10_000)).maximum


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
