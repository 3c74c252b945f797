"""Every table of the documents has a header, and every row of it has as many cells as the header."""

import re
from collections.abc import Iterator
from itertools import groupby

import pytest
from doc_blocks import ROOT

PAGES = [*sorted((ROOT / "docs").rglob("*.md")), *sorted(ROOT.glob("*.md"))]
RULE = re.compile(r"\|[-:|\s]+\|")


def tables(text: str) -> Iterator[list[str]]:
    """Yield the lines of each table, outside of blocks of code."""
    prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    for is_table, lines in groupby(map(str.strip, prose.splitlines()), lambda line: line.startswith("|")):
        if is_table:
            yield list(lines)


def cells(row: str) -> int:
    """Return the number of cells of a row. A bar in code, or behind a backslash, divides nothing."""
    return len(re.split(r"(?<!\\)\|", re.sub(r"`[^`]*`", "code", row).strip("|")))


def faults(text: str) -> list[str]:
    """Return the rows that do not fit the header of their table, and the tables without one."""
    wrong = []
    for header, *rows in tables(text):
        if not rows or not RULE.fullmatch(rows[0]):
            wrong.append(header)
        wrong += [row for row in rows if cells(row) != cells(header)]
    return wrong


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_rows_fit_the_header_of_their_table(page):
    assert faults(page.read_text()) == []


def test_a_row_of_another_table_and_a_table_without_header_are_seen():
    assert faults("| a | b |\n|---|---|\n| `x|y` | 2 |\n| 1 | 2 | 3 |\n") == ["| 1 | 2 | 3 |"]
    assert faults("text\n\n| 1 | 2 |\n| 3 | 4 |\n") == ["| 1 | 2 |"]
