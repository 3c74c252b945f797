"""Placements by annealing, against recorded ones and against the kernel as plain Python."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from arrays import RecordedNetlist, recorded_graph, recorded_netlists

from fuseflow.array.anneal import anneal
from fuseflow.array.grid import Grid
from fuseflow.array.netlist import Cell, Net, Netlist, netlist_of
from fuseflow.array.settings import load_array
from fuseflow.errors import ArrayError

RECORDED = {recorded.name: recorded for recorded in recorded_netlists()}
PUBLISHED = {"onyx_published_mat_vecmul_ij": 348, "onyx_published_matmul_ijk": 277}
"""The wirelengths of published placements of the recorded netlists of these names."""


@pytest.mark.parametrize("recorded", recorded_netlists(), ids=lambda recorded: recorded.name)
def test_a_short_run_is_near_the_best_known(recorded: RecordedNetlist) -> None:
    placement = anneal(recorded.netlist, Grid.of(recorded.array))
    placement.verify(Grid.of(recorded.array))
    assert recorded.bound <= placement.wirelength <= 1.05 * recorded.wirelength
    if recorded.name in PUBLISHED:
        assert 3 * placement.wirelength <= PUBLISHED[recorded.name]


@pytest.mark.slow
@pytest.mark.parametrize("recorded", recorded_netlists(), ids=lambda recorded: recorded.name)
def test_a_long_run_is_within_three_percent_of_the_best_known(recorded: RecordedNetlist) -> None:
    placement = anneal(recorded.netlist, Grid.of(recorded.array), effort=100, seeds=8)
    assert recorded.bound <= placement.wirelength <= 1.03 * recorded.wirelength


@pytest.mark.slow
def test_four_hundred_cells_take_less_than_five_processor_seconds_a_seed() -> None:
    onyx = load_array("onyx")
    array = onyx.model_copy(update={"ports": onyx.ports.model_copy(update={"share": 2})})
    netlist = netlist_of(recorded_graph("gcn", 4), array)
    anneal(netlist, Grid.of(array), effort=0.01, seeds=1)  # loads the kernel
    start = time.process_time()
    anneal(netlist, Grid.of(array), seeds=1)
    assert len(netlist.cells) > 350
    assert time.process_time() - start < 5


def test_the_shortest_of_all_seeds_is_taken_and_equal_runs_are_equal() -> None:
    recorded = RECORDED["onyx_published_matmul_ijk"]
    grid = Grid.of(recorded.array)
    placements = [anneal(recorded.netlist, grid, effort=1, seeds=count) for count in range(1, 7)]
    keys = [(placement.wirelength, placement.longest) for placement in placements]
    assert keys == sorted(keys, reverse=True) and len(set(keys)) > 1
    assert anneal(recorded.netlist, grid, effort=1, seeds=6).sites == placements[-1].sites


@pytest.mark.parametrize("name", ["onyx_published_mat_vecmul_ij", "plasticine_gcn_none_relu"])
def test_the_compiled_kernel_does_what_it_does_as_plain_python(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded = RECORDED[name]
    grid = Grid.of(recorded.array)
    compiled = anneal(recorded.netlist, grid, effort=0.05, seeds=2)
    monkeypatch.setattr("fuseflow.array.anneal.library", PlainLibrary)
    assert anneal(recorded.netlist, grid, effort=0.05, seeds=2).sites == compiled.sites


class PlainLibrary:
    """A library that compiles nothing."""

    def compiled(self, function, signature):
        return function


def test_a_grid_that_is_full_has_its_cells_swapped() -> None:
    sites = tuple((x, y) for y in range(4) for x in range(4))
    grid = Grid(4, 4, {"A": sites, "none": ()})
    cells = tuple(Cell(f"c{number}", "A") for number in range(16))
    netlist = Netlist(cells, tuple(Net(k * 7 % 16, ((k + 1) * 7 % 16,)) for k in range(15)))
    placement = anneal(netlist, grid)
    placement.verify(grid)
    assert placement.wirelength == 15  # a path through all tiles


def test_cells_may_have_no_net_a_net_may_be_within_a_cell_and_a_kind_may_have_one_site() -> None:
    grid = Grid(5, 1, {"A": ((0, 0), (2, 0), (3, 0)), "B": ((4, 0),)})
    cells = (Cell("a", "A"), Cell("b", "A"), Cell("c", "B"))
    for nets, length in (((), 0), ((Net(0, (0,)),), 0), ((Net(0, (2, 2)), Net(2, (0,))), 2)):
        placement = anneal(Netlist(cells, nets), grid)
        placement.verify(grid)
        assert placement.wirelength == length


def test_too_many_cells_of_a_kind_are_refused() -> None:
    recorded = RECORDED["onyx_gcn_none_relu"]
    grid = Grid.of(recorded.array)
    for few in ({**grid.sites, "IO": grid.sites["IO"][:2]}, {kind: sites for kind, sites in grid.sites.items() if kind != "IO"}):
        with pytest.raises(ArrayError, match="cells of the kind IO"):
            anneal(recorded.netlist, replace(grid, sites=few))
