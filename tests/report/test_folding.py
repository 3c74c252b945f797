"""Tables as wide as the terminal: what is left out, wrapped and shown in parts, and that no number is cut."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from rich.table import Table

from fuseflow.report.column_meanings import FIRST_USE, LEAST_USEFUL, PROSE, column_meaning
from fuseflow.report.table_width import TableConsole, print_table
from fuseflow.report.tables import plain_table

COLUMNS = ("cycles", "roofline", "firings", "bytes\nread", "bytes\nwritten")


def run_table() -> Table:
    table = plain_table("region", *COLUMNS, numbers_from=1, footer=True)
    for row in range(2):
        table.add_row(f"layer{row}", *(f"{10**6 * (row + 1) + column:,}" for column in range(5)))
    for column, cell in zip(table.columns, ("total", *(f"{3 * 10**6 + 2 * n:,}" for n in range(5))), strict=True):
        column.footer = cell
    return table


def printed(table: Table, width: int, wide: bool = False) -> str:
    stream = io.StringIO()
    print_table(TableConsole(file=stream, width=width, wide=wide), table)
    return stream.getvalue()


def rows(text: str) -> list[str]:
    return [line for line in text.splitlines() if not line.startswith(("roofline: ", "no room for "))]


@pytest.mark.parametrize("width", [20, 40, 60, 80])
def test_a_wide_table_is_as_wide_as_the_terminal_and_whole(width: int):
    text = printed(run_table(), width, wide=True)
    lines = rows(text)
    assert max(len(line) for line in lines) <= width and "no room" not in text
    for row, name in ((1, "layer0"), (2, "layer1"), (3, "total")):
        numbers = [f"{10**6 * row + (2 if name == 'total' else 1) * column:,}" for column in range(5)]
        cells = [cell for line in lines if line.startswith(name) for cell in line.split()[1:]]
        assert cells == numbers, text


@pytest.mark.parametrize(
    ("width", "missing"), [(80, ""), (50, "firings"), (40, "firings, bytes written"), (28, "firings, bytes written, bytes read")]
)
def test_the_least_useful_columns_are_left_out_first(width: int, missing: str):
    text = printed(run_table(), width)
    assert max(len(line) for line in rows(text)) <= width
    assert text.count("region") == 1 and "1,000,001" in text  # roofline
    assert (f"no room for {missing}: `--wide` shows all columns" in text) == bool(missing) == ("no room" in text)


def test_a_note_is_told_once_on_a_console():
    stream = io.StringIO()
    console = TableConsole(file=stream, width=40)
    for _ in range(3):
        print_table(console, run_table())
    assert stream.getvalue().count("roofline: ") == stream.getvalue().count("no room for") == 1
    plain = io.StringIO()
    print_table(Console(file=plain, width=40), run_table())
    assert "no room for" in plain.getvalue()


def test_a_wide_terminal_shows_one_table():
    assert printed(run_table(), 100, wide=True).count("region") == 1
    assert printed(run_table(), 40, wide=True).count("region") > 1


def test_sentences_are_wrapped_before_a_column_is_left_out():
    table = plain_table("producer", "firings", "why", numbers_from=3)
    table.add_row("x" * 10, "17", "a softmax or a norm stays together and so do all others of it")
    lines = printed(table, 50).splitlines()
    assert max(map(len, lines)) <= 50 and "firings" in lines[0] and len(lines) == 5


def test_a_name_that_is_too_wide_is_wrapped():
    table = plain_table("name", "cycles", numbers_from=1)
    table.add_row("x" * 50, "1,234")
    lines = printed(table, 40).splitlines()
    assert max(map(len, lines)) <= 40
    assert "".join(line.split()[0] for line in lines[2:]) == "x" * 50 and "1,234" in lines[2]


def test_what_is_said_of_columns_is_of_columns_that_there_are():
    assert [head for head in (*LEAST_USEFUL, *PROSE, *FIRST_USE) if column_meaning(head) is None] == []
    assert len(set(LEAST_USEFUL)) == len(LEAST_USEFUL) and not set(LEAST_USEFUL) & set(PROSE)
