"""`fuseflow run --array` and `fuseflow simulate --array`: with links, and with loading in columns of its own."""

from __future__ import annotations

import json
import re
from base64 import b64decode
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from command_line import fuseflow

import fuseflow as ff
from fuseflow.array.links import at_equal_slots, linked_graph
from fuseflow.array.placed_region import PlacementSearch
from fuseflow.array.settings import ArraySettings, load_array
from fuseflow.run.placed import load_placements, place_regions, with_links
from fuseflow.samml.nodes import NodeHops
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
    words = ("--array", "onyx", "--placement", placed, "--resources", "--explain", "-o", tmp_path / "run")
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
    first, second, third = (load.cycles for load in linked.loading.values())
    assert (first, second, third) == (placed[0].loading_cycles, 0, placed[2].loading_cycles) and third > 0
    result = linked.run()
    assert result.loading_cycles == first + third and result.cycles > compiled.run().cycles


def test_the_next_region_is_loaded_while_one_runs(tmp_path: Path) -> None:
    """With two regions on the array, only what loading takes longer than the region before counts."""
    array = ArraySettings.model_validate({**ONYX.model_dump(), "resident": 2, "load": {"words_per_cycle": 1}})
    compiled = ff.compile(SPMM[0], tensors=SPMM[2], schedule=ff.Schedule.fuse("none"))
    graphs = {region.name: region.graph for region in compiled.regions}
    placed = place_regions(graphs, array, compiled.machine, QUICK)
    for before, after in pairwise(placed):
        assert before.leaves_room_for(after) and not before.leaves_room_for(before)
        use = before.routing.use + after.routing.use
        assert set(before.placement.sites).isdisjoint(after.placement.sites) and max(use.values()) <= array.tracks
    result = with_links(compiled, placed).run()
    cycles = {name: region.cycles for region in result.regions for name in region.names}
    loads = dict(zip(graphs, (its_place.loading_cycles for its_place in placed), strict=True))
    ran = dict(zip(graphs, [0, *(cycles[name] for name in graphs)], strict=False))
    assert result.loading == {name: max(0, loads[name] - ran[name]) for name in graphs}
    assert 0 < result.loading_cycles < sum(loads.values())
    alone = with_links(compiled, place_regions(graphs, ONYX, compiled.machine, QUICK))
    assert not any(load.early for load in alone.loading.values())
    full = {"full": ff.compile(SPMM[0], tensors=SPMM[2]).regions[0].graph, **graphs}
    narrow = array.model_copy(update={"grid": array.grid.model_copy(update={"columns": 12, "rows": 4})})
    one, two, *_ = place_regions(full, narrow, compiled.machine, QUICK)
    assert not one.leaves_room_for(two)


@pytest.mark.parametrize("model", ["models/gcn.py", "models/graphsage.py"])
def test_what_distances_cost_is_what_the_docs_say(model: str) -> None:
    compiled, machine = ff.compile(ROOT / model, schedule=ff.Schedule.fuse("full")), load_machine("rda")
    (region,), (its_place,) = compiled.regions, place_regions({"": compiled.regions[0].graph}, ONYX, machine, PlacementSearch())
    linked, ideal = linked_graph(its_place), at_equal_slots(its_place, machine)
    parts = (lambda h: NodeHops(), lambda h: NodeHops(port=h.port), lambda h: replace(h, loop=0), lambda h: h)
    graphs = [ideal, *(replace(linked, node_hops=tuple((name, part(h)) for name, h in linked.node_hops)) for part in parts)]
    cycles = [replace(compiled, regions=(replace(region, graph=graph),)).run(check=False).cycles for graph in graphs]
    docs = (ROOT / "docs/measured/arrays.md").read_text()
    assert f"| `{model}` | {' | '.join(f'{n:,}' for n in cycles)} |" in docs
    if model == "models/gcn.py":
        shallow = machine.model_copy(update={"fifo_depth": 8})
        graphs = [at_equal_slots(its_place, shallow), replace(linked, node_hops=())]
        ran = [replace(compiled, machine=shallow, regions=(replace(region, graph=graph),)).run(check=False) for graph in graphs]
        assert f"alone make {ran[1].cycles:,} cycles of {ran[0].cycles:,}." in docs


def test_an_estimate_counts_the_links_of_placements(tmp_path: Path) -> None:
    """In a GraphSAGE on Onyx, the sums of accumulations go round several tiles, which takes most of the cycles of its second layer."""
    model = (str(ROOT / "models/graphsage.py"), "--fuse", "layerwise", "--array", "onyx")
    assert fuseflow("place", *model, "--effort", "1", "--seeds", "1", "-o", tmp_path / "placed", "-q").exit_code == 0
    placement = ("--placement", tmp_path / "placed")
    assert fuseflow("run", *model, *placement, "--no-check", "-q", "--json", tmp_path / "run.json").exit_code == 0
    run, cycles = json.loads((tmp_path / "run.json").read_text()), dict[str, float]()
    for name, options in (("near", ()), ("placed", placement)):
        assert fuseflow("estimate", *model, *options, "-q", "--json", tmp_path / f"{name}.json").exit_code == 0
        cycles[name] = json.loads((tmp_path / f"{name}.json").read_text())["cycles"]
    assert cycles["near"] < 0.75 * run["cycles"] and cycles["placed"] == pytest.approx(run["cycles"], rel=0.05)


def test_a_link_is_never_deepened() -> None:
    """With FIFOs that are deepened, a GCN is stuck where a link is full, too, and two slots more there would have been enough."""
    machine = load_machine("rda", {"fifo_depth_start": 2})
    compiled = ff.compile(ROOT / "models/gcn.py", schedule=ff.Schedule.fuse("full"), machine=machine)
    graphs = {region.name: region.graph for region in compiled.regions}
    placed = place_regions(graphs, ONYX, machine, PlacementSearch(effort=0.5, seeds=1))
    (region,) = with_links(compiled, placed).run(check=False).regions
    links = {node.name for node in region.graph.nodes if node.op == "link"}
    deepened = {edge.node for edge in region.simulation.depths}
    assert links and deepened and not deepened & links
