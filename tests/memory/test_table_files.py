"""Presets are what Ramulator's recorded parameters say, and every kind of mistake in a table is an error that names its place."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from dram import table_of

from fuseflow.errors import MachineError
from fuseflow.memory.dram_table import DramTable, RefreshKind, faults
from fuseflow.memory.table_files import TableError, TableFile, preset, preset_names, read_table

DATA = Path(__file__).parents[1] / "data" / "dram"
RECORDED: list[tuple[str, RefreshKind, str, str]] = [
    ("ddr4-3200", "all-bank", "ddr4", "A"),
    ("ddr5-4800", "all-bank", "ddr5", "A"),
    ("ddr5-6400", "all-bank", "ddr5", "B"),
    ("gddr6-14000", "all-bank", "gddr6", "A"),
    ("lpddr5-6400", "per-bank", "lpddr5", "A"),
    ("hbm3-6400", "all-bank", "hbm3", "A"),
    ("hbm3-6400", "per-bank", "hbm3", "B"),
    ("hbm4-8000", "per-bank", "hbm4", "A"),
    ("hbm2-2400-perbank", "per-bank", "hbm2", "B"),
]
OTHER_CHIP: list[tuple[str, str, str, int]] = [("lpddr5-6400", "lpddr5", "A", 0), ("hbm4-8000", "hbm4", "A", -2)]
"""Presets whose all-bank refresh is recorded for another number of bits: its distances follow from nRFC, and from what an ACT takes
longer."""


def recorded(standard: str, config: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((DATA / standard / "config.json").read_text())[config]
    return found


def distances(table: DramTable) -> dict[tuple[Any, ...], int]:
    """The distances of a table, of each pair of commands alone. Of two for the same pair the longer one counts."""
    found: dict[tuple[Any, ...], int] = {}
    for d in table.distances:
        for pair in ((first, then) for first in d.first for then in d.then):
            key = (d.scope, d.siblings, d.window, *pair)
            found[key] = max(found.get(key, 0), d.cycles)
    return found


@pytest.mark.parametrize(("name", "refresh", "standard", "config"), RECORDED)
def test_a_preset_is_what_ramulator_has(name: str, refresh: RefreshKind, standard: str, config: str) -> None:
    found, wanted = preset(name).table(refresh), table_of(recorded(standard, config), name)
    assert replace(found, distances=()) == replace(wanted, distances=())
    assert distances(found) == distances(wanted)


def test_the_usual_refresh_is_that_of_the_first_configuration() -> None:
    assert preset("hbm3-6400").table().refresh == "all-bank"
    assert preset("lpddr5-6400").table().refresh == preset("hbm4-8000").table().refresh == "per-bank"


@pytest.mark.parametrize(("name", "standard", "config", "less"), OTHER_CHIP)
def test_an_all_bank_refresh_takes_what_the_raw_timing_says(name: str, standard: str, config: str, less: int) -> None:
    table, raw = preset(name).table("all-bank"), recorded(standard, config)["raw"]
    assert table.refresh_period == raw["nREFI"]
    assert table.least("REFab", table.activate) == raw["nRFC"] + less
    other = table_of(recorded(standard, "B"))
    changed = {key for key, cycles in distances(table).items() if distances(other).get(key) != cycles}
    assert distances(table).keys() == distances(other).keys() and {key[3] for key in changed} == {"REFab"}


def test_hbm2_has_the_timing_of_its_data_sheet() -> None:
    """HBM2_2000Mbps, by the formulas that the recorded HBM2_2400Mbps follows."""
    slow, fast = preset("hbm2").table(), preset("hbm2-2400-perbank").table()
    assert (slow.cycle_ps, slow.read_latency, slow.refresh_period, slow.peak) == (1000, 14 + 2, 3900, 32.0)
    sizes = ("controller", "channels", "transaction", "bytes_per_cycle", "levels", "rows", "row_bytes", "read_queue")
    assert all(getattr(slow, size) == getattr(fast, size) for size in sizes)
    nRCDRD, nRCDWR, nRP, nRAS, nRC, nWR, nRTP = 14, 12, 14, 34, 48, 16, 5
    of_bank = {"ACT": nRC, "RD": nRCDRD + 1, "WR": nRCDWR + 1, "PREpb": nRAS + 1}
    assert {then: slow.least("ACT", then, "bank") for then in of_bank} == of_bank
    assert slow.least("PREpb", "ACT") == nRP - 1 and slow.least("RD", "PREpb") == nRTP
    assert slow.least("WR", "PREpb") == 5 + 2 + nWR
    assert slow.least("REFab", "ACT") == 350 - 1 and slow.least("ACT", "REFab") == nRC + 1


IDLE = {
    "ddr4-3200": (27, 49, 71),
    "ddr5-4800": (43, 77, 110),
    "ddr5-6400": (55, 101, 146),
    "gddr6-14000": (27, 54, 81),
    "hbm2": (17, 32, 45),
    "hbm2-2400-perbank": (20, 38, 54),
    "hbm3-6400": (45, 109, 159),
    "hbm4-8000": (45, 125, 189),
    "lpddr5-6400": (21, 36, 51),
}
"""The cycles of a read of an idle channel of Ramulator: of an open row, a closed bank, and a bank with another row open."""


@pytest.mark.parametrize("name", preset_names())
def test_reads_of_an_idle_channel(name: str) -> None:
    assert preset(name).table().idle_reads() == IDLE[name]


@pytest.mark.parametrize("name", preset_names())
def test_every_preset_says_what_it_is(name: str) -> None:
    tables = preset(name).tables
    assert [table.refresh for table in tables][-1] == "none" and len(tables) >= 2
    assert all(table.name == name and not list(faults(table)) for table in tables)


def test_an_unknown_preset_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(MachineError, match=r"no memory `ddr5-480`\n  hint: did you mean `ddr5-4800`\?"):
        preset("ddr5-480")


def test_a_refresh_that_a_preset_does_not_have() -> None:
    with pytest.raises(MachineError, match="`ddr4-3200` has no refresh `per-bank`\n  hint: it has all-bank, none"):
        preset("ddr4-3200").table("per-bank")


TEXT = """\
controller: generic_ddr
cycle_ps: 625
channels: 2
transaction: 64
bytes_per_cycle: 16
levels: {rank: 2, bank_group: 4, bank: 4}
rows: 65536
row_bytes: 8192
read_latency: 26
read_queue: 32
write_queue: 32
distances:
  channel: {RD-RD/WR: 4, WR-WR: 4}
  rank: {RD-WR: 12, WR-RD: 24, ACT-ACT: 4, FAW: 34}
  other_rank: {RD-RD/WR: 6}
  bank: {ACT-ACT: 74, ACT-RD/WR: 22, ACT-PREpb: 52, PREpb-ACT: 22, RD-PREpb: 12, WR-PREpb: 44}
refresh:
  all-bank:
    period: 12480
    rank: {ACT/RD/WR-PREab: 52, PREab-ACT/REFab: 22, PREpb-REFab: 22, ACT-REFab: 74, REFab-ACT: 576}
"""


def own(text: str) -> TableFile:
    return read_table(text, "own.yaml", "own")


def test_a_table_of_ones_own() -> None:
    table = own(TEXT).table()
    assert (table.name, table.refresh, table.refresh_period, table.banks) == ("own", "all-bank", 12480, 32)
    assert table.least("REFab", "ACT") == 576 and table.least("RD", "WR", "rank") == 12
    assert own(TEXT).table("none").refresh_period == 0 and "REFab" not in own(TEXT).table("none").commands()


def test_a_preset_is_the_base_of_a_table() -> None:
    found = own("base: ddr5-4800\ndistances: {bank_group: {WR-WR: 12}}\nread_queue: 64\n").table()
    base = preset("ddr5-4800").table()
    changed = {key for key, cycles in distances(found).items() if distances(base)[key] != cycles}
    assert changed == {("bank_group", False, 1, "WR", "WR")}
    assert replace(found, name=base.name, read_queue=32, distances=()) == replace(base, distances=())


def test_all_distances_that_are_missing_are_named_at_once() -> None:
    """Who writes a table from a data sheet need not run it once for each of them."""
    with pytest.raises(MachineError) as caught:
        own(TEXT.replace("ACT-RD/WR: 22, ", "").replace("WR-RD: 24, ", ""))
    assert caught.value.message == "`distances`: there is no distance from ACT to RD in a bank"
    assert caught.value.hint == "write `bank: {ACT-RD: CYCLES, ACT-WR: CYCLES}`, `rank: {WR-RD: CYCLES}`"


MISTAKES = [
    ("cycle_ps: 625", "cycle_p: 625", "2:1: error[machine]: `cycle_p`: unknown key\n  hint: did you mean `cycle_ps`?"),
    (
        "cycle_ps: 625\n",
        "",
        "1:1: error[machine]: the key `cycle_ps` is missing\n  hint: or name a preset as the `base`: ddr4-3200",
    ),
    ("cycle_ps: 625", "cycle_ps: 0.5", "2:1: error[machine]: `cycle_ps`: must be a whole number, 0 to 2,147,483,647, not `0.5`"),
    ("cycle_ps: 625", "cycle_ps: 0", "2:1: error[machine]: `cycle_ps`: must be a whole number, 1 to 100,000, not 0"),
    ("rows: 65536", "rows: true", "7:1: error[machine]: `rows`: must be a whole number"),
    ("rows: 65536", "rows: 65000", "7:1: error[machine]: `rows`: must be a power of two, up to 1,048,576, not 65000"),
    ("channels: 2", "channels: 3", "3:1: error[machine]: `channels`: must be a power of two, up to 32, not 3"),
    (
        "generic_ddr",
        "generic-ddr",
        "1:1: error[machine]: `controller`: there is no controller `generic-ddr`\n  hint: did you mean",
    ),
    ("transaction: 64", "transaction: 128", "4:1: error[machine]: `transaction`: a transaction has 32 or 64 bytes, not 128"),
    ("bank: 4}", "banks: 4}", "6:34: error[machine]: `levels.banks`: unknown key\n  hint: did you mean `bank`?"),
    (
        "{rank: 2, bank_group: 4, bank: 4}",
        "{bank_group: 4, rank: 2, bank: 4}",
        "6:1: error[machine]: `levels`: levels go from the outermost to `bank`",
    ),
    ("bank: 4}", "bank: 5}", "6:1: error[machine]: `levels`: `bank` has 5 nodes, which is no power of two"),
    ("bank: 4}", "bank: 64}", "6:1: error[machine]: `levels`: a channel has 512 banks, and 128 at most"),
    ("rows: 65536", "rows: 1048576", "7:1: error[machine]: `rows`: a channel has 256 GB, and 32 GB at most"),
    ("read_queue: 32", "read_queue: 129", "10:1: error[machine]: `read_queue`: must be a whole number, 1 to 128, not 129"),
    (
        "ACT-RD/WR: 22, ",
        "ACT-WR: 22, ",
        "12:1: error[machine]: `distances`: there is no distance from ACT to RD in a bank\n  hint: ",
    ),
    ("WR-RD: 24, ", "", "12:1: error[machine]: `distances`: there is no distance from WR to RD in a rank"),
    (
        "ACT-RD/WR: 22",
        "ACT-RD/WX: 22",
        "16:23: error[machine]: `distances.bank.ACT-RD/WX`: there is no command `WX` here\n  hint: ",
    ),
    ("FAW: 34", "FAW: -1", "14:44: error[machine]: `distances.rank.FAW`: must be a whole number"),
    (
        "FAW: 34",
        "FAW: 99999",
        "14:44: error[machine]: `distances.rank.FAW`: must be a whole number of cycles, 0 to 16,384, not 99999",
    ),
    (
        "FAW: 34",
        "ACT: 34",
        "14:44: error[machine]: `distances.rank.ACT`: is no distance\n  hint: write FIRST-THEN, such as `ACT-RD`",
    ),
    ("other_rank", "other_rang", "15:3: error[machine]: `distances.other_rang`: unknown key\n  hint: did you mean `other_rank`?"),
    ("other_rank", "sid", "15:3: error[machine]: `distances.sid`: unknown key"),
    (
        "{RD-RD/WR: 4, WR-WR: 4}",
        "{RD-RD/WR: 2, WR-WR: 4}",
        "13:13: error[machine]: `distances.channel.RD-RD/WR`: RD after 2 cycles, but 64 bytes take 4 on the data bus\n  hint: RD-RD is at",
    ),
    ("    period: 12480\n", "", "18:3: error[machine]: `refresh.all-bank`: the key `period` is missing"),
    (
        "REFab-ACT: 576",
        "REFab-ACT: 0",
        "18:3: error[machine]: `refresh.all-bank`: there is no distance from REFab to ACT in a rank",
    ),
    (
        "period: 12480",
        "period: 500",
        "19:5: error[machine]: `refresh.all-bank.period`: a refresh takes 576 cycles, but the next one of the same banks is due after 500",
    ),
    ("period: 12480", "period: 0", "19:5: error[machine]: `refresh.all-bank.period`: must be a whole number of cycles, 1 to"),
    ("all-bank:", "all-banks:", "18:3: error[machine]: `refresh.all-banks`: unknown key\n  hint: did you mean `all-bank`?"),
    (
        "generic_ddr",
        "lpddr5",
        "1:1: error[machine]: `lpddr5`: the controller `lpddr5` needs it\n  hint: write `lpddr5: {activation: 8",
    ),
    (
        "read_queue: 32",
        "read_queue: 32\nlpddr5: {activation: 8}",
        "11:1: error[machine]: `lpddr5`: the key `data_clock` is missing",
    ),
    (
        "read_queue: 32",
        "read_queue: 32\nlpddr5: {activation: 8, data_clock: always}",
        "11:1: error[machine]: `lpddr5`: the controller `generic_ddr` has no such part",
    ),
    (
        "read_queue: 32",
        "read_queue: 32\ncommand_cycles: {ACT: 9}",
        "11:1: error[machine]: `command_cycles`: `ACT` takes 2 to 4 cycles, if it is named here, not 9",
    ),
    (
        "read_queue: 32",
        "read_queue: 32\nmeasured: {none: {sequential: 5, strided: 101, random: 3}}",
        "11:34: error[machine]: `measured.none.strided`: must be a share of the peak in percent, not `101`",
    ),
    (
        "read_queue: 32",
        "read_queue: 32\nmeasured: {sequential: 5, strided: 10, random: 3}",
        "11:12: error[machine]: `measured.sequential`: unknown key\n  hint: known: `all-bank`, `none`, `per-bank`",
    ),
    (
        "read_queue: 32",
        "read_queue: 32\nrow_cycles: -1",
        "11:1: error[machine]: `row_cycles`: must be a number of cycles, 0 to 16,384, not `-1`",
    ),
    (
        "controller: generic_ddr",
        "base: ddr9",
        "1:1: error[machine]: `base`: there is no memory `ddr9`\n  hint: known: `ddr4-3200`",
    ),
    (TEXT, "[1]", "1:1: error[machine]: must be a mapping"),
]


@pytest.mark.parametrize(("right", "wrong", "message"), MISTAKES)
def test_a_mistake_is_named_where_it_stands(right: str, wrong: str, message: str) -> None:
    assert right in TEXT
    with pytest.raises(MachineError) as caught:
        own(TEXT.replace(right, wrong, 1))
    assert str(caught.value).startswith(f"own.yaml:{message}")
    assert isinstance(caught.value, TableError)
