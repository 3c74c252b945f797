"""Address mappings choose, from the bits of a byte address, its channel, bank and row.

A mapping is data: the fields of an address from bit 0 upwards, then the fields that are xor-ed with others. So each mapping is
linear over bits. A mapping is applied as moves, each of which takes a run of bits to its place; compiled code uses tables
instead. A new mapping is an `AddressMapping` in `MAPPINGS`. `RoBaRaCoCh` and `MOP4CLXOR` are Ramulator's (see `timing`), with
channels interleaved by 64 bytes; `BGint_xor` is fuseflow's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from fuseflow.errors import MachineError

Ints: TypeAlias = npt.NDArray[np.int64]

TRANSACTION = 32
"""The bytes of one access to a channel."""
LINE = 64
"""The bytes that stay together in one channel."""
CHANNEL_COUNTS = (1, 2, 4, 8, 16)
FIELD_WIDTHS = {"byte": 5, "column": 5, "bank": 2, "group": 2, "pc": 1, "row": 16}
"""The number of bits of every field but `channel`. The number of a bank in its channel has the bits of `pc`, `group` and `bank`, the
highest first; a channel has 32 banks."""
FIELD_OFFSETS = {"bank": 0, "group": 2, "pc": 4, "row": 5, "channel": 21}
"""The lowest bit of each field in a packed place, the word with bank, row and channel. Columns are left out: a transaction hits
or misses a row."""


DIGIT_BITS = 6
DIGIT, DIGITS = 1 << DIGIT_BITS, 5
"""Tables have a row for each of the `DIGITS` digits of a transaction's number, which is its address in `TRANSACTION` bytes. These
digits cover the largest capacity."""


@dataclass(frozen=True, slots=True)
class BitField:
    """A run of `bits` bits of a field, from the field's bit `low` on. If `bits` is None, the run has all bits of the field."""

    field: str
    bits: int | None = None
    low: int = 0


@dataclass(frozen=True, slots=True)
class Xor:
    """The target field is xor-ed with an equal number of bits of the source field, from the source's bit `low` on. Sources have
    their values before any xor."""

    target: str
    source: str
    low: int = 0


@dataclass(frozen=True, slots=True)
class AddressMapping:
    """An address mapping takes a byte address to a channel, a bank and a row."""

    name: str
    pieces: tuple[BitField, ...]
    xors: tuple[Xor, ...] = ()


@dataclass(frozen=True, slots=True)
class Move:
    """A run of bits of an address that is xor-ed into a packed place: `((address >> shift) & mask) << left`."""

    shift: int
    mask: int
    left: int


_BYTE, _LOW, _CHANNEL, _ROW = BitField("byte"), BitField("column", 1), BitField("channel"), BitField("row")
_PC, _GROUP, _BANK = BitField("pc"), BitField("group"), BitField("bank")

ROBARACOCH = AddressMapping("RoBaRaCoCh", (_BYTE, _LOW, _CHANNEL, BitField("column", 4, 1), _PC, _GROUP, _BANK, _ROW))
MOP4CLXOR = AddressMapping(
    "MOP4CLXOR",
    (_BYTE, _LOW, _CHANNEL, BitField("column", 1, 1), _PC, _GROUP, _BANK, BitField("column", 3, 2), _ROW),
    (Xor("pc", "column"), Xor("group", "column", 1), Xor("bank", "column", 3)),
)
BGINT_XOR = AddressMapping(
    "BGint_xor",
    (_BYTE, _LOW, _CHANNEL, _PC, _GROUP, BitField("column", 4, 1), _BANK, _ROW),
    (Xor("bank", "row"), Xor("group", "row", 2), Xor("pc", "row", 4), Xor("channel", "row", 5)),
)
MAPPINGS = {mapping.name: mapping for mapping in (ROBARACOCH, MOP4CLXOR, BGINT_XOR)}
DEFAULT_MAPPING = BGINT_XOR


def channel_bits(channels: int) -> int:
    """Return the number of address bits that choose one of `channels` channels. Raises `MachineError` for an impossible number of
    channels."""
    if channels not in CHANNEL_COUNTS:
        raise MachineError(f"`channels: {channels}`: must be 1, 2, 4, 8 or 16")
    return channels.bit_length() - 1


def capacity(channels: int) -> int:
    """Return the capacity of `channels` channels in bytes."""
    return 1 << (sum(FIELD_WIDTHS.values()) + channel_bits(channels))


def moves(mapping: AddressMapping, channels: int) -> tuple[Move, ...]:
    """Return the moves that turn a byte address into a packed place. Raises `MachineError` for an impossible number of channels."""
    runs: list[Move] = []
    for bit, place in sorted(_bits(mapping, channels), key=lambda pair: (pair[1] - pair[0], pair[0])):
        last = runs.pop() if runs else Move(bit, 0, place)
        if bit - last.shift == place - last.left == last.mask.bit_length():  # the next bit of the same run
            runs.append(Move(last.shift, 2 * last.mask + 1, last.left))
        else:
            runs += [last, Move(bit, 1, place)]
    return tuple(runs)


def _bits(mapping: AddressMapping, channels: int) -> Iterator[tuple[int, int]]:
    """Yield pairs of a bit of an address and the bit of the packed place into which the first is xor-ed."""
    widths = {**FIELD_WIDTHS, "channel": channel_bits(channels)}
    stands: dict[tuple[str, int], int] = {}
    for piece in mapping.pieces:
        for k in range(piece.low, piece.low + (widths[piece.field] if piece.bits is None else piece.bits)):
            stands[piece.field, k] = len(stands)
    for (field, k), bit in stands.items():
        if field in FIELD_OFFSETS:
            yield bit, FIELD_OFFSETS[field] + k
    for xor in mapping.xors:
        for k in range(widths[xor.target]):
            yield stands[xor.source, xor.low + k], FIELD_OFFSETS[xor.target] + k


def place_tables(mapping: AddressMapping, channels: int) -> Ints:
    """Return, for every digit of the number of a transaction, a table of the packed place of each value of the digit. A mapping
    is linear, so the place of a transaction is the xor of the places of its digits."""
    values = np.arange(DIGIT) << DIGIT_BITS * np.arange(DIGITS)[:, None]
    return pack_places(mapping, channels, values * TRANSACTION)


def pack_places(mapping: AddressMapping, channels: int, addresses: Ints) -> Ints:
    """Return the packed place of each byte address."""
    packed = np.zeros_like(addresses)
    for move in moves(mapping, channels):
        packed ^= ((addresses >> move.shift) & move.mask) << move.left
    return packed


def decode_addresses(mapping: AddressMapping, channels: int, addresses: npt.ArrayLike) -> tuple[Ints, Ints, Ints]:
    """Return the channel, bank and row of each byte address."""
    packed = pack_places(mapping, channels, np.asarray(addresses, np.int64))
    return packed >> FIELD_OFFSETS["channel"], packed & 31, (packed >> FIELD_OFFSETS["row"]) & 0xFFFF
