"""Address mappings, bit by bit, that no two addresses share a place, and where Ramulator opened rows."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from dram import table_of

from fuseflow.errors import MachineError
from fuseflow.memory.dram_table import DramTable
from fuseflow.memory.mapping import (
    BANK_BITS,
    CHANNEL_COUNTS,
    DEFAULT_MAPPING,
    DIGIT,
    DIGIT_BITS,
    MAPPINGS,
    PLACE_BITS,
    decode_addresses,
    field_widths,
    keeps_addresses_apart,
    own_mapping,
    place_tables,
)
from fuseflow.memory.table_files import preset, preset_names

DATA = Path(__file__).parents[1] / "data" / "dram"
HBM2 = preset("hbm2").table()
# Of HBM2 with 8 channels: of each field the address bits from its lowest on, then the bits that are xor-ed with them
FIELDS = {
    "RoBaRaCoCh": {
        "column": [5, 9, 10, 11, 12], "channel": [6, 7, 8], "pc": [13], "group": [14, 15], "bank": [16, 17],
        "row": list(range(18, 34)),
    },
    "MOP4CLXOR": {
        "column": [5, 9, 15, 16, 17], "channel": [6, 7, 8], "pc": [(10, 5)], "group": [(11, 9), (12, 15)],
        "bank": [(13, 16), (14, 17)], "row": list(range(18, 34)),
    },
    "BGint_xor": {
        "column": [5, 12, 13, 14, 15], "channel": [(6, 23), (7, 24), (8, 25)], "pc": [(9, 22)], "group": [(10, 20), (11, 21)],
        "bank": [(16, 18), (17, 19)], "row": list(range(18, 34)),
    },
}  # fmt: skip


def bit_by_bit(name: str, byte: int) -> tuple[int, int, int]:
    def value(field: str) -> int:
        found = 0
        for k, bits in enumerate(FIELDS[name][field]):
            for bit in bits if isinstance(bits, tuple) else (bits,):
                found ^= ((byte >> bit) & 1) << k
        return found

    return value("channel"), value("pc") * 16 + value("group") * 4 + value("bank"), value("row")


def random_addresses(table: DramTable, channels: int) -> np.ndarray:
    return np.random.default_rng(channels).integers(0, channels * table.channel_bytes, 2000)


@pytest.mark.parametrize("name", MAPPINGS)
def test_bit_by_bit_with_8_channels_of_hbm2(name: str) -> None:
    given = np.concatenate([random_addresses(HBM2, 8), 1 << np.arange(34)])
    found = zip(*(part.tolist() for part in decode_addresses(MAPPINGS[name](HBM2), HBM2, 8, given)), strict=True)
    assert list(found) == [bit_by_bit(name, byte) for byte in given.tolist()]


def by_the_text(table: DramTable, channels: int, byte: int, mop: bool) -> tuple[int, int, int]:
    """A place by the sentences of Ramulator's recorded data: the channel's bits from bit 6 on are removed; the rest is taken from bit 0."""
    unit = 64 // table.transaction
    channel, rest = byte // 64 % channels, byte // 64 // channels * unit + byte // table.transaction % unit
    fields = dict[str, int]()

    def take(bits: int) -> int:
        nonlocal rest
        value, rest = rest % (1 << bits), rest >> bits
        return value

    widths = field_widths(table)
    column = take(2 if mop else table.column_bits)
    for name, _ in table.levels:
        fields[name] = take(widths[name])
    if mop:
        column += take(table.column_bits - 2) << 2
    fields["row"] = rest
    if mop:
        for name in fields:
            fields[name] ^= column % (1 << widths[name])
            column >>= widths[name]
    bank = 0
    for name, size in table.levels:
        bank = bank * size + fields[name]
    return channel, bank, fields["row"]


@pytest.mark.parametrize("preset_name", preset_names())
@pytest.mark.parametrize("name", ["RoBaRaCoCh", "MOP4CLXOR"])
def test_ramulators_mappings_by_their_text(name: str, preset_name: str) -> None:
    table = preset(preset_name).table()
    for channels in (1, 4, 32):
        given = random_addresses(table, channels)
        found = zip(*(part.tolist() for part in decode_addresses(MAPPINGS[name](table), table, channels, given)), strict=True)
        assert list(found) == [by_the_text(table, channels, byte, name == "MOP4CLXOR") for byte in given.tolist()]


CONFIGURATIONS = [
    (folder.name, config)
    for folder in sorted(DATA.iterdir())
    if folder.is_dir()
    for config in json.loads((folder / "config.json").read_text())
]


@pytest.mark.parametrize(("standard", "config"), CONFIGURATIONS)
def test_ramulator_opened_the_rows_of_the_requests(standard: str, config: str) -> None:
    """The first rows that it opened for random addresses of one channel, with RoBaRaCoCh."""
    table = table_of(json.loads((DATA / standard / "config.json").read_text())[config])
    with np.load(DATA / "activations.npz") as recorded:
        bank, row, unit = (recorded[f"{standard}/{config}/{part}"].tolist() for part in ("bank", "row", "unit"))
    _, banks, rows = decode_addresses(MAPPINGS["RoBaRaCoCh"](table), table, 1, np.array(unit) * table.transaction)
    places = list(zip(banks.tolist(), rows.tolist(), strict=True))
    assert len(bank) == 200 and set(zip(bank, row, strict=True)) <= set(places)
    assert set(places[:60]) <= set(zip(bank, row, strict=True))


@pytest.mark.parametrize("preset_name", preset_names())
def test_places_by_the_digits_of_a_transaction(preset_name: str) -> None:
    """As compiled code reads them."""
    table = preset(preset_name).table()
    for channels in CHANNEL_COUNTS:
        mapping, given = MAPPINGS[DEFAULT_MAPPING](table), random_addresses(table, channels)
        packed, units = np.zeros_like(given), given // table.transaction
        for k, digit in enumerate(place_tables(mapping, table, channels)):
            packed ^= digit[units >> DIGIT_BITS * k & DIGIT - 1]
        channel, bank, row = decode_addresses(mapping, table, channels, given)
        assert np.array_equal(packed, channel << PLACE_BITS | row << BANK_BITS | bank)
        assert channel.max() < channels and bank.max() < table.banks and row.max() < table.rows


@pytest.mark.parametrize("preset_name", preset_names())
@pytest.mark.parametrize("name", MAPPINGS)
def test_every_transaction_has_a_place_of_its_own(name: str, preset_name: str) -> None:
    table = preset(preset_name).table()
    for channels in CHANNEL_COUNTS:
        assert keeps_addresses_apart(MAPPINGS[name](table), table, channels)


def test_lines_in_order_go_to_other_channels_and_groups_in_the_default() -> None:
    """Also where the channels of a module have ranks: these change last."""
    table = preset("ddr4-3200").table()
    channel, bank, row = decode_addresses(MAPPINGS[DEFAULT_MAPPING](table), table, 2, 64 * np.arange(16))
    assert channel.tolist() == [0, 1] * 8 and not row.any()
    assert (bank // 4).tolist() == [0, 0, 1, 1, 2, 2, 3, 3] * 2


MINE = ["column", "channel", "bank", "bank_group", "pseudo_channel", "row"]


def test_a_mapping_of_your_own() -> None:
    """Columns lowest, so that a row lies in one piece."""
    mine = own_mapping(MINE, {"channel": "row"}, HBM2, 2)
    channel, bank, row = decode_addresses(mine, HBM2, 2, [0, 1023, 1024, 2048, 1 << 16, 5 << 16])
    assert (channel.tolist(), bank.tolist(), row.tolist()) == ([0, 0, 1, 0, 1, 1], [0, 0, 0, 1, 0, 0], [0, 0, 0, 0, 1, 5])


def test_the_default_spelled_out() -> None:
    bits = ["column 1", "channel", "pseudo_channel", "bank_group", "column", "bank", "row"]
    xor = {"bank": "row", "bank_group": "row 2", "pseudo_channel": "row 4", "channel": "row 5"}
    mine, given = own_mapping(bits, xor, HBM2, 8), random_addresses(HBM2, 8)
    for found, wanted in zip(
        decode_addresses(mine, HBM2, 8, given), decode_addresses(MAPPINGS[DEFAULT_MAPPING](HBM2), HBM2, 8, given), strict=True
    ):
        assert np.array_equal(found, wanted)


@pytest.mark.parametrize(
    ("bits", "xor", "message"),
    [
        ([*MINE[:-1], "rows"], {}, "there is no field `rows` here\n  hint: did you mean `row`?"),
        ([*MINE[:-1], "rank", "row"], {}, "there is no field `rank` here\n  hint: did you mean `bank`?"),
        ([*MINE[:-1], "row 4"], {}, "`bits` names 4 of the 16 bits of `row`"),
        ([*MINE[:-1], "row 17"], {}, "`row 17` is more than is left of `row`, which has 16 bits"),
        ([*MINE[:-1], "row x"], {}, "`row x` is no field of an address\n  hint: write `row`, or with a number of bits `row 4`"),
        (MINE[1:], {}, "`bits` names 0 of the 5 bits of `column`"),
        (["column", *MINE[2:]], {}, "`bits` names 0 of the 3 bits of `channel`"),
        (MINE, {"column": "row"}, "there is no field `column` here\n  hint: known: `bank`"),
        (MINE, {"bank": "rows"}, "there is no field `rows` here\n  hint: did you mean `row`?"),
        (MINE, {"bank": "bank"}, "two addresses would have the same place, since the fields of `xor` cancel each other"),
        (MINE, {"bank": "bank_group", "bank_group": "bank"}, "two addresses would have the same place"),
    ],
)
def test_a_mapping_that_cannot_be(bits: list[str], xor: dict[str, str], message: str) -> None:
    with pytest.raises(MachineError) as caught:
        own_mapping(bits, xor, HBM2, 8)
    assert str(caught.value).startswith(f"error[machine]: {message}")


def test_channels_that_cannot_be() -> None:
    for channels in (0, 3, 64):
        with pytest.raises(MachineError, match=f"`channels: {channels}`: must be one of 1, 2, 4, 8, 16, 32"):
            decode_addresses(MAPPINGS[DEFAULT_MAPPING](HBM2), HBM2, channels, [0])
