"""The pace of a memory: what is derived from its table, against the data sheet of HBM2."""

from __future__ import annotations

from typing import Any

import pytest

import fuseflow as ff
from fuseflow.estimate.memory_pace import MemoryPace, memory_pace
from fuseflow.machine.machine import Machine
from fuseflow.memory.settings import DramMemory
from fuseflow.memory.table_files import preset, preset_names


def machine(name: str, **settings: Any) -> Machine:
    return ff.load_machine("rda", {"memory": name, **{f"memory.{key}": value for key, value in settings.items()}})


def test_hbm2_is_as_its_data_sheet_says() -> None:
    pace = memory_pace(ff.load_machine("rda"))
    assert (pace.peak, pace.channels, pace.buses, pace.groups, pace.banks) == (256, 8, 2, 8, 4)
    assert (pace.bus_cycles, pace.group_cycles) == (2 * 2, 2 * 4)  # two transactions of nCCDS and nCCDL
    assert pace.latency == 15 + 16 + 4  # from ACT to RD, to its data, and the second transaction of a line
    assert pace.reopen == 16 + 14 + 14  # nWR, nRP and nRCDRD
    assert pace.refresh is not None and (pace.refresh.period, pace.refresh.cycles) == (3900, 350)
    assert pace.open_bytes == 32 * 1024 and pace.in_order == 228 / 256 and pace.row_cycles == pytest.approx(2.8)


def test_times_are_in_cycles_of_the_machine() -> None:
    slow = memory_pace(ff.load_machine("rda", {"clock_ghz": 0.5}))
    fast = memory_pace(ff.load_machine("rda"))
    assert slow.peak == 2 * fast.peak and slow.group_cycles == fast.group_cycles / 2 and slow.answer == fast.answer / 2


def test_a_memory_without_banks_has_a_latency_and_a_peak() -> None:
    assert memory_pace(machine("fixed", latency=9)).latency == 8
    assert memory_pace(machine("ideal")).refresh is None


@pytest.mark.parametrize("name", preset_names())
def test_the_peak_of_a_preset_is_that_of_its_table(name: str) -> None:
    memory = machine(name).memory
    assert isinstance(memory, DramMemory)
    assert pace_of(name).peak == pytest.approx(memory.dram.peak * memory.dram.channels)  # a machine cycle is a nanosecond


@pytest.mark.parametrize(
    ("name", "group", "groups", "buses", "open_kb"),
    [("ddr4-3200", 8, 8, 1, 256), ("ddr5-4800", 12, 8, 1, 128), ("gddr6-14000", 8, 4, 1, 64), ("hbm3-6400", 16, 16, 2, 64)],
)
def test_other_standards(name: str, group: float, groups: int, buses: int, open_kb: int) -> None:
    """A line is one transaction of DDR, and two of GDDR6 and HBM3, whose cycles are half a clock."""
    pace, memory = pace_of(name), machine(name).memory
    assert isinstance(memory, DramMemory)
    assert pace.group_cycles * float(memory.cycles_in(1.0)) == pytest.approx(group)
    assert (pace.groups, pace.buses, pace.open_bytes) == (groups, buses, open_kb * 1024)


def test_a_refresh_of_one_bank_keeps_the_lines_of_a_bank_group_waiting() -> None:
    """One of the 4 bank groups of each pseudo channel. Its 8 banks with both stacks are refreshed in turn, and one of them is read."""
    one, every, ns = pace_of("hbm3-6400", refresh="per-bank").refresh, pace_of("hbm3-6400", refresh="all-bank").refresh, 0.312
    assert one is not None and (one.cycles, one.period, one.lines) == pytest.approx((640 * ns, 8 * 4 * 390 * ns / 4, 1 / 4))
    assert one.gap == pytest.approx((19 + 52 + 640 + 63) * ns)
    assert every is not None and (every.cycles, every.period) == pytest.approx((1120 * ns, 12480 * ns))
    assert pace_of("hbm3-6400", refresh="none").refresh is None


def test_a_pause_is_shorter_where_a_port_wants_the_lines_that_wait_later() -> None:
    one, every = (pace_of("hbm4-8000", refresh=kind).refresh for kind in ("per-bank", "all-bank"))
    assert one is not None and every is not None
    assert every.pause(0.0, 1e-9) == every.gap and every.pause(100.0, 1.0) == every.gap - 100
    assert one.gap > one.pause(0.0, 100.0) > one.pause(0.0, 1.0) > one.pause(0.0, 0.01) > 0
    assert one.pause(one.gap, 1.0) == one.pause(0.0, 0.0) == 0
    assert one.pause(0.0, 1e-6) == pytest.approx(one.lines * 1e-6 * one.gap**2 / 2, rel=1e-3)


@pytest.mark.parametrize(("name", "refresh"), [(name, table.refresh) for name in preset_names() for table in preset(name).tables])
def test_the_share_of_lines_in_order_is_the_one_that_was_measured_with_this_refresh(name: str, refresh: str) -> None:
    pace, memory = pace_of(name, refresh=refresh), machine(name, refresh=refresh).memory
    assert isinstance(memory, DramMemory)
    measured = dict(preset(name).measured)[memory.dram.refresh]
    assert pace.in_order == measured.sequential / 100 <= 1
    bus = 64 / pace.peak * pace.channels
    random = bus / pace.in_order + pace.row_cycles
    assert random == pytest.approx(100 * bus / measured.random) or memory.model == "hbm2"  # its rows were chosen on runs


def test_a_table_of_ones_own_has_the_shares_of_its_base() -> None:
    own = DramMemory(model="dram", table={"base": "ddr4-3200", "read_queue": 8})
    on = ff.load_machine("rda").model_copy(update={"memory": own})
    assert memory_pace(on).in_order == pace_of("ddr4-3200").in_order and memory_pace(on).window == 8 + 2


def pace_of(name: str, **settings: Any) -> MemoryPace:
    return memory_pace(machine(name, **settings))
