"""How far ahead a memory looks, as it follows from the constants of the device."""

from __future__ import annotations

from dataclasses import replace

from fuseflow.memory.models import Dram
from fuseflow.memory.table_files import preset


def test_a_slower_device_looks_further_ahead() -> None:
    table = preset("hbm2").table()
    assert Dram(table=table).lookahead == 17
    assert Dram(table=replace(table, read_latency=22)).lookahead == 23
