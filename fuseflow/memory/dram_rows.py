"""The distances of a table, as the numbers that a command adds to its cycle to postpone others.

A row is an array of one number for each bank, the least cycles between two commands, or `NONE` where there is no distance. PREAB
and REF stand at the first bank of what they close or refresh, and belong to all banks of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from fuseflow.memory.channel import ACT, ARRAYS, COMMANDS, NONE, PRE, PREAB, RD, REF, UNIT, WR
from fuseflow.memory.dram_table import CHANNEL, Distance, DramTable
from fuseflow.native.records import LANES, zeros

Shorts = npt.NDArray[np.int16]
NUMBERS = {"RD": RD, "WR": WR, "PREpb": PRE, "ACT": ACT, "ACT1": ACT, "PREab": PREAB, "REFab": REF, "REFpb": REF}
"""The numbers of the commands. A CAS is followed by its RD or WR at once, and an ACT2 postpones nothing."""


@dataclass(frozen=True, slots=True)
class DistanceRows:
    """All that channels need of the distances of a table.

    `rows[first, bank, then]` is the row from a command of a bank to RD, WR, PRE or ACT. `windows[bank]` is the row from the fourth
    last ACT before an ACT of the bank to the next one, in nodes of `1 << window_shift` banks; it is None if five ACTs take longer
    anyway. `units` are the records of what refreshes refresh, in order, and `latest[unit, then, first]` is the row from earlier
    commands to its PREAB or REF. `apart` is that of `Shape`."""

    rows: Shorts
    windows: Shorts | None
    window_shift: int
    units: npt.NDArray[Any]
    latest: Shorts
    apart: bool


@cache
def distance_rows(table: DramTable, bank_words: int) -> DistanceRows:
    """Return the rows of a table. They are padded to words of banks."""
    banks, least, units = table.banks, _least_cycles(table), _units(table)
    for unit in units:
        low, high = int(unit["bank"]), int(unit["bank"]) + _size(unit)
        least[PREAB:, :, low] = least[PREAB:, :, low:high].max(axis=2)
    rows = _padded((COMMANDS, LANES * bank_words, ARRAYS, LANES * bank_words))
    rows[:, :banks, :, :banks] = least[:, :ARRAYS].swapaxes(1, 2)
    latest = _padded((len(units), COMMANDS - ARRAYS, COMMANDS, LANES * bank_words))
    for k, unit in enumerate(units):
        low, high = int(unit["bank"]), int(unit["bank"]) + _size(unit)
        latest[k, ..., :banks] = least[:, PREAB:, :, low:high].max(axis=3).swapaxes(0, 1)
    windows, shift = None, 0
    for distance in table.distances:
        inside = _is_between(table, distance)
        if distance.window > 1 and distance.cycles > distance.window * least[ACT, ACT][inside].min():  # else it never limits
            windows, shift = _padded((banks, LANES * bank_words)), _shift(table, distance.scope)
            windows[:, :banks][inside] = distance.cycles
    apart = bool((least[:PRE, ACT] == NONE).all() and (least[PRE, :ACT] == NONE).all())
    return DistanceRows(rows, windows, shift, units, latest, apart)


def _padded(shape: tuple[int, ...]) -> Shorts:
    array: Shorts = zeros(prod(shape), np.int16).reshape(shape)
    array[:] = NONE
    return array


def _least_cycles(table: DramTable) -> Shorts:
    """Return the least cycles from command to command and from bank to bank."""
    least = np.full((COMMANDS, COMMANDS, table.banks, table.banks), NONE, np.int16)
    for distance in table.distances:
        between = np.where(_is_between(table, distance), distance.cycles, NONE).astype(np.int16)
        pairs = [(first, then) for first in distance.first for then in distance.then if {first, then} <= NUMBERS.keys()]
        for first, then in pairs if distance.window == 1 else ():
            pair = least[NUMBERS[first], NUMBERS[then]]
            np.maximum(pair, between, out=pair)
    return least


def _is_between(table: DramTable, distance: Distance) -> npt.NDArray[np.bool_]:
    """Return whether a distance holds from each bank to each bank."""
    banks = np.arange(table.banks)
    node = banks >> _shift(table, distance.scope)
    same: npt.NDArray[np.bool_] = node[:, None] == node
    if distance.siblings:
        names = (CHANNEL, *(name for name, _ in table.levels))
        parent = banks >> _shift(table, names[names.index(distance.scope) - 1])
        same = (parent[:, None] == parent) & ~same
    return same


def _shift(table: DramTable, scope: str) -> int:
    """Return the number of bits of a bank's number below the number of its node."""
    names = (CHANNEL, *(name for name, _ in table.levels))
    return prod(size for _, size in table.levels[names.index(scope) :]).bit_length() - 1


def bus_shift(table: DramTable) -> int:
    """Return the number of bits of a bank's number below the number of its data bus."""
    return _shift(table, table.bus_scope)


def _units(table: DramTable) -> npt.NDArray[Any]:
    """Return the records of what the refresh commands refresh, in order. It is nodes, which are all due at once, or single banks. In
    HBM3 and HBM4 the same bank of each pseudo channel is due, one cycle after the other."""
    banks, period = table.banks, table.refresh_period
    alone = table.refresh == "per-bank"  # all banks may be one bank, too
    size = 1 if alone else 1 << _shift(table, table.refresh_scope)
    order, gaps = np.arange(0, banks, size), [0] * (banks // size - 1) + [period]
    if alone:
        gaps = [period] * banks
        if table.controller == "hbm34":
            outer = table.levels[0][1]
            order, gaps = order.reshape(outer, -1).T.ravel(), ([1] * (outer - 1) + [period - outer + 1]) * (banks // outer)
    units = UNIT.array(len(order))
    units["bank"], units["alone"], units["gap"] = order, alone, gaps
    for bank in range(banks):
        units[f"banks_{bank // LANES}"][order // size == bank // size] |= 1 << bank % LANES
    return units


def _size(unit: Any) -> int:
    """Return the number of banks of a unit."""
    return sum(int(unit[f"banks_{w}"]).bit_count() for w in range(4))
