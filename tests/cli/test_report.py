"""`fuseflow report`: where the page goes, that the next run may replace it, what is refused."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from command_line import fuseflow

EXAMPLE = Path(__file__).parents[2] / "docs" / "example"
SPMM = (EXAMPLE / "spmm.ein", "--tensors", EXAMPLE / "tensors.yaml", "-q")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    assert fuseflow("run", *SPMM, "-o", "out", "--json", "run.json").exit_code == 0
    return tmp_path


def test_a_page_stands_in_its_run_and_the_next_run_may_replace_both(here: Path):
    for _ in range(2):
        assert "report: out/report.html" in fuseflow("report", "out").output
        assert json.loads((here / "out" / "about.json").read_text())["files"].count("report.html") == 1
    written = (here / "out" / "report.html").read_bytes()
    assert fuseflow("run", *SPMM, "-o", "out").exit_code == 0
    assert not (here / "out" / "report.html").exists()
    assert fuseflow("report", "out", "-q").output == ""
    assert (here / "out" / "report.html").read_bytes() == written


def test_a_page_goes_where_it_is_told(here: Path):
    assert fuseflow("report", "out", "-o", "new/page.html").exit_code == 0
    assert (here / "new" / "page.html").read_text().endswith("</html>\n") and not (here / "out" / "report.html").exists()
    assert fuseflow("report", "run.json").exit_code == 0 and (here / "run.html").exists()
    assert fuseflow("report", "out", "-o", "-").output == (here / "new" / "page.html").read_text()


def test_a_run_is_not_overwritten(here: Path):
    before = (here / "run.json").read_text()
    assert "is what the page is made of" in fuseflow("report", "run.json", "-o", "run.json").output
    assert (here / "run.json").read_text() == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing.json"], "cannot read `nothing.json`"),
        (["run.json", "--cycles", "run.json"], "`run.json` has schema 2"),
        (["out", "-o", "out"], "it is a directory"),
        (["."], "no directory of a run"),
    ],
)
def test_what_does_not_fit_is_refused(arguments: list[str], message: str, here: Path):
    result = fuseflow("report", *arguments)
    assert result.exit_code == 2 and message in result.output and "Traceback" not in result.output


def test_the_result_of_a_graph_has_a_page(here: Path):
    run = fuseflow("simulate", "out/01-full/graph.samml", "--tensors", EXAMPLE / "tensors.yaml", "-o", "sim", "-q")
    assert run.exit_code == 0, run.output
    assert fuseflow("report", "sim").exit_code == 0
    assert "Region full" in (here / "sim" / "report.html").read_text()


def test_two_runs_have_a_page_that_compares_them(here: Path):
    assert fuseflow("run", *SPMM, "--fuse", "none", "-o", "none").exit_code == 0
    assert "report: comparison.html" in fuseflow("report", "none", "out").output
    text = (here / "comparison.html").read_text()
    assert "times as fast as A" in text and "A, busy, cycles" in text and "fuse: [none]" in text
    assert fuseflow("report", "none", "out", "-o", "-").output == text
    assert "no directory of a run" in fuseflow("report", "out", ".").output
    assert "explains one run" in fuseflow("report", "out", "none", "--cycles", "run.json").output


def test_a_page_says_how_much_faster_a_run_is_than_its_baseline(here: Path):
    assert fuseflow("run", *SPMM, "--fuse", "none", "-o", "none").exit_code == 0
    assert fuseflow("report", "out", "--baseline", "none").exit_code == 0
    text = (here / "out" / "report.html").read_text()
    assert "Speed-up over the baseline, none" in text and "times as fast as none" in text
    assert "is for the page of one run" in fuseflow("report", "out", "none", "--baseline", "none").output
    assert "no directory of a run" in fuseflow("report", "out", "--baseline", ".").output


def test_a_sweep_has_a_page_of_its_points(here: Path):
    sweep = EXAMPLE / "sweep.yaml"
    assert "no results" in fuseflow("report", sweep, "-o", "sweep.html").output
    assert fuseflow("sweep", sweep, "--jobs", "1").exit_code == 0
    assert fuseflow("report", sweep, "-o", "sweep.html").exit_code == 0
    text = (here / "sweep.html").read_text()
    assert text.count("To run it alone") == 8 and "Pareto front" in text
    assert "--machine rda" in re.sub(r"<[^>]+>", "", text)
    assert fuseflow("report", sweep, "-o", "-").output == text
    assert "has its own comparison" in fuseflow("report", sweep, "out").output
    assert "RUN is none" in fuseflow("report", "out", "--store", "x.sqlite").output


def test_a_run_that_is_explained_keeps_it_for_its_page(here: Path):
    assert "add `-o DIR`" in fuseflow("run", *SPMM, "--explain").output
    assert fuseflow("run", *SPMM, "-o", "out", "--explain").exit_code == 0
    assert "cycles.json" in json.loads((here / "out" / "about.json").read_text())["files"]
    assert fuseflow("report", "out").exit_code == 0
    text = (here / "out" / "report.html").read_text()
    assert "What would help" in text and 'class="strip"' in text and "Limited by" in text
    explained = json.loads((here / "out" / "cycles.json").read_text())
    assert explained["command"] == ["fuseflow", "run", *map(str, SPMM[:-1])]  # without `-q`
    assert explained["search"]["command"][:3] == ["fuseflow", "schedule", str(SPMM[0])] and explained["search"]["cycles"] > 0
    assert ("fuseflow schedule" in text) == (explained["search"]["cycles"] < explained["cycles"])  # a slower one is no help
