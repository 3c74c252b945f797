"""How short a placement can be, at least: what is proven of groups of nets, and what follows for all nets together.

A group of nets that hang together has few cells, so its shortest placement is proven in a fraction of a second; other cells and nets can
only make it longer. Groups overlap. The bound is the least sum of lengths of nets that no group contradicts.
"""

from __future__ import annotations

from collections.abc import Sequence

from fuseflow.array.anneal import require_sites
from fuseflow.array.grid import Grid
from fuseflow.array.netlist import Cell, Net, Netlist
from fuseflow.array.shortest import Floor, least_length, net_floors, setup_work, shortest

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
