"""Exact placement: CP-SAT of OR-Tools looks for a shorter placement than one that is known, or proves that there is none.

What takes a solver long is to see that nets that could each be short cannot all be so. Therefore the shortest lengths of small groups of
nets are proven first, then those of larger groups that have these in them, and at last that of all nets. The solver runs on one worker
from a fixed seed, and its limit is counted work instead of time, so equal problems have equal answers: with what is known of groups, one
worker proves in seconds what eight without it take minutes for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from math import ceil
from typing import Any

import numpy as np
import numpy.typing as npt

from fuseflow.array.anneal import require_sites
from fuseflow.array.grid import Grid, Placement, Site
from fuseflow.array.netlist import Cell, Net, Netlist
from fuseflow.cp_sat import require_or_tools

TOLERANCE = 1e-6
"""Bounds on whole lengths are this far from whole numbers at most."""
SETUP = 2e-6
"""The work of stating a problem, for each cell and site."""


@dataclass(frozen=True, slots=True)
class Floor:
    """The sum of the lengths of some nets, by number, is at least `least` in every placement."""

    nets: tuple[int, ...]
    least: int


@dataclass(frozen=True, slots=True)
class Answer:
    """The sites of the shortest placement that CP-SAT knows, if it knows one, a length that none is below, and the work that this took.
    Where none is as short as was asked for, there are no sites, and the bound is one more than that."""

    sites: tuple[Site, ...] | None
    bound: int
    work: float


def shortest(netlist: Netlist, grid: Grid, floors: Sequence[Floor], work: float, most: int | None = None) -> Answer:
    """Return what CP-SAT knows after some work of placements of a length of at most `most` (None: of any). Work is in units of CP-SAT's
    deterministic time, which are about seconds. Raises `UsageError` if OR-Tools cannot be imported."""
    model = _model()
    cells = _cells(model, netlist, grid)  # first, since the solver decides about variables in their order
    ends = [[cells[cell] for cell in sorted(set(net.cells))] for net in netlist.nets]
    spans = [_span(model, [x for x, _ in cells], grid) + _span(model, [y for _, y in cells], grid) for cells in ends]
    lengths = _lengths(model, netlist, grid, floors)
    for length, span in zip(lengths, spans, strict=True):
        model.add(length == span)
    if most is not None:
        model.add(sum(lengths) <= most)
    solver, status = _solved(model, work)
    if status == "INFEASIBLE":
        assert most is not None, "a netlist that fits has a placement"
        return Answer(None, most + 1, _work(solver))
    sites = tuple((solver.value(x), solver.value(y)) for x, y in cells) if status in ("OPTIMAL", "FEASIBLE") else None
    return Answer(sites, _bound(solver, floors), _work(solver))


def least_length(netlist: Netlist, grid: Grid, floors: Sequence[Floor], work: float) -> int:
    """Return a length that no placement is below, as it follows from floors."""
    model = _model()
    _lengths(model, netlist, grid, floors)
    return _bound(_solved(model, work)[0], floors)


def setup_work(netlist: Netlist, grid: Grid) -> float:
    """Return about how much work it is to state the problem of a netlist: its cells have all sites of their kind to choose from."""
    return SETUP * sum(len(grid.sites[cell.kind]) for cell in netlist.cells)


def net_floors(netlist: Netlist, grid: Grid) -> list[Floor]:
    """Return a floor for each net: the least half perimeter of a window of the grid with as many sites of each kind as it has cells."""
    before = {kind: _sites_before(sites, grid) for kind, sites in grid.sites.items()}

    @cache
    def least(needed: tuple[tuple[str, int], ...]) -> int:
        for width, height in _windows(grid):
            fits = np.array(True)
            for kind, count in needed:
                upper, lower = before[kind][: -height - 1], before[kind][height + 1 :]
                inside = lower[:, width + 1 :] - lower[:, : -width - 1] - upper[:, width + 1 :] + upper[:, : -width - 1]
                fits = fits & (inside >= count)
            if fits.any():
                return width + height
        return grid.columns + grid.rows

    kinds = [cell.kind for cell in netlist.cells]
    needed = [tuple(sorted(Counter(kinds[cell] for cell in set(net.cells)).items())) for net in netlist.nets]
    return [Floor((net,), least(counts)) for net, counts in enumerate(needed)]


def _windows(grid: Grid) -> Iterator[tuple[int, int]]:
    """Yield the distances between the outer columns and between the outer rows of windows, by their sum."""
    for length in range(grid.columns + grid.rows - 1):
        for width in range(max(0, length - grid.rows + 1), min(length, grid.columns - 1) + 1):
            yield width, length - width


def _sites_before(sites: Sequence[Site], grid: Grid) -> npt.NDArray[np.int64]:
    """Return for each row and column how many of the sites are above it and to its left."""
    counts = np.zeros((grid.rows + 1, grid.columns + 1), dtype=np.int64)
    for x, y in sites:
        counts[y + 1, x + 1] = 1
    return counts.cumsum(axis=0).cumsum(axis=1)


def _model() -> Any:
    require_or_tools()
    from ortools.sat.python import cp_model  # which imports pandas, and only exact searches need it

    return cp_model.CpModel()


def _lengths(model: Any, netlist: Netlist, grid: Grid, floors: Sequence[Floor]) -> list[Any]:
    """Add a length for each net, and let their sum be least."""
    lengths = [model.new_int_var(0, grid.columns + grid.rows, "") for _ in netlist.nets]
    for floor in floors:
        model.add(sum(lengths[net] for net in floor.nets) >= floor.least)
    model.minimize(sum(lengths))
    return lengths


def _cells(model: Any, netlist: Netlist, grid: Grid) -> list[tuple[Any, Any]]:
    """Add variables for the column and the row of each cell to a model of OR-Tools, and return them. Each cell is on a site of its
    kind, and no two are on the same one."""
    from ortools.sat.python import cp_model

    cells, numbers = [], dict[str, list[Any]]()
    for cell in netlist.cells:
        sites = grid.sites[cell.kind]
        columns, rows = sorted({x for x, _ in sites}), sorted({y for _, y in sites})
        x, y, number = (
            model.new_int_var_from_domain(cp_model.Domain.from_values(values), "")
            for values in (columns, rows, [grid.rows * x + y for x, y in sites])
        )
        model.add(number == grid.rows * x + y)
        if len(sites) < len(columns) * len(rows):
            model.add_allowed_assignments([x, y], sites)
        cells.append((x, y))
        numbers.setdefault(cell.kind, []).append(number)
    for of_kind in numbers.values():
        model.add_all_different(of_kind)
    return cells


def _span(model: Any, ends: Sequence[Any], grid: Grid) -> Any:
    """Return how far the first and the last of some columns, or rows, are apart."""
    size = max(grid.columns, grid.rows)
    span, first, last = (model.new_int_var(0, size - 1, "") for _ in range(3))
    model.add(span == last - first)
    for end in ends:
        model.add(first <= end)
        model.add(end <= last)
    return span


def _solved(model: Any, work: float) -> tuple[Any, str]:
    """Return the solver after some work, and the name of its status."""
    from ortools.sat.python import cp_model

    solver = cp_model.CpSolver()
    solver.parameters.num_workers, solver.parameters.random_seed = 1, 0
    solver.parameters.max_deterministic_time = work
    return solver, str(solver.status_name(solver.solve(model)))


def _bound(solver: Any, floors: Sequence[Floor]) -> int:
    """Return the solver's bound as a whole length. Floors of single nets hold where it had no time for one."""
    alone = sum(floor.least for floor in floors if len(floor.nets) == 1)
    return max(alone, ceil(float(solver.best_objective_bound) - TOLERANCE))


def _work(solver: Any) -> float:
    return float(solver.response_proto.deterministic_time)


SIZES = 6, 8, 10, 12
"""The most cells of groups, smaller groups first: what is known of them makes the proofs for larger ones short."""
GROUP_WORK = 1.0
"""The most work for a group."""


def lower_bound(netlist: Netlist, grid: Grid, seconds: float = 20.0) -> int:
    """Return a length that no placement is below. The limit is work that is counted and takes about `seconds` seconds, so equal netlists
    have equal bounds. Raises `UsageError` if OR-Tools cannot be imported."""
    return least_length(netlist, grid, group_floors(netlist, grid, seconds), GROUP_WORK)


def group_floors(netlist: Netlist, grid: Grid, seconds: float) -> list[Floor]:
    """Return what is proven of the length of each net, and of the sum of those of groups around each net, within a limit of work."""
    require_sites(netlist, grid)
    floors, known = net_floors(netlist, grid), dict[Netlist, int]()
    for nets in _groups(netlist):
        part = _part(netlist, nets)
        if part not in known:
            if seconds <= setup_work(part, grid):
                break
            answer = shortest(part, grid, _inside(floors, nets), min(seconds, GROUP_WORK))
            seconds -= setup_work(part, grid) + answer.work
            known[part] = answer.bound
        floors.append(Floor(nets, known[part]))
    return floors


def _groups(netlist: Netlist) -> dict[tuple[int, ...], None]:
    """Return the groups of several nets, by size."""
    nets_of: list[list[int]] = [[] for _ in netlist.cells]
    for number, net in enumerate(netlist.nets):
        for cell in set(net.cells):
            nets_of[cell].append(number)
    groups = (_group(netlist, nets_of, net, size) for size in SIZES for net in range(len(netlist.nets)))
    return dict.fromkeys(nets for nets in groups if len(nets) > 1)


def _group(netlist: Netlist, nets_of: Sequence[Sequence[int]], net: int, size: int) -> tuple[int, ...]:
    """Return the nets of a connected group of at most `size` cells around a net. It grows by the net that brings the fewest new cells,
    and of these by the first."""
    nets, cells = {net}, set(netlist.nets[net].cells)
    while True:
        near = {number for cell in cells for number in nets_of[cell]} - nets
        wider = [(len(cells.union(netlist.nets[number].cells)), number) for number in near]
        count, nearest = min(wider, default=(size + 1, 0))
        if count > size:
            return tuple(sorted(nets))
        nets.add(nearest)
        cells.update(netlist.nets[nearest].cells)


def _part(netlist: Netlist, nets: Sequence[int]) -> Netlist:
    """Return a netlist of some nets and their cells, which are called by their numbers: that of like groups is the same."""
    cells = dict.fromkeys(cell for net in nets for cell in netlist.nets[net].cells)
    numbers = {cell: number for number, cell in enumerate(cells)}
    parts = [Net(numbers[netlist.nets[net].source], tuple(numbers[sink] for sink in netlist.nets[net].sinks)) for net in nets]
    return Netlist(tuple(Cell(str(number), netlist.cells[cell].kind) for cell, number in numbers.items()), tuple(parts))


def _inside(floors: Sequence[Floor], nets: Sequence[int]) -> list[Floor]:
    """Return the floors of some of these nets, with the numbers that these have in a netlist of their own."""
    numbers = {net: number for number, net in enumerate(nets)}
    return [
        Floor(tuple(numbers[net] for net in floor.nets), floor.least) for floor in floors if numbers.keys() >= set(floor.nets)
    ]


FOR_GROUPS = 0.5
"""The most of the time that is spent for groups of nets."""


@dataclass(frozen=True, slots=True)
class ExactPlacement:
    """A placement, a length that none is below, and whether the placement is proven to be one of the shortest."""

    placement: Placement
    bound: int
    proven: bool

    @property
    def gap(self) -> float:
        """How much longer the placement is than the bound, as a share of the bound: 0 if it is proven."""
        length = self.placement.wirelength
        return length / self.bound - 1 if self.bound else float(length > 0)


def exact_placement(netlist: Netlist, grid: Grid, placement: Placement, seconds: float) -> ExactPlacement:
    """Return a placement that is shorter than a known one, or that one if a search of about `seconds` seconds has none. The limit is work
    that is counted, not time, so equal searches have equal results. Raises `UsageError` if OR-Tools cannot be imported."""
    placement.verify(grid)
    floors = group_floors(netlist, grid, seconds * FOR_GROUPS)
    bound, left = least_length(netlist, grid, floors, GROUP_WORK), seconds * (1 - FOR_GROUPS) - setup_work(netlist, grid)
    if bound < placement.wirelength and left > 0:
        answer = shortest(netlist, grid, floors, left, most=placement.wirelength - 1)
        bound = max(bound, answer.bound)
        if answer.sites is not None:
            placement = Placement(netlist, answer.sites)
    return ExactPlacement(placement, bound, bound == placement.wirelength)
