"""When the next command of a bank may be issued, as far as the commands before it allow. These cycles never become earlier while the state
of the bank stays the same, so they are bounds for the cycles in which a slot has to look for a command again."""

from __future__ import annotations

from fuseflow.sim.memory.channel import (
    BANK,
    BANK_SIZE,
    BANKS_AT,
    GROUP,
    GROUP_SIZE,
    GROUPS_AT,
    PC,
    PC_SIZE,
    PCS_AT,
    bank_of,
    channel_at,
    group_of,
    pc_of,
    timing_at,
)
from fuseflow.sim.native.records import get_int, inline

OF_BANK, OF_GROUP, OF_PC = BANKS_AT + BANK.offset("read"), GROUPS_AT + GROUP.offset("read"), PCS_AT + PC.offset("read")


@inline
def column_ready(channel: int, bank: int, write: int) -> int:
    """Return the earliest cycle of a RD (or, with `write`, of a WR) of the bank's open row."""
    of_bank: int = get_int(channel + OF_BANK + BANK_SIZE * bank, write)
    of_group: int = get_int(channel + OF_GROUP + GROUP_SIZE * (bank >> 2), write)
    of_pc: int = get_int(channel + OF_PC + PC_SIZE * (bank >> 4), write)
    return max(of_bank, of_group, of_pc)


@inline
def row_opened(channel: int, bank: int, write: int) -> int:
    """Return the earliest cycle of a RD (or, with `write`, of a WR) as far as the ACT of the bank's open row allows."""
    of_bank: int = get_int(channel + OF_BANK + BANK_SIZE * bank, write)
    return of_bank


@inline
def opened_later(channel: int) -> int:
    """Return how many cycles after `row_opened` of a row that of one with a later ACT is at least, if one is read and the other written.
    A negative number is the cycles that it may be before."""
    after = timing_at(channel_at(channel).timing)
    cycles: int = after.act_on_bus - max(after.act_to_read - after.act_to_write, after.act_to_write - after.act_to_read)
    return cycles


@inline
def row_ready(channel: int, bank: int) -> int:
    """Return the earliest cycle of a PRE of a bank that is open, or of an ACT of one that is closed."""
    c, b = channel_at(channel), bank_of(channel, bank)
    of_bank = b.close if b.open >= 0 else max(b.act, group_of(channel, bank).act, pc_of(channel, bank).act)
    ready: int = max(of_bank, c.row_bus)
    return ready
