"""How long a DRAM takes for lines of 64 bytes, as its table says. Estimates reckon with these times."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, prod

from fuseflow.memory.dram_table import CHANNEL, DramTable
from fuseflow.memory.mapping import LINE
from fuseflow.memory.table_files import Measured

WITHOUT_WRITE = 44 / 51
"""The share of the cycles from a write to a RD of another row that remains without the cycles in which its data arrive, as it is in
HBM2."""


@dataclass(frozen=True, slots=True)
class DramTimes:
    """Times in cycles of the memory, and sizes of one channel.

    `group` is for how long a line keeps a bank group occupied, and `bus` a data bus. `reopen` is the time from a write until its
    bank can read another row. `idle` is the time from a read until its data, in a bank that is closed. `pause` is for how long a
    refresh keeps requests waiting, and `period` the time from one to the next. A channel has `groups` bank groups, each of
    `group_banks` banks, and `buses` data buses. `open_bytes` are the bytes of the rows that all banks have open together.
    `sequential` and `random` are the shares of the peak that lines in order and random lines reach.
    """

    group: float
    bus: float
    reopen: float
    idle: int
    pause: float
    period: float
    groups: int
    group_banks: int
    buses: int
    open_bytes: int
    sequential: float
    random: float

    @classmethod
    def of(cls, table: DramTable, measured: Measured) -> DramTimes:
        """Return the times of a table. `measured` are shares of a memory like it."""
        act, transactions, sizes = table.activate, LINE / table.transaction, dict(table.levels)
        near = max(table.least("RD", "RD"), 1)
        return cls(
            group=transactions * near,
            bus=transactions * max(table.least("RD", "RD", CHANNEL, table.bus_scope), 1),
            reopen=WITHOUT_WRITE * (table.least("WR", "PREpb") + table.least("PREpb", act) + table.least(act, "RD")),
            idle=table.idle_reads()[1],
            pause=_pause(table),
            period=table.refresh_period or inf,
            groups=prod(size for name, size in table.levels if name != "bank"),
            group_banks=sizes["bank"],
            buses=sizes.get(table.bus_scope, 1),
            open_bytes=table.banks * table.row_bytes,
            sequential=measured.sequential / 100,
            random=measured.random / 100,
        )


def _pause(table: DramTable) -> float:
    """Return the cycles for which a refresh keeps all requests of a channel waiting: the whole refresh of all banks, or the time to close
    one bank."""
    match table.refresh:
        case "all-bank":
            return max(table.least("REFab", "PREab"), table.least("REFab", table.activate))
        case "per-bank":
            return table.least("RD", "PREpb") + table.least("PREpb", "REFpb")
        case "none":
            return 0
