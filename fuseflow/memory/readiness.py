"""The earliest cycles in which the next commands of banks may be issued, as earlier commands allow. These cycles never become
earlier while the state of the bank stays the same, so they bound the cycles in which a slot must search for a command again."""

from __future__ import annotations

from fuseflow.memory.channel import ACTS_AT, BANKS, CLOSES_AT, COLUMNS_AT, OF_BANKS, PCS, channel_at
from fuseflow.memory.ports import FOREVER
from fuseflow.native.records import Raise, at_most, get_int, inline, least, set_int

NEAR, FAR = 4, BANKS // PCS
"""The number of banks of a bank group, and of a pseudo channel."""
raise_pc = Raise(FAR, NEAR)


@inline
def columns(channel: int, queue: int) -> int:
    """Return the address of the array with the earliest cycle of a RD (read queue) or a WR (write queue) of each bank's open
    row."""
    return channel + COLUMNS_AT + OF_BANKS * queue


@inline
def postpone(cycles: int, bank: int, cycle: int) -> None:
    """Postpone the next command of a bank to a cycle or later. `cycles` is the address of the earliest cycles of all banks."""
    set_int(cycles, bank, max(get_int(cycles, bank), cycle))


@inline
def postpone_pc(cycles: int, bank: int, own: int, near: int, far: int) -> None:
    """Postpone the next command of a bank to cycle `own` or later, of other banks in its group to `near` or later, and of other
    banks of its pseudo channel to `far` or later. A bound for farther banks also holds for nearer ones."""
    near = max(near, far)
    raise_pc(cycles + 8 * (bank & -FAR), bank & (FAR - 1), max(own, near), near, far)


@inline
def postpone_all(cycles: int, bank: int, cycle: int) -> None:
    """Postpone the next commands of all banks of a bank's pseudo channel to a cycle or later."""
    raise_pc(cycles + 8 * (bank & -FAR), 0, cycle, cycle, cycle)


@inline
def banks_for_row_commands(channel: int, cycle: int) -> int:
    """Return the set of banks to which a row command may be issued in a cycle: PRE if the bank is open, else ACT."""
    opened = channel_at(channel).opened
    ready: int = at_most(channel + CLOSES_AT, cycle) & opened | at_most(channel + ACTS_AT, cycle) & ~opened
    return ready


@inline
def next_row_command(channel: int, banks: int) -> int:
    """Return the first cycle in which a PRE or an ACT may be issued for a bank of a set, or FOREVER if the set is empty."""
    c = channel_at(channel)
    of_banks = min(FOREVER, least(channel + CLOSES_AT, banks & c.opened), least(channel + ACTS_AT, banks & ~c.opened))
    cycle: int = max(of_banks, c.row_bus)
    return cycle


@inline
def row_ready(channel: int, bank: int) -> int:
    """Return the earliest cycle of a row command of a bank: of a PRE if the bank is open, of an ACT if it is closed."""
    c = channel_at(channel)
    of_bank = get_int(channel + (CLOSES_AT if c.opened >> bank & 1 else ACTS_AT), bank)
    ready: int = max(of_bank, c.row_bus)
    return ready
