"""The table of promises names tests that there are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
PAGE = TESTS.parent / "docs" / "develop" / "promises.md"
ROWS = [
    line.split(" | ")[1].rstrip(" |")
    for line in PAGE.read_text(encoding="utf-8").partition("| what happens |")[2].splitlines()[2:]
]


def test_rows_are_read():
    assert len(ROWS) > 20


@pytest.mark.parametrize("row", ROWS)
def test_what_a_row_names_is_there(row: str):
    """A row has files of tests, and after a colon the names of some of their tests, or of files that were once read badly."""
    for part in row.split("; "):
        file, _, names = part.partition(": ")
        if file == "`hostile_input`":
            folder = ""
            for name in re.findall(r"`([^`]+)`", names):
                folder, _, last = name.rpartition("/") if "/" in name else (folder, "", name)
                assert (TESTS / "data" / "hostile" / name).is_dir() or list((TESTS / "data" / "hostile" / folder).glob(last)), (
                    name
                )
            continue
        for path in re.findall(r"`([^`]+)`", file):
            text = (TESTS / path.removeprefix("tests/")).read_text(encoding="utf-8")
            for name in re.findall(r"`([^`]+)`", names):
                assert f"def test_{name.rstrip('*')}" in text, name
