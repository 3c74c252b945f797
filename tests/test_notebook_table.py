"""What values show of themselves at a prompt and in a notebook."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import pytest

import fuseflow as ff
from fuseflow.notebook_table import MOST_ROWS, SummaryTable
from fuseflow.run.compiled import Compiled
from fuseflow.run.result import Result

EXAMPLE = Path(__file__).parents[1] / "docs" / "example"


class Cells(HTMLParser):
    """The texts of the cells of a table, and the tags that were opened and not closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.cells: list[str] = []
        self.tags: set[str] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.tags.add(tag)
        if tag in ("td", "th"):
            self.cells.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] and self.open[-1] in ("td", "th"):
            self.cells[-1] += data


@pytest.fixture(scope="module")
def program() -> Compiled:
    return ff.compile(EXAMPLE / "spmm.ein", tensors=EXAMPLE / "tensors.yaml")


@pytest.fixture(scope="module")
def result(program: Compiled) -> Result:
    return program.run()


def test_a_value_is_one_short_line_at_a_prompt(program: Compiled, result: Result):
    region = program.regions[0]
    for value in (program, program.program, region, region.graph, program.estimate(), result):
        assert len(repr(value)) < 120 and "\n" not in repr(value)
    assert repr(result) == f"<Result spmm: {result.cycles} cycles, 1 regions, check passed>"


def test_a_value_is_a_table_in_a_notebook(program: Compiled, result: Result):
    region, estimate = program.regions[0], program.estimate()
    for value in (program, region, region.graph, estimate, result):
        page = value._repr_html_()
        parsed = Cells(page)
        assert len(page) < 3000 and parsed.open == [] and parsed.tags >= {"table", "caption", "tr", "td"}
    row = Cells(result._repr_html_()).cells[8:]
    run = result.regions[0].simulation
    assert row[:3] == ["full", "1", f"{result.cycles:,}"] and row[5] == f"{run.firings:,}"
    assert row[-1] == f"{sum(traffic.bytes for traffic in run.traffic):,}"


def test_names_are_text_in_a_table():
    name = "<script>alert('x')</script>\x1b[31m\u202e" + "long" * 3000
    page = SummaryTable(name, (name,), ((name,),)).to_html()
    parsed = Cells(page)
    assert "script" not in parsed.tags and parsed.open == []
    assert "\x1b" not in page and "\u202e" not in page and len(page) < 1000
    assert parsed.cells[0].startswith("<script>")


def test_rows_behind_the_first_ones_are_counted():
    parsed = Cells(SummaryTable("t", ("n",), tuple((n,) for n in range(1000)), ("1 total",)).to_html())
    assert parsed.cells[-2:] == [f"and {1000 - MOST_ROWS} more", "1 total"]
