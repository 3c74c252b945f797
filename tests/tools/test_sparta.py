"""The figures after SparTA: pages and pictures say what the committed rows say, and what must hold holds."""

from __future__ import annotations

import copy
from pathlib import Path

import frame
import pytest
import sparta
import sparta_table2
from click.testing import CliRunner

REDO = "redo it: python tools/figures/sparta.py --write"


def test_the_pages_have_what_the_rows_say():
    for path, page in sparta.pages().items():
        assert Path(path).read_text(encoding="utf-8") == page, REDO


@pytest.mark.parametrize("figure", sparta.FIGURES, ids=lambda figure: figure.name)
def test_all_that_must_hold_does(figure: frame.Figure):
    result = CliRunner().invoke(frame.command(figure), ["--check"])
    assert result.exit_code == 0 and "holds" in result.output
    if figure.draw:
        picture = (frame.PICTURES / f"{figure.name}.svg").read_text(encoding="utf-8")
        assert f"data {frame.digest(figure.collect())}<" in picture, REDO


def test_a_cell_that_is_another_is_seen():
    data = copy.deepcopy(sparta_table2.collect())
    data["mul"]["0?"]["known"] = "unknown"
    assert [check.holds for check in sparta_table2.checks(data)] == [False]
