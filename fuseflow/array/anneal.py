"""Simulated annealing: cells move between the sites of their kind while a temperature falls, and the nets become short.

Cooling and the distance of moves are those of VPR (Betz and Rose, 1997): the temperature falls slowly while about half of the moves are
accepted, and moves become shorter so that 44 % are. One move in ten has no limit, since ports on two sides are far apart, and four in ten
go beside a cell of one of the cell's nets; a run gives the shortest placement that it came by. With these two, runs are 2 % longer than the
best known placements on average, and without them 7 %. A single run may be much longer, so there are several, each from a seed of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, chain
from math import sqrt

import numpy as np
import numpy.typing as npt

from fuseflow.annealing import JOB, MASK, try_moves
from fuseflow.array.grid import Grid, Placement
from fuseflow.array.netlist import Netlist
from fuseflow.errors import ArrayError
from fuseflow.native.kernel_library import library
from fuseflow.native.records import address
from fuseflow.native.signatures import KERNEL

EFFORT, SEEDS = 10.0, 4
"""What is spent when nobody says so."""
MOVES, EXPONENT = 10, 1.33
"""There are `MOVES` moves at a temperature, times the cells to the power `EXPONENT`, for each unit of effort."""
HOTTEST, COLDEST = 1e30, 1e-3
"""At the hottest temperature every move is accepted, and at the coldest none that makes nets longer, since lengths are whole."""
STEP = 0x9E3779B1
"""Seeds become states of the generator that are far apart by this odd number of 32 bits."""

Words = npt.NDArray[np.int64]


def anneal(netlist: Netlist, grid: Grid, effort: float = EFFORT, seeds: int = SEEDS) -> Placement:
    """Return the shortest placement of `seeds` runs; of these that with the least longest way from a source to a sink, and then the first.
    Raises `ArrayError` if the grid has too few sites of a kind."""
    placements = [anneal_seed(netlist, grid, effort, seed) for seed in range(max(1, seeds))]
    return min(placements, key=lambda placement: (placement.wirelength, placement.longest))


def anneal_seed(netlist: Netlist, grid: Grid, effort: float, seed: int) -> Placement:
    """Return the placement of one run. Raises `ArrayError` if the grid has too few sites of a kind."""
    require_sites(netlist, grid)
    return _Run(netlist, grid, seed).placement(effort)


def require_sites(netlist: Netlist, grid: Grid) -> None:
    """Raise `ArrayError` if a netlist has more cells of a kind than the grid has sites."""
    for kind, count in Counter(cell.kind for cell in netlist.cells).items():
        available = len(grid.sites.get(kind, ()))
        if count > available:
            raise ArrayError(f"the netlist has {count} cells of the kind {kind}, and the grid has {available} sites for them")


class _Run:
    """A run from one seed: the record of the kernel, and the arrays whose addresses it has."""

    def __init__(self, netlist: Netlist, grid: Grid, seed: int) -> None:
        self.netlist, self.sites = netlist, tuple(chain.from_iterable(grid.sites.values()))
        lists = {**_net_lists(netlist), **_site_lists(netlist, grid)}
        self.arrays = {name: np.array(values, dtype=np.int64) for name, values in lists.items()}
        start = self._placement()
        self.arrays["length"][:] = [start.half_perimeter(net) for net in netlist.nets]
        self.record = JOB.array(1)
        self.job = self.record[0]
        for name, array in self.arrays.items():
            self.job[name] = address(array)
        self.job["cells"], self.job["columns"], self.job["rows"] = len(netlist.cells), grid.columns, grid.rows
        self.job["total"] = self.job["least"] = start.wirelength
        self.job["first_state"], self.job["second_state"] = 1 + seed * STEP % MASK, seed
        self.kernel = library().compiled(try_moves, KERNEL)

    def placement(self, effort: float) -> Placement:
        """Return the shortest placement of the run."""
        cells, nets = len(self.netlist.cells), len(self.netlist.nets)
        if not cells or not nets:
            return self._placement()
        farthest = max(int(self.job["columns"]), int(self.job["rows"]))
        moves = max(1, round(effort * MOVES * cells**EXPONENT))
        self._tried(MOVES * cells, HOTTEST, farthest)
        temperature, reach = 20 * sqrt(self.job["squares"] / (MOVES * cells)), float(farthest)
        while temperature > max(COLDEST, 0.005 * int(self.job["total"]) / nets):
            accepted = self._tried(moves, temperature, round(reach)) / moves
            temperature *= _cooling(accepted, reach)
            reach = min(max(1.0, reach * (1 - 0.44 + accepted)), float(farthest))
        self._tried(moves, COLDEST, 1)
        return self._placement()

    def _tried(self, moves: int, temperature: float, reach: int) -> int:
        """Try moves, and return how many were accepted."""
        self.job["moves"], self.job["temperature"], self.job["reach"] = moves, temperature, reach
        return int(self.kernel(address(self.record)))

    def _placement(self) -> Placement:
        return Placement(self.netlist, tuple(self.sites[site] for site in self.arrays["least_site"].tolist()))


def _cooling(accepted: float, reach: float) -> float:
    """Return the factor for the next temperature, from the share of moves that were accepted."""
    if accepted > 0.96:
        return 0.5
    if accepted > 0.8:
        return 0.9
    return 0.95 if accepted > 0.15 or reach > 1 else 0.8


def _net_lists(netlist: Netlist) -> Mapping[str, Sequence[int] | Words]:
    """Return the arrays of the kernel that say which cells and nets belong together."""
    members = [sorted(set(net.cells)) for net in netlist.nets]
    nets_of: list[list[int]] = [[] for _ in netlist.cells]
    for number, cells in enumerate(members):
        for cell in cells:
            nets_of[cell].append(number)
    none = [0] * len(members)
    return {
        "nets_of": _joined(nets_of),
        "nets_from": _starts(nets_of),
        "members": _joined(members),
        "members_from": _starts(members),
        "length": none,
        "fresh": none,
        "seen": none,
    }


def _site_lists(netlist: Netlist, grid: Grid) -> Mapping[str, Sequence[int] | Words]:
    """Return the arrays of the kernel that say where sites are. Cells stand on the first sites of their kind."""
    sites = np.array([(x, y) for of_kind in grid.sites.values() for x, y in of_kind], dtype=np.int64)
    numbers = {kind: number for number, kind in enumerate(grid.sites)}
    kind = [numbers[cell.kind] for cell in netlist.cells]
    free = _starts(grid.sites.values())
    cell_at, site = np.full(len(sites), -1, dtype=np.int64), np.zeros(len(kind), dtype=np.int64)
    for cell, number in enumerate(kind):
        site[cell], cell_at[free[number]] = free[number], cell
        free[number] += 1
    counts = np.zeros((len(numbers), grid.rows + 1, grid.columns), dtype=np.int64)
    for number, of_kind in enumerate(grid.sites.values()):
        for x, y in of_kind:
            counts[number, y, x] = 1
    used = counts.max(axis=2)
    return {
        "kind": kind,
        "site": site,
        "least_site": site,
        "x": sites[site, 0],
        "y": sites[site, 1],
        "cell_at": cell_at,
        "site_x": sites[:, 0],
        "site_y": sites[:, 1],
        "site_before": np.cumsum(counts) - counts.ravel(),
        "row_before": np.cumsum(used) - used.ravel(),
        "kind_rows": np.nonzero(used)[1],
    }


def _joined(lists: Sequence[Sequence[int]]) -> list[int]:
    return list(chain.from_iterable(lists))


def _starts(lists: Iterable[Sequence[object]]) -> list[int]:
    """Return where each list starts in all of them together, and where they end."""
    return list(accumulate(map(len, lists), initial=0))
