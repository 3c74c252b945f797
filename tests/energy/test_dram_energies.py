"""The energies of each DRAM: from the currents of data sheets, from the voltages of standards, and beside what others published."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from dram import table_of

import fuseflow as ff
from fuseflow.energy import dram_name, load_event_energies
from fuseflow.energy.counts import refreshes, refreshes_per_cycle
from fuseflow.energy.event_energies import DramEnergies
from fuseflow.errors import EnergyError
from fuseflow.machine.files import read_machine
from fuseflow.machine.machine import Machine
from fuseflow.memory.table_files import preset_names

RECORDED = Path(__file__).parents[1] / "data" / "dram"


@dataclass(frozen=True)
class Rail:
    """The currents of one supply of a device, in mA. `all_open` is the number of banks if `idd3n` has all of them open, and 1 if one is."""

    volts: float
    idd0: float
    idd2n: float
    idd3n: float
    idd4r: float
    idd5: float
    all_open: int = 1

    def activation(self, row_cycle: float, row_open: float) -> float:
        one_open = self.idd2n + (self.idd3n - self.idd2n) / self.all_open
        return self.volts * (self.idd0 * row_cycle - one_open * row_open - self.idd2n * (row_cycle - row_open))

    def read(self, bits: float) -> float:
        return self.volts * (self.idd4r - self.idd3n) / bits

    def refresh(self, cycle: float) -> float:
        return self.volts * (self.idd5 - self.idd3n) * cycle


DDR4 = Rail(1.2, 57, 37, 52, 168, 250, all_open=16)
DDR5 = Rail(1.1, 103, 92, 142, 377, 277, all_open=32)
DDR5_X16 = Rail(1.1, 122, 92, 142, 530, 277, all_open=16)
DDR5_PUMP = Rail(1.8, 8, 6, 7, 7, 28, all_open=32)
LPDDR5 = Rail(1.05, 53, 32.5, 40, 390, 205)
LPDDR5_HIGH = Rail(1.8, 3.8, 1.5, 2.8, 18, 2.8)
GDDR6 = Rail(1.35, 430, 310, 460, 1220, 790)


def machine_at(memory: str) -> Machine:
    """The usual machine with a memory, as a machine file has it."""
    return read_machine(f"name: own\nbase: rda\nmemory: {memory}\n", "own.yaml")


def dram(name: str) -> DramEnergies:
    return load_event_energies().dram[name]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ddr4-3200", 8 * DDR4.activation(46.25, 32.5)),
        ("ddr5-4800", 4 * (DDR5.activation(48, 32) + DDR5_PUMP.activation(48, 32))),
        ("ddr5-6400", 2 * (DDR5_X16.activation(48, 32) + DDR5_PUMP.activation(48, 32))),
        ("lpddr5-6400", LPDDR5.activation(60, 42) + LPDDR5_HIGH.activation(60, 42)),
        ("gddr6-14000", 2 * 1.35 * (1640 - 1220) * 5.7),
    ],
)
def test_rows_take_what_data_sheets_say(name: str, expected: float) -> None:
    assert dram(name).activation.value == pytest.approx(expected, abs=1)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ddr4-3200", DDR4.read(8 * 3.2)),
        ("ddr5-4800", DDR5.read(8 * 4.8)),
        ("ddr5-6400", DDR5_X16.read(16 * 4.8)),
        ("lpddr5-6400", LPDDR5.read(16 * 7.5) + LPDDR5_HIGH.read(16 * 7.5)),
        ("gddr6-14000", GDDR6.read(32 * 14)),
    ],
)
def test_bits_take_what_data_sheets_say(name: str, expected: float) -> None:
    assert dram(name).move.value == pytest.approx(expected, abs=0.005)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ddr4-3200", 1.2**2 / (240 / 7 + 240 / 6) / 2 / 3.2),
        ("ddr5-4800", 1.1**2 / (240 / 7 + 240 / 6) / 2 / 4.8),
        ("ddr5-6400", 1.1**2 / (240 / 7 + 240 / 6) / 2 / 6.4),
        ("lpddr5-6400", 0.5 * (111.9 - 0.6) / (16 * 7.5) / 1000),
        ("gddr6-14000", 1.35**2 / (40 + 60) / 2 / 14),
    ],
)
def test_wires_take_what_their_resistors_take(name: str, expected: float) -> None:
    assert dram(name).io.value == pytest.approx(1000 * expected, abs=0.005)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("hbm2", Rail(1.2, 65, 40, 55, 390, 250).refresh(260)),
        ("ddr4-3200", 8 * DDR4.refresh(350)),
        ("ddr5-4800", 4 * (DDR5.refresh(295) + DDR5_PUMP.refresh(295))),
        ("ddr5-6400", 2 * (DDR5.refresh(295) + DDR5_PUMP.refresh(295))),
        ("lpddr5-6400", LPDDR5.refresh(280)),
        ("gddr6-14000", GDDR6.refresh(120) + 1.8 * (77 - 10) * 120),
        ("hbm3-6400", 1.1 * (250 - 55) * 350),
        ("hbm4-8000", 1.05 * (250 - 55) * 450),
    ],
)
def test_refreshes_take_what_data_sheets_say(name: str, expected: float) -> None:
    assert dram(name).refresh.value == pytest.approx(expected, abs=1)


@pytest.mark.parametrize(("name", "volts", "io_volts"), [("hbm3-6400", 1.1, 1.1), ("hbm4-8000", 1.05, 0.9)])
def test_newer_stacks_take_what_their_voltage_leaves_of_hbm2(name: str, volts: float, io_volts: float) -> None:
    old, new = dram("hbm2"), dram(name)
    share = (volts / 1.2) ** 2
    assert new.activation.value == pytest.approx(share * old.activation.value, abs=0.5)
    assert new.move.value == pytest.approx(share * old.move.value, abs=0.006)
    assert new.ecc.value == pytest.approx(share * old.ecc.value, abs=0.005)
    assert new.io.value == pytest.approx((io_volts / 1.2) ** 2 * old.io.value, abs=0.005)


def test_ddr4_takes_what_a_run_of_dramsim3_took() -> None:
    """20,000 sequential reads of 64 bytes at DDR4_8Gb_x8_3200.ini, of which 60,000 cycles ran. Its energies are in V x mA x cycles of
    0.63 ns."""
    read, refresh = 44_223_300 / 9928, 9_580_030 / 9
    assert dram("ddr4-3200").move.value == pytest.approx(0.63 * read / (8 * 64), rel=0.01)
    assert dram("ddr4-3200").refresh.value == pytest.approx(0.63 * refresh, rel=0.01)


def test_two_speeds_of_hbm2_have_the_same_energies() -> None:
    assert dram("hbm2-2400-perbank") == dram("hbm2")


def test_a_memory_without_energies_is_an_error() -> None:
    with pytest.raises(EnergyError, match="no energies for the memory `ddr3-1600`") as error:
        load_event_energies().parts("ddr3-1600")
    assert (
        error.value.hint is not None and "hbm2, " in error.value.hint and "section `ddr3-1600` below `dram`" in error.value.hint
    )


@pytest.mark.parametrize(
    ("memory", "units", "interval"),
    [
        ("hbm2", 8, 3900),
        ("hbm2-2400-perbank", 8, 32 * 147 * 0.833),
        ("hbm3-6400", 16, 12480 * 0.312),
        ("hbm4-8000", 32, 32 * 488 * 0.25),  # one bank of 32 in both halves of a channel
        ("ddr4-3200", 2 * 2, 7800),
        ("{model: ddr4-3200, ranks: 1}", 2, 7800),
        ("{model: ddr5-4800, channels: 8}", 8, 9375 * 0.416),
        ("lpddr5-6400", 4, 16 * 391 * 1.25),
        ("gddr6-14000", 16, 3333 * 0.57),
        ("{table: {base: ddr5-4800, read_queue: 64}}", 2, 9375 * 0.416),
        ("fixed", 0, 1),
    ],
)
def test_ranks_and_channels_are_refreshed_while_a_machine_runs(memory: str, units: int, interval: float) -> None:
    """`units` are the ranks of all channels, or the channels, each of which is refreshed once in `interval` nanoseconds. A cycle of the
    machine has one."""
    machine = machine_at(memory)
    assert refreshes(machine, 10_000) == pytest.approx(units * 10_000 / interval)


@pytest.mark.parametrize("file", sorted(RECORDED.glob("*/golden_*.npz")), ids=lambda file: f"{file.parent.name}-{file.stem}")
def test_as_many_banks_are_refreshed_as_ramulator_recorded(file: Path) -> None:
    """Each recorded command refreshes a bank, or all banks of a rank, a pseudo channel or a channel."""
    table = table_of(json.loads((file.parent / "config.json").read_text())[file.stem.split("_")[1]])
    recorded, sizes = np.load(file)["c1_edgesA/stat"], dict(table.levels)
    all_banks, one_bank, end = recorded[10], recorded[11], recorded[14]
    commands = sizes.get(table.refresh_scope, 1)
    refreshed = all_banks * table.banks // commands + one_bank
    expected = float(refreshes_per_cycle(table)) * end * table.banks / sizes.get("rank", 1)
    assert refreshed == pytest.approx(expected, abs=2 * table.banks)
    assert refreshed > 400


@pytest.mark.parametrize(
    ("memory", "row", "bit", "refresh"),
    [
        ("ddr4-3200", 8588, 5.44 + 3.03, 4 * 665_280 / 7800),
        ("lpddr5-6400", 1111, 3.29 + 0.46, 4 * 48_510 / (16 * 391 * 1.25)),
        ("hbm4-8000", 696, 1.72 + 0.17 + 0.13, 32 * 92_138 / (32 * 488 * 0.25)),
    ],
)
def test_runs_take_the_energies_of_their_memory(memory: str, row: float, bit: float, refresh: float) -> None:
    """`refresh` is the energy of all refreshes in a nanosecond, which is a cycle of the machine."""
    result = ff.compile("docs/example/spmm.ein", tensors="docs/example/tensors.yaml", machine=memory).run()
    spent = result.energy()
    (region,) = result.regions
    used = region.simulation.memory
    assert used is not None
    rows, bits = sum(channel.misses + channel.conflicts for channel in used.channels), 8 * used.bus_bytes
    assert rows > 0 and bits > 0
    assert spent.of_part("dram") == pytest.approx(row * rows + bit * bits + refresh * region.cycles)
    assert spent.technologies["dram"].startswith(memory.partition("-")[0].upper())


def test_a_table_of_its_own_has_the_energies_of_its_base() -> None:
    assert dram_name(machine_at("{table: {base: ddr5-4800, read_queue: 64}}")) == "ddr5-4800"
    assert set(preset_names()) == set(load_event_energies().dram)
