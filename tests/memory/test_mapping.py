"""Address mappings, bit by bit, and that no two addresses share a place."""

from __future__ import annotations

import numpy as np
import pytest

from fuseflow.errors import MachineError
from fuseflow.memory.hbm2 import packed_place
from fuseflow.memory.mapping import (
    CHANNEL_COUNTS,
    FIELD_OFFSETS,
    MAPPINGS,
    TRANSACTION,
    AddressMapping,
    BitField,
    Xor,
    capacity,
    decode_addresses,
)
from fuseflow.memory.models import Hbm2
from fuseflow.native.kernel_library import library
from fuseflow.native.records import address
from fuseflow.native.signatures import integers

# For 8 channels: of each field the address bits from its lowest on, then the bits that are xor-ed with them
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


def random_addresses(channels: int) -> np.ndarray:
    return np.random.default_rng(channels).integers(0, capacity(channels), 2000)


@pytest.mark.parametrize("name", MAPPINGS)
def test_bit_by_bit_with_8_channels(name: str) -> None:
    given = np.concatenate([random_addresses(8), 1 << np.arange(34)])
    found = zip(*(part.tolist() for part in decode_addresses(MAPPINGS[name], 8, given)), strict=True)
    assert list(found) == [bit_by_bit(name, byte) for byte in given.tolist()]


@pytest.mark.parametrize("name", MAPPINGS)
def test_compiled_code_agrees(name: str) -> None:
    model = Hbm2(8, MAPPINGS[name])
    packed = library().compiled(packed_place, integers(2))
    found = [packed(address(model.places), byte // TRANSACTION) for byte in random_addresses(8).tolist()]
    channel, bank, row = decode_addresses(MAPPINGS[name], 8, random_addresses(8))
    assert found == (channel << FIELD_OFFSETS["channel"] | row << FIELD_OFFSETS["row"] | bank).tolist()


@pytest.mark.parametrize("channels", CHANNEL_COUNTS)
@pytest.mark.parametrize("name", MAPPINGS)
def test_every_byte_has_a_place_of_its_own(name: str, channels: int) -> None:
    """A mapping is linear over bits, so it is bijective if the places of single bits, with byte and column, are independent."""
    assert capacity(channels) == channels << 31
    bits = capacity(channels).bit_length() - 1
    column = [5, *_columns(name, channels)]

    def whole(bytes_: np.ndarray) -> np.ndarray:
        channel, bank, row = decode_addresses(MAPPINGS[name], channels, bytes_)
        assert channel.max() < channels
        found = channel << 40 | row << 20 | bank << 10 | bytes_ & 31
        for k, bit in enumerate(column):
            found |= ((bytes_ >> bit) & 1) << (5 + k)
        return found

    a, b = random_addresses(channels), random_addresses(channels)[::-1]
    assert np.array_equal(whole(a ^ b), whole(a) ^ whole(b))
    basis: list[int] = []
    for vector in whole(1 << np.arange(bits)).tolist():
        for known in basis:
            vector = min(vector, vector ^ known)
        assert vector
        basis.append(vector)


def _columns(name: str, channels: int) -> list[int]:
    fewer = 3 - (channels.bit_length() - 1)  # the bits above the channel's move down
    return [bit - fewer for bit in FIELDS[name]["column"][1:] if isinstance(bit, int)]


def test_a_mapping_of_your_own() -> None:
    """Columns lowest, so that a row lies in one piece."""
    mine = AddressMapping(
        "mine",
        (
            BitField("byte"),
            BitField("column"),
            BitField("channel"),
            BitField("bank"),
            BitField("group"),
            BitField("pc"),
            BitField("row"),
        ),
        (Xor("channel", "row"),),
    )
    channel, bank, row = decode_addresses(mine, 2, [0, 1023, 1024, 2048, 1 << 16, 5 << 16])
    assert (channel.tolist(), bank.tolist(), row.tolist()) == ([0, 0, 1, 0, 1, 1], [0, 0, 0, 1, 0, 0], [0, 0, 0, 0, 1, 5])


def test_what_cannot_be() -> None:
    for channels in (0, 3, 32):
        with pytest.raises(MachineError, match=f"`channels: {channels}`: must be 1, 2, 4, 8 or 16"):
            Hbm2(channels)
