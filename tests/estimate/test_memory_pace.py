"""The pace of a memory: what is derived from its table, against the data sheet of HBM2."""

from __future__ import annotations

from typing import Any

import pytest

import fuseflow as ff
from fuseflow.estimate.memory_pace import MemoryPace, memory_pace
from fuseflow.machine.machine import Machine
from fuseflow.memory.settings import DramMemory
from fuseflow.memory.table_files import preset_names


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


def test_only_refreshes_of_all_banks_are_pauses() -> None:
    assert pace_of("hbm3-6400").refresh is not None
    assert pace_of("hbm3-6400", refresh="per-bank").refresh is None and pace_of("hbm3-6400", refresh="none").refresh is None


def pace_of(name: str, **settings: Any) -> MemoryPace:
    return memory_pace(machine(name, **settings))
