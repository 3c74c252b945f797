"""The energies of each DRAM: from the currents of data sheets, from the voltages of standards, and beside what others published."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from fuseflow.energy import load_event_energies
from fuseflow.energy.counts import refreshes_each_period
from fuseflow.energy.event_energies import DramEnergies
from fuseflow.errors import EnergyError
from fuseflow.memory.dram_table import DramTable


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


def test_two_speeds_of_hbm2_have_the_same_energies() -> None:
    assert dram("hbm2-2400-perbank") == dram("hbm2")


def test_a_memory_without_energies_is_an_error() -> None:
    with pytest.raises(EnergyError, match="no energies for the memory `ddr3-1600`") as error:
        load_event_energies().parts("ddr3-1600")
    assert (
        error.value.hint is not None and "hbm2, " in error.value.hint and "section `ddr3-1600` below `dram`" in error.value.hint
    )


TWO_RANKS = DramTable(
    name="hand",
    controller="generic_ddr",
    refresh="all-bank",
    cycle_ps=625,
    ticks_per_clock=1,
    channels=2,
    transaction=64,
    bytes_per_cycle=16,
    levels=(("rank", 2), ("bank_group", 4), ("bank", 4)),
    rows=65536,
    row_bytes=8192,
    read_latency=26,
    read_queue=32,
    write_queue=32,
    distances=(),
    refresh_period=12480,
)
STACK = (("pseudo_channel", 2), ("sid", 2), ("bank_group", 2), ("bank", 8))


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        (TWO_RANKS, 2),
        (replace(TWO_RANKS, refresh="per-bank"), 2 / 32),  # in 32 periods both ranks
        (replace(TWO_RANKS, refresh="none", refresh_period=0), 0),
        (replace(TWO_RANKS, controller="hbm34", ticks_per_clock=2, levels=STACK), 1),
        (
            replace(TWO_RANKS, controller="hbm34", ticks_per_clock=2, levels=STACK, refresh="per-bank"),
            2 / 64,
        ),  # one bank in each half
        (replace(TWO_RANKS, controller="hbm12", levels=STACK, refresh="per-bank"), 1 / 64),
    ],
)
def test_a_period_refreshes_all_ranks_or_a_bank(table: DramTable, expected: float) -> None:
    assert refreshes_each_period(table) == expected
