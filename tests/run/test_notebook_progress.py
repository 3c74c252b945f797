"""The bar of a run in a notebook."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

import fuseflow as ff
from fuseflow.errors import UsageError
from fuseflow.run import notebook_progress as module

EXAMPLE = Path(__file__).parents[2] / "docs" / "example"


@pytest.fixture
def program() -> Any:
    return ff.compile(EXAMPLE / "spmm.ein", tensors=EXAMPLE / "tensors.yaml")


class Cell:
    """What stands below a cell: what was displayed, and what took its place."""

    def __init__(self) -> None:
        self.shown: list[dict[str, str]] = []

    def display(self, content: dict[str, str], *, raw: bool, display_id: bool) -> Cell:
        assert raw and display_id and not self.shown
        self.shown.append(content)
        return self

    def update(self, content: dict[str, str], *, raw: bool) -> None:
        assert raw and self.shown
        self.shown.append(content)


def test_one_bar_is_shown_and_changed(program: Any, monkeypatch: pytest.MonkeyPatch):
    cell = Cell()
    monkeypatch.setattr("IPython.display.display", cell.display)
    monkeypatch.setattr(module, "EVERY", -1.0)
    report = ff.notebook_progress(program)
    program.run(report)
    total = sum(region.estimate.firings for region in program.regions)
    report("full", round(total))
    assert f'max="{total:.0f}"' in cell.shown[0]["text/html"]
    assert "about 0 s left" in cell.shown[-1]["text/plain"] and "a second" in cell.shown[-1]["text/html"]
    report("<script>\x1b", 1)
    assert "<script>" not in cell.shown[-1]["text/html"] and "\x1b" not in cell.shown[-1]["text/plain"]


def test_without_a_notebook_it_says_what_it_needs(program: Any, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "IPython.display", None)
    with pytest.raises(UsageError, match="needs IPython"):
        ff.notebook_progress(program)
