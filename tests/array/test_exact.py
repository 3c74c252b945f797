"""Exact placements and lower bounds, against an enumeration of all placements and against recorded optima."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations, product

import pytest
from arrays import RecordedNetlist, recorded_netlists

from fuseflow.array.anneal import anneal
from fuseflow.array.exact import exact_placement, lower_bound
from fuseflow.array.grid import Grid, Placement, Site
from fuseflow.array.netlist import Cell, Net, Netlist
from fuseflow.errors import ArrayError, UsageError

QUICK = ("plasticine_gcn_none_relu", "plasticine_gcn_none_layer1_add", "onyx_gcn_none_relu")
"""Recorded netlists whose optimum is proven in about a second."""
PROVEN = [recorded for recorded in recorded_netlists() if recorded.proven]


def random_case(seed: int) -> tuple[Netlist, Grid]:
    """A small grid, some of whose places have no tile, and a netlist of few cells, which need not hang together."""
    draw = random.Random(seed)
    columns, rows = draw.choice([(2, 4), (3, 3), (5, 2), (4, 3)])
    sites: dict[str, list[Site]] = {"A": [], "B": []}
    for y, x in product(range(rows), range(columns)):
        if draw.random() < 0.9:
            sites[draw.choice("AAB")].append((x, y))
    grid = Grid(columns, rows, {kind: tuple(places) for kind, places in sites.items()})
    kinds = [kind for kind, most in (("A", 4), ("B", 2)) for _ in range(min(most, len(sites[kind])))]
    cells = tuple(Cell(f"c{number}", kind) for number, kind in enumerate(kinds))
    nets = []
    for _ in range(draw.randint(1, 7)):
        source, *sinks = draw.choices(range(len(cells)), k=draw.randint(2, 4))
        nets.append(Net(source, tuple(sinks)))
    return Netlist(cells, tuple(nets)), grid


def all_placements(netlist: Netlist, grid: Grid) -> Iterator[Placement]:
    counts = Counter(cell.kind for cell in netlist.cells)
    for of_kinds in product(*(permutations(grid.sites[kind], count) for kind, count in counts.items())):
        free = {kind: iter(sites) for kind, sites in zip(counts, of_kinds, strict=True)}
        yield Placement(netlist, tuple(next(free[cell.kind]) for cell in netlist.cells))


@pytest.mark.parametrize("seed", range(20))
def test_the_optimum_is_that_of_all_placements(seed: int) -> None:
    netlist, grid = random_case(seed)
    lengths = {placement.wirelength: placement for placement in all_placements(netlist, grid)}
    exact = exact_placement(netlist, grid, lengths[max(lengths)], seconds=20)
    exact.placement.verify(grid)
    assert exact.proven and exact.placement.wirelength == exact.bound == min(lengths)
    assert exact.gap == 0
    assert lower_bound(netlist, grid) <= min(lengths)
    annealed = anneal(netlist, grid)
    annealed.verify(grid)
    assert annealed.wirelength == min(lengths)
    assert exact_placement(netlist, grid, lengths[min(lengths)], seconds=20).placement is lengths[min(lengths)]


@pytest.mark.parametrize("recorded", [r for r in PROVEN if r.name in QUICK], ids=lambda recorded: recorded.name)
def test_a_recorded_optimum_is_proven(recorded: RecordedNetlist) -> None:
    prove(recorded)


@pytest.mark.slow
@pytest.mark.parametrize("recorded", [r for r in PROVEN if r.name not in QUICK], ids=lambda recorded: recorded.name)
def test_a_recorded_optimum_is_proven_in_seconds(recorded: RecordedNetlist) -> None:
    prove(recorded)


def prove(recorded: RecordedNetlist) -> None:
    grid = Grid.of(recorded.array)
    exact = exact_placement(recorded.netlist, grid, anneal(recorded.netlist, grid), seconds=60)
    exact.placement.verify(grid)
    assert exact.proven and exact.placement.wirelength == exact.bound == recorded.wirelength


def test_equal_searches_have_equal_results() -> None:
    recorded = next(r for r in PROVEN if r.name == "plasticine_gcn_none_layer1_add")
    grid = Grid.of(recorded.array)
    start = anneal(recorded.netlist, grid, effort=0.1, seeds=1)
    first, second = (exact_placement(recorded.netlist, grid, start, seconds=5) for _ in range(2))
    assert first == second and first.placement.wirelength < start.wirelength


@pytest.mark.parametrize("recorded", recorded_netlists(), ids=lambda recorded: recorded.name)
def test_a_bound_is_never_above_a_known_length(recorded: RecordedNetlist) -> None:
    grid = Grid.of(recorded.array)
    bounds = [lower_bound(recorded.netlist, grid, seconds) for seconds in (0.0, 0.3)]
    assert 0 < bounds[0] <= bounds[1] <= recorded.wirelength


def test_a_search_without_time_gives_what_was_known_and_a_bound() -> None:
    recorded = next(r for r in recorded_netlists() if r.name == "onyx_gcn_full_full")
    known = Placement(recorded.netlist, recorded.sites)
    exact = exact_placement(recorded.netlist, Grid.of(recorded.array), known, seconds=0)
    assert exact.placement is known and not exact.proven
    assert exact.gap == pytest.approx(recorded.wirelength / exact.bound - 1) and 0 < exact.bound < recorded.wirelength


def test_netlists_without_nets_and_without_cells_have_no_length() -> None:
    grid = Grid(2, 1, {"A": ((0, 0), (1, 0))})
    for cells in ((), (Cell("a", "A"), Cell("b", "A"))):
        netlist = Netlist(cells, ())
        exact = exact_placement(netlist, grid, anneal(netlist, grid), seconds=1)
        assert (exact.placement.wirelength, exact.bound, exact.proven, exact.gap) == (0, 0, True, 0)


def test_what_does_not_fit_is_refused_and_a_missing_solver_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    recorded = PROVEN[0]
    grid = Grid.of(recorded.array)
    with pytest.raises(ArrayError, match="cells of the kind"):
        lower_bound(recorded.netlist, replace(grid, sites={kind: sites[:1] for kind, sites in grid.sites.items()}))
    monkeypatch.setattr("fuseflow.cp_sat.find_spec", lambda _: None)
    with pytest.raises(UsageError, match="OR-Tools"):
        lower_bound(recorded.netlist, grid)
