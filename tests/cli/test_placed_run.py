"""`fuseflow run --array` and `fuseflow simulate --array`: with links, and with loading in columns of its own."""

from __future__ import annotations

import json
import re
from base64 import b64decode
from pathlib import Path

import numpy as np
import pytest
from command_line import fuseflow

import fuseflow as ff
from fuseflow.array.links import linked_graph
from fuseflow.array.placed_region import PlacementSearch
from fuseflow.array.settings import load_array
from fuseflow.run.placed import load_placements, place_regions, with_links
from fuseflow.sim import load_machine

ROOT = Path(__file__).parents[2]
SPMM = [str(ROOT / "docs/example/spmm.ein"), "--tensors", str(ROOT / "docs/example/tensors.yaml")]
ONYX = load_array("onyx")
QUICK = PlacementSearch(effort=0.1, seeds=1)


@pytest.fixture(scope="module")
def placed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("placements") / "placed"
    words = ("--array", "onyx", "--seeds", "1", "--effort", "0.1", "-o", directory, "-q")
    assert fuseflow("place", *SPMM, *words).exit_code == 0
    return directory


def test_cycles_are_those_of_the_linked_graph_and_loading_stands_beside(placed: Path, tmp_path: Path) -> None:
    words = ("--array", "onyx", "--placement", placed, "--json", tmp_path / "run.json", "--legend")
    result = fuseflow("run", *SPMM, *words)
    assert result.exit_code == 0, result.output
    told = json.loads((tmp_path / "run.json").read_text())
    compiled, machine = ff.compile(SPMM[0], tensors=SPMM[2]), load_machine("rda")
    (region,) = load_placements(placed, {"full": compiled.regions[0].graph}, ONYX, machine)
    expected = ff.sim.simulate(linked_graph(region), compiled.memory(), machine).cycles
    assert told["cycles"] == expected and told["loading"] == {
        "cycles": region.loading_cycles,
        "regions": {"full": region.loading_cycles},
    }
    total = next(line for line in result.stdout.splitlines() if line.startswith("total")).split()
    assert total[-2:] == [str(region.loading_cycles), str(expected + region.loading_cycles)] and total[2] == str(expected)
    assert "until the configuration of the region is loaded" in result.stdout
    near = fuseflow("run", *SPMM, "--json", tmp_path / "near.json")
    assert "loading" not in near.stdout and "loading" not in json.loads((tmp_path / "near.json").read_text())


def test_without_placements_it_places_as_place_does(tmp_path: Path) -> None:
    assert fuseflow("place", *SPMM, "--array", "onyx", "-o", tmp_path / "placed", "-q").exit_code == 0
    results = [fuseflow("run", *SPMM, "--array", "onyx", *words) for words in ((), ("--placement", tmp_path / "placed"))]
    assert results[0].stdout == results[1].stdout and results[0].exit_code == 0


def test_a_saved_graph_is_simulated_with_its_links(placed: Path, tmp_path: Path) -> None:
    ff.compile(SPMM[0], tensors=SPMM[2]).save(tmp_path / "out")
    (graph,) = (tmp_path / "out").glob("*/graph.bin")
    on_array = ("--array", "onyx", "--placement", placed)
    run, simulated = fuseflow("run", *SPMM, *on_array), fuseflow("simulate", graph, *SPMM[1:], *on_array)
    assert simulated.exit_code == 0, simulated.output
    rows = [next(line for line in r.stdout.splitlines() if line.startswith("full")).split() for r in (run, simulated)]
    assert rows[0][2:] == rows[1][2:]


def test_a_run_writes_pictures_for_the_report_and_shows_tiles(placed: Path, tmp_path: Path) -> None:
    words = ("--array", "onyx", "--placement", placed, "--resources", "-o", tmp_path / "run")
    result = fuseflow("run", *SPMM, *words)
    assert result.exit_code == 0, result.output
    assert [line.split()[0] for line in result.stdout.partition("missing")[2].splitlines() if line[:1].isalpha()] == [
        "full",
        "onyx",
    ]
    picture = (tmp_path / "run/01-full/array.svg").read_text()
    assert picture.startswith("<svg") and picture != (placed / "full.svg").read_text()
    assert fuseflow("report", tmp_path / "run", "-o", tmp_path / "report.html").exit_code == 0
    page = (tmp_path / "report.html").read_text()
    embedded = re.search(r'<img alt="the region on the array" src="data:image/svg\+xml;base64,([^"]+)">', page)
    assert embedded is not None and b64decode(embedded[1]).decode() == picture
    assert "Loading it takes" in page


def test_what_is_of_another_graph_or_array_is_refused(placed: Path, tmp_path: Path) -> None:
    def refused(*words: object) -> str:
        result = fuseflow("run", *SPMM, *words)
        assert result.exit_code == 2 and "Traceback" not in result.output
        return " ".join(result.stderr.split())

    at = ("--placement", placed)
    assert "it is of another graph" in refused("--array", "onyx", "--par", "i=2", *at)
    assert "for another array than `plasticine`" in refused("--array", "plasticine", *at)
    assert "has no placement of region `T`" in refused("--array", "onyx", "--fuse", "none", *at)
    assert "`--placement` without `--array`" in refused(*at)
    assert "placed.json" in refused("--array", "onyx", "--placement", tmp_path)
    assert "`--array` beside `--sample`" in refused("--array", "onyx", "--sample", "2%")
    (tmp_path / "placed.json").write_text('{"regions": [{"name": "full", "file": "../full.place.json"}]}')
    assert "lists no placements" in refused("--array", "onyx", "--placement", tmp_path)


def test_regions_that_repeat_load_once(tmp_path: Path) -> None:
    (tmp_path / "twice.ein").write_text(
        "tensor x[6]  dense\ny[i] = relu(x[i])\nz[i] = relu(y[i])\nu[i] = z[i] * x[i]\noutput u\n"
    )
    compiled = ff.compile(tmp_path / "twice.ein", schedule=ff.Schedule.fuse("none"), tensors={"x": np.ones(6)})
    graphs = {region.name: region.graph for region in compiled.regions}
    placed = place_regions(graphs, ONYX, compiled.machine, QUICK)
    linked = with_links(compiled, placed)
    first, second, third = linked.loading.values()
    assert (first, second, third) == (placed[0].loading_cycles, 0, placed[2].loading_cycles) and third > 0
    result = linked.run()
    assert result.loading_cycles == first + third and result.cycles > compiled.run().cycles
