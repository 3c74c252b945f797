"""The times that estimates reckon with follow from the table of a memory."""

from __future__ import annotations

from math import inf

import pytest

from fuseflow.memory.settings import DramMemory
from fuseflow.memory.table_files import preset, preset_names


def test_hbm2_as_its_data_sheet_says() -> None:
    """CCDL 4 and CCDS 2 for each of two transactions; WR, RP and RCD of 16, 14 and 14; RFC 350 of REFI 3,900."""
    times = DramMemory().times
    assert (times.group, times.bus, times.reopen, times.pause, times.period) == (8, 4, 44, 350, 3900)
    assert (times.groups, times.group_banks, times.buses, times.open_bytes, times.idle) == (8, 4, 2, 32 * 1024, 32)


@pytest.mark.parametrize(
    ("name", "group", "groups", "buses", "open_kb"),
    [("ddr4-3200", 8, 8, 1, 256), ("ddr5-4800", 12, 8, 1, 128), ("gddr6-14000", 8, 4, 1, 64), ("hbm3-6400", 16, 16, 2, 64)],
)
def test_other_standards(name: str, group: float, groups: int, buses: int, open_kb: int) -> None:
    """A line is one transaction of DDR, and two of GDDR6 and HBM3, whose cycles are half a clock."""
    times = DramMemory(model=name).times
    assert (times.group, times.groups, times.buses, times.open_bytes) == (group, groups, buses, open_kb * 1024)


def test_a_refresh_of_one_bank_keeps_a_channel_waiting_only_until_the_bank_is_closed() -> None:
    one, every = DramMemory(model="hbm3-6400", refresh="per-bank").times, DramMemory(model="hbm3-6400").times
    assert (one.pause, one.period) == (19 + 52, 390) and (every.pause, every.period) == (1120, 12480)
    never = DramMemory(model="hbm3-6400", refresh="none").times
    assert (never.pause, never.period) == (0, inf)


@pytest.mark.parametrize("name", preset_names())
def test_shares_are_those_that_were_measured(name: str) -> None:
    measured, times = preset(name).measured, DramMemory(model=name).times
    assert measured is not None
    assert (times.sequential, times.random) == (measured.sequential / 100, measured.random / 100)
    assert 0 < times.random < times.sequential <= 1


def test_a_table_of_ones_own_has_the_shares_of_its_base() -> None:
    own = DramMemory(model="dram", table={"base": "ddr4-3200", "read_queue": 8}).times
    assert (own.sequential, own.random) == (
        DramMemory(model="ddr4-3200").times.sequential,
        DramMemory(model="ddr4-3200").times.random,
    )
