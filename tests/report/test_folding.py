"""Tables that are wider than the terminal lose nothing."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from fuseflow.report.tables import plain_table, print_table

COLUMNS = ("cycles", "roofline", "firings", "bytes\nread", "bytes\nwritten")


def printed(width: int) -> str:
    table = plain_table("region", *COLUMNS, numbers_from=1, footer=True)
    for row in range(2):
        table.add_row(f"layer{row}", *(f"{10**6 * (row + 1) + column:,}" for column in range(5)))
    for column, cell in zip(table.columns, ("total", *(f"{3 * 10**6 + 2 * n:,}" for n in range(5))), strict=True):
        column.footer = cell
    stream = io.StringIO()
    print_table(Console(file=stream, width=width), table)
    return stream.getvalue()


@pytest.mark.parametrize("width", [20, 40, 60, 80])
def test_a_table_is_as_wide_as_the_terminal_and_whole(width: int):
    lines = printed(width).splitlines()
    assert max(len(line) for line in lines) <= width
    text = "\n".join(lines)
    for row, name in ((1, "layer0"), (2, "layer1"), (3, "total")):
        numbers = [f"{10**6 * row + (2 if name == 'total' else 1) * column:,}" for column in range(5)]
        cells = [cell for line in lines if line.startswith(name) for cell in line.split()[1:]]
        assert cells == numbers, text


def test_a_wide_terminal_shows_one_table():
    assert printed(100).count("region") == 1
    assert printed(40).count("region") > 1


def test_one_column_that_is_too_wide_runs_over():
    table = plain_table("name", numbers_from=1)
    table.add_row("x" * 50)
    stream = io.StringIO()
    print_table(Console(file=stream, width=20), table)
    assert "x" * 50 in stream.getvalue()
