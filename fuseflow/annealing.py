"""The moves of simulated annealing, as a kernel: cells stand on sites of their kind, and nets between them become short.

Cells, nets, sites and kinds are numbers. The sites of a kind follow each other in the order of rows. A move takes a cell to another site
of its kind, and the cell that stood there, if there was one, to the site of the first. What a move changes is computed from the nets of
both cells alone. The random numbers are of the kernel's own generator and all arithmetic is exact or rounded once, so equal jobs end
equally, compiled or not, on every machine.
"""

from __future__ import annotations

from typing import Any

from fuseflow.native.records import Record, get_int, inline, set_int

JOB = Record(
    "cells columns rows "  # how many there are
    "kind site x y "  # of each cell; x and y are the column and the row of its site
    "nets_from nets_of "  # the nets of cell c: those of `nets_of` from `nets_from[c]` to `nets_from[c + 1]`
    "members_from members "  # the cells of a net, in the same way
    "length fresh seen "  # of each net: its length, that after the move, and the last move that computed it
    "cell_at site_x site_y "  # of each site: its cell, or -1, its column and its row
    "site_before "  # of each kind, row and column: the first of its sites that does not stand before that place in the order of rows
    "row_before kind_rows "  # the rows that have sites of a kind, kind after kind; of each kind and row, the first that is not above it
    "moves reach move "  # how many moves are tried, how far they go, and how many there were before
    "first_state second_state "  # of the generator
    "total least least_site "  # the sum of all lengths, the least that it was, and the site of each cell at that time
    "squares",  # the sum of the squares of all changes
    "temperature",
)
"""What a run of moves has. The other fields are addresses of arrays of 64-bit integers."""
job_at = JOB.at
BITS = 32
"""The number of bits of a random number."""
MASK = (1 << BITS) - 1
FAR, NEAR = 1, 4
"""Of ten moves, `FAR` go any distance, and `NEAR` to a tile beside one that has a net with the cell. They were chosen on the recorded
netlists of `tests/data/array`."""


def try_moves(job: int) -> int:
    """Try `moves` moves, and return the number of those that were accepted."""
    p = job_at(job)
    accepted = 0
    p.squares = 0
    for _ in range(p.moves):
        p.move += 1
        cell = _below(p, p.cells)
        old, new = get_int(p.site, cell), _target(p, cell)
        if new == old:
            continue
        other = get_int(p.cell_at, new)
        _put(p, cell, new)
        if other >= 0:
            _put(p, other, old)
        change = _change(p, cell)
        if other >= 0:
            change += _change(p, other)
        p.squares += change * change
        if change <= 0 or _random(p) < _power_of_e(change / p.temperature) * (MASK + 1):
            accepted += 1
            p.total += change
            set_int(p.cell_at, new, cell)
            set_int(p.cell_at, old, other)
            _keep_lengths(p, cell)
            if other >= 0:
                _keep_lengths(p, other)
            if p.total < p.least:
                _keep_sites(p)
        else:
            _put(p, cell, old)
            if other >= 0:
                _put(p, other, new)
    return accepted


@inline
def _random(p: Any) -> int:
    """Return a number of `BITS` random bits: the sum of a xorshift and a linear congruential generator, whose periods have no divisor in
    common."""
    x: int = p.first_state
    x ^= (x << 13) & MASK
    x ^= x >> 17
    x ^= (x << 5) & MASK
    p.first_state = x
    y: int = (69069 * p.second_state + 12345) & MASK
    p.second_state = y
    return (x + y) & MASK


@inline
def _below(p: Any, limit: int) -> int:
    """Return a random number from 0 to `limit` - 1."""
    return (_random(p) * limit) >> BITS


@inline
def _power_of_e(x: float) -> float:
    """Return about e to the power of -x, for x >= 0, from operations that all machines round alike."""
    y = max(0.0, 1.0 - x / 1024.0)
    for _ in range(10):
        y *= y
    return y


@inline
def _target(p: Any, cell: int) -> int:
    """Return a random site for a cell: in reach of its own site, anywhere, or beside a cell of one of its nets. It may be its own."""
    choice = _below(p, 10)
    if choice >= FAR + NEAR:
        return _site_around(p, cell, cell, p.reach)
    if choice < FAR:
        return _site_around(p, cell, cell, p.columns + p.rows)
    first = get_int(p.nets_from, cell)
    count = get_int(p.nets_from, cell + 1) - first
    if count == 0:
        return _site_around(p, cell, cell, p.reach)
    net = get_int(p.nets_of, first + _below(p, count))
    begin = get_int(p.members_from, net)
    return _site_around(p, cell, get_int(p.members, begin + _below(p, get_int(p.members_from, net + 1) - begin)), 1)


@inline
def _site_around(p: Any, cell: int, center: int, reach: int) -> int:
    """Return a random site for a cell around another cell: of a row of its kind in reach, and there of a column in reach. If it has none,
    return its own."""
    kind, x, y = get_int(p.kind, cell), get_int(p.x, center), get_int(p.y, center)
    rows, sites = kind * (p.rows + 1), kind * (p.rows + 1) * p.columns
    top = get_int(p.row_before, rows + max(0, y - reach))
    bottom = get_int(p.row_before, rows + min(p.rows, y + reach + 1))
    site: int = get_int(p.site, cell)
    if bottom > top:
        row = sites + get_int(p.kind_rows, top + _below(p, bottom - top)) * p.columns
        left = get_int(p.site_before, row + max(0, x - reach))
        right = get_int(p.site_before, row + min(p.columns, x + reach + 1))
        if right > left:
            site = left + _below(p, right - left)
    return site


@inline
def _put(p: Any, cell: int, site: int) -> None:
    set_int(p.site, cell, site)
    set_int(p.x, cell, get_int(p.site_x, site))
    set_int(p.y, cell, get_int(p.site_y, site))


@inline
def _change(p: Any, cell: int) -> int:
    """Return by how much the nets of a cell changed, without those that were computed in this move already."""
    change = 0
    for k in range(get_int(p.nets_from, cell), get_int(p.nets_from, cell + 1)):
        net = get_int(p.nets_of, k)
        if get_int(p.seen, net) != p.move:
            set_int(p.seen, net, p.move)
            length = _length(p, net)
            set_int(p.fresh, net, length)
            change += length - get_int(p.length, net)
    return change


@inline
def _length(p: Any, net: int) -> int:
    """Return half the perimeter of the box around the cells of a net."""
    first = get_int(p.members_from, net)
    cell = get_int(p.members, first)
    left = right = get_int(p.x, cell)
    top = bottom = get_int(p.y, cell)
    for k in range(first + 1, get_int(p.members_from, net + 1)):
        cell = get_int(p.members, k)
        x, y = get_int(p.x, cell), get_int(p.y, cell)
        left, right, top, bottom = min(left, x), max(right, x), min(top, y), max(bottom, y)
    length: int = right - left + bottom - top
    return length


@inline
def _keep_lengths(p: Any, cell: int) -> None:
    for k in range(get_int(p.nets_from, cell), get_int(p.nets_from, cell + 1)):
        net = get_int(p.nets_of, k)
        set_int(p.length, net, get_int(p.fresh, net))


def _keep_sites(p: Any) -> None:
    p.least = p.total
    for cell in range(p.cells):
        set_int(p.least_site, cell, get_int(p.site, cell))
