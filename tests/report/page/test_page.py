"""The page of a run: well-formed, self-contained, the same bytes again, and nobody's names are markup."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

import fuseflow as ff
from fuseflow.errors import FileError, UsageError
from fuseflow.explain.cycles import explain_cycles
from fuseflow.filesystem import json_text
from fuseflow.report.cycle_tables import cycles_json
from fuseflow.report.page import graph_drawings
from fuseflow.report.page.page import page
from fuseflow.report.page.run_directory import StoredRun, read_run
from fuseflow.schedule import Schedule

EXAMPLE = Path(__file__).parents[3] / "docs" / "example"
VOID = {"meta", "br", "hr", "input", "link"}


class Reader(HTMLParser):
    """Tags that are closed in order, with ids and what is linked to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.seen: set[str] = set()
        self.text = ""
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        assert len(found) == len(attrs), "an attribute twice"
        assert not {"src", "srcset", "onclick", "onload"} & found.keys()
        self.seen.add(tag)
        self.ids += [value for key, value in attrs if key == "id" and value]
        self.links += [value for key, value in attrs if key in ("href", "xlink:href") and value]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def things(text: str) -> list[dict[str, Any]]:
    """Return the things of a page, from the JSON in it."""
    return json.loads(text.partition('<script type="application/json" id="data">')[2].partition("</script>")[0])["things"]


def libraries() -> str:
    """Return the libraries in a page, which name the addresses of standards."""
    return (files("fuseflow.report.page") / "scripts/libraries.js").read_text(encoding="utf-8")


def run(folder: Path, machine: str = "rda", **lanes: int) -> Path:
    schedule = Schedule.fuse("full").par(**lanes)
    compiled = ff.compile(EXAMPLE / "spmm.ein", tensors=EXAMPLE / "tensors.yaml", machine=machine, schedule=schedule)
    compiled.save(folder / "run", compiled.run())
    return folder / "run"


@pytest.mark.parametrize("machine", ["ideal", "rda", "comal"])
def test_a_page_is_whole_and_needs_nothing_else(machine: str, tmp_path: Path):
    where = run(tmp_path, machine)
    text = page(read_run(where))
    reader = Reader(text)
    assert text == page(read_run(where))
    places = {thing["key"] for thing in things(text)} | set(reader.ids)
    assert len(set(reader.ids)) == len(reader.ids) and {link.removeprefix("#") for link in reader.links} <= places
    ours = text.replace(libraries(), "").replace('"http://www.w3.org/2000/svg"', "")
    assert len(ours) < len(text) and not re.search(r"https?:|url\(|@import|\bnan\b|\binf\b", ours)
    assert {"table", "details", "pre", "main", "aside"} <= reader.seen and 'data-figure="graph"' in text
    result = json.loads((where / "result.json").read_text())
    (region,) = result["regions"]
    for node in region["statistics"]["nodes"]:
        assert node["name"] in reader.text
    for said in (f"{result['cycles']:,} cycles", *region["einsums"], "check passed", "must be complete before loop", "Acc1_k"):
        assert said in reader.text
    assert ("the slanted line" in reader.text) == (machine == "rda")


def test_lanes_are_drawn_once(tmp_path: Path):
    where = run(tmp_path, i=4)
    stored = read_run(where)
    text = Reader(page(stored)).text
    (values, graph) = stored.compiled["full"]
    first = [node for node in graph.nodes if all(lane == 0 for _, lane in values["places"].get(node.name, ()))]
    assert 0 < len(first) < len(graph.nodes)
    assert f"4 lanes of i, one shown: {len(first)} of {len(graph.nodes)} nodes" in text and f"show all {len(graph.nodes)}" in text


def test_too_many_nodes_are_not_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(graph_drawings, "MAX_DRAWN_NODES", 5)
    assert "25 nodes are too many to draw" in Reader(page(read_run(run(tmp_path)))).text


def test_a_json_file_has_no_graph(tmp_path: Path):
    text = Reader(page(read_run(run(tmp_path) / "result.json"))).text
    assert "fuseflow run -o DIR" in text and "Dataflow graph" not in text and "X_val" in text


def test_what_a_critical_path_says_is_on_the_page(tmp_path: Path):
    where = run(tmp_path)
    compiled = ff.compile(EXAMPLE / "spmm.ein", tensors=EXAMPLE / "tensors.yaml", schedule=Schedule.fuse("full"))
    explained = cycles_json(explain_cycles(compiled))
    (tmp_path / "cycles.json").write_text(json_text(explained))
    text = Reader(page(read_run(where, tmp_path / "cycles.json"))).text
    assert "waits for the memory" in text and all(change["change"] in text for change in explained["changes"])
    (tmp_path / "cycles.json").write_text(json_text({**explained, "seed": 7}))
    with pytest.raises(UsageError, match="explains another run: its seed differs"):
        read_run(where, tmp_path / "cycles.json")


def test_names_are_not_markup(tmp_path: Path):
    evil = "</script><script>alert(1)</script>\"'`&\x07\ud800"
    result = json.loads((run(tmp_path) / "result.json").read_text())
    result |= {"model": evil, "data": evil, "notices": [evil], "schedule": evil, "options": {evil: evil}}
    (region,) = result["regions"]
    region |= {"name": evil, "einsums": [evil]}
    for node in region["statistics"]["nodes"]:
        node["name"] = evil
    text = page(StoredRun(result))
    text.encode()
    assert "<script>alert" not in text and Reader(text).text.count("alert(1)") > 8


def test_a_run_that_failed_its_check_says_so(tmp_path: Path):
    result = json.loads((run(tmp_path) / "result.json").read_text())
    result["check"] |= {"passed": False, "max_rel_error": None}
    assert "check FAILED" in Reader(page(StoredRun(result))).text
    assert "not checked" in Reader(page(StoredRun({**result, "check": None}))).text


def test_a_run_says_what_could_not_be_compared(tmp_path: Path):
    result = json.loads((run(tmp_path) / "result.json").read_text())
    result["check"] |= {"not_compared": 3, "elements": 12, "masked_rows": 1}
    text = " ".join(Reader(page(StoredRun(result))).text.split())
    assert "check passed" in text and "3 of 12 elements could not be compared, 1 fully masked rows left out" in text
    result["check"] |= {"passed": False, "unknown": "y"}
    assert "check UNKNOWN" in " ".join(Reader(page(StoredRun(result))).text.split())
    for name in ("not_compared", "elements", "unknown", "masked_rows"):  # which earlier versions did not write
        del result["check"][name]
    assert "check FAILED" in " ".join(Reader(page(StoredRun(result))).text.split())


BROKEN = {
    "truncated": (lambda text: text[:-50], FileError, "is not JSON, or not whole"),
    "another version": (
        lambda text: text.replace('"schema": 2', '"schema": 1'),
        FileError,
        "has schema 1; this version .* reads 2",
    ),
    "no run": (lambda text: "[1, 2]", UsageError, "is not a result of `fuseflow run --json`"),
    "something else": (lambda text: '{"schema": 2}', UsageError, "is no result of a run"),
    "a key missing": (lambda text: text.replace('"firings"', '"firing"'), FileError, "not as fuseflow writes it: KeyError"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_what_is_no_run_is_refused(case: str, tmp_path: Path):
    spoil, error, message = BROKEN[case]
    path = run(tmp_path) / "result.json"
    path.write_text(spoil(path.read_text()))
    with pytest.raises(error, match=message):
        page(read_run(path))


def test_directories_that_are_no_runs_are_refused(tmp_path: Path):
    with pytest.raises(UsageError, match=r"has no about\.json"):
        read_run(tmp_path)
    where = run(tmp_path)
    (where / "01-full" / "region.json").unlink()
    with pytest.raises(FileError, match=r"has no region\.json"):
        read_run(where)
    (where / "result.json").unlink()
    with pytest.raises(UsageError, match="has not run"):
        read_run(where)
