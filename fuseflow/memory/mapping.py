"""Address mappings choose, from the bits of a byte address, its channel, bank and row.

A mapping of a table is data: the fields of an address from bit 0 upwards, then the fields that are xor-ed with others. So each
mapping is linear over bits. A mapping is applied as moves, each of which takes a run of bits to its place; compiled code uses tables
instead. `MAPPINGS` has a function for each name, which makes the mapping of a table. `RoBaRaCoCh` and `MOP4CLXOR` are Ramulator's,
with channels interleaved by 64 bytes; `BGint_xor` is fuseflow's. A machine file may have a mapping of its own (`own_mapping`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from fuseflow.errors import MachineError, did_you_mean
from fuseflow.memory.dram_table import MOST_BANKS, MOST_CHANNELS, MOST_ROWS, DramTable

Ints: TypeAlias = npt.NDArray[np.int64]


def _width(count: int) -> int:
    """Return the number of bits that count to a power of two."""
    return count.bit_length() - 1


LINE = 64
"""The bytes that stay together in one channel in the mappings of `MAPPINGS`."""
CHANNEL_COUNTS = tuple(1 << k for k in range(MOST_CHANNELS.bit_length()))

DIGIT_BITS = 7
DIGIT, DIGITS = 1 << DIGIT_BITS, 5
"""Tables have a row for each of the `DIGITS` digits of a transaction's number, which is its address in transactions. These digits cover the
largest capacity, 32 channels of 32 GB in transactions of 32 bytes."""

BANK_BITS = _width(MOST_BANKS)
PLACE_BITS = BANK_BITS + _width(MOST_ROWS)
"""A packed place is a word with the bank in its lowest `BANK_BITS` bits, then the row, and the channel above `PLACE_BITS` bits."""


@dataclass(frozen=True, slots=True)
class BitField:
    """A run of `bits` bits of a field, from the field's bit `low` on. If `bits` is None, the run has all bits from there on."""

    field: str
    bits: int | None = None
    low: int = 0


@dataclass(frozen=True, slots=True)
class Xor:
    """The target field is xor-ed with an equal number of bits of the source field, from the source's bit `low` on, or with as many as the
    source has from there on. Sources have their values before any xor."""

    target: str
    source: str
    low: int = 0


@dataclass(frozen=True, slots=True)
class AddressMapping:
    """An address mapping takes a byte address to a channel, a bank and a row."""

    name: str
    pieces: tuple[BitField, ...]
    xors: tuple[Xor, ...] = ()


MappingRule: TypeAlias = Callable[[DramTable], AddressMapping]
"""Makes the mapping of a table, whose fields have as many bits as the table says."""


@dataclass(frozen=True, slots=True)
class Move:
    """A run of bits of an address that is xor-ed into a packed place: `((address >> shift) & mask) << left`."""

    shift: int
    mask: int
    left: int


_BYTE, _CHANNEL, _ROW = BitField("byte"), BitField("channel"), BitField("row")


def _line_columns(table: DramTable) -> int:
    """Return the number of column bits that choose a transaction of a line."""
    return _width(LINE // table.transaction)


def robaracoch(table: DramTable) -> AddressMapping:
    """Return the mapping whose successive lines go to other channels, and then stay in a row."""
    low, levels = _line_columns(table), [BitField(name) for name, _ in table.levels]
    return AddressMapping("RoBaRaCoCh", (_BYTE, BitField("column", low), _CHANNEL, BitField("column", None, low), *levels, _ROW))


MOP_COLUMNS = 2
"""The column bits of MOP4CLXOR below the bank: four transactions stay in a row."""


def mop4clxor(table: DramTable) -> AddressMapping:
    """Return the mapping whose groups of four transactions go to other channels and then to other banks. The fields of the bank, and then
    the row, are xor-ed with the bits of the column, each with the next ones."""
    low, levels = _line_columns(table), [BitField(name) for name, _ in table.levels]
    below = (_BYTE, BitField("column", low), _CHANNEL, BitField("column", MOP_COLUMNS - low, low))
    xors, next_bit, widths = list[Xor](), 0, field_widths(table)
    for field in (*(name for name, _ in table.levels), "row"):
        if widths[field] and next_bit < table.column_bits:
            xors.append(Xor(field, "column", next_bit))
        next_bit += widths[field]
    return AddressMapping("MOP4CLXOR", (*below, *levels, BitField("column", None, MOP_COLUMNS), _ROW), tuple(xors))


NEAR = ("pseudo_channel", "bank_group")
"""The levels between which BGint_xor changes from line to line. To change between ranks or stacks takes longer."""


def bgint_xor(table: DramTable) -> AddressMapping:
    """Return the mapping whose successive lines go to other channels, pseudo channels and bank groups. The fields of the bank, the
    inner ones first, and then the channel are xor-ed with the bits of the row, each with the next ones."""
    low, names = _line_columns(table), [name for name, _ in table.levels]
    near, far = [name for name in names if name in NEAR], [name for name in names if name not in NEAR]
    xors, next_bit, widths = list[Xor](), 0, field_widths(table)
    for field in ("bank", *reversed(near), *(name for name in far if name != "bank"), "channel"):
        if next_bit < widths["row"]:
            xors.append(Xor(field, "row", next_bit))
        next_bit += widths.get(field, 0)
    lines = (_BYTE, BitField("column", low), _CHANNEL, *map(BitField, near))
    return AddressMapping("BGint_xor", (*lines, BitField("column", None, low), *map(BitField, far), _ROW), tuple(xors))


MAPPINGS: dict[str, MappingRule] = {
    "RoBaRaCoCh": robaracoch,
    "MOP4CLXOR": mop4clxor,
    "BGint_xor": bgint_xor,
}
DEFAULT_MAPPING = "BGint_xor"
OWN = "own"
"""The name of a mapping that a machine file spells out."""


def own_mapping(bits: Sequence[str], xor: Mapping[str, str], table: DramTable, channels: int) -> AddressMapping:
    """Return a mapping from the text of a machine file.

    `bits` are the fields above the bytes of a transaction, from the lowest bit upwards, such as `column 2`, which takes the next two
    bits of the column, or `column`, which takes what is left of it. `xor` names for a field the field that it is xor-ed with, such
    as `row`, or `row 4` from its bit 4 on. Raises `MachineError` unless every bit of every field is there once, and no two
    addresses have the same place.
    """
    widths = {**field_widths(table), "channel": channel_bits(channels)}
    fields = [name for name in widths if name != "byte"]
    pieces = [BitField("byte")]
    for text in bits:
        field, number = _field_and_number(text, fields)
        low = sum(piece.bits or 0 for piece in pieces if piece.field == field)
        number = widths[field] - low if number is None else number
        if not 0 <= number <= widths[field] - low:
            raise MachineError(f"`{text}` is more than is left of `{field}`, which has {widths[field]} bits")
        pieces.append(BitField(field, number, low))
    for field in fields:
        named = sum(piece.bits or 0 for piece in pieces if piece.field == field)
        if named != widths[field]:
            hint = f"write `{field}` behind the others" if named < widths[field] else ""
            raise MachineError(f"`bits` names {named} of the {widths[field]} bits of `{field}`", hint=hint)
    targets = [field for field in fields if field != "column"]
    xors = tuple(Xor(_field(target, targets), *_source(source, fields)) for target, source in xor.items())
    mapping = AddressMapping(OWN, tuple(pieces), xors)
    if not keeps_addresses_apart(mapping, table, channels):
        raise MachineError("two addresses would have the same place, since the fields of `xor` cancel each other")
    return mapping


def _source(text: str, fields: Sequence[str]) -> tuple[str, int]:
    field, low = _field_and_number(text, fields)
    return field, low or 0


def _field_and_number(text: str, fields: Sequence[str]) -> tuple[str, int | None]:
    """Return the field and the number of a text such as `row 4`; None without a number."""
    name, _, number = text.partition(" ")
    if number and not number.isdecimal():
        raise MachineError(f"`{text}` is no field of an address", hint="write `row`, or with a number of bits `row 4`")
    return _field(name, fields), int(number) if number else None


def _field(name: str, fields: Sequence[str]) -> str:
    if name not in fields:
        raise MachineError(f"there is no field `{name}` here", hint=did_you_mean(name, fields))
    return name


def field_widths(table: DramTable) -> dict[str, int]:
    """Return the number of bits of every field of an address but `channel`."""
    levels = {name: _width(size) for name, size in table.levels}
    return {"byte": _width(table.transaction), "column": table.column_bits, **levels, "row": _width(table.rows)}


def field_offsets(table: DramTable) -> dict[str, int]:
    """Return the lowest bit of each field in a packed place. The levels make up the number of a bank. Columns are left out: a transaction
    hits or misses a row."""
    offsets, next_bit = dict[str, int](), 0
    for name, size in reversed(table.levels):
        offsets[name] = next_bit
        next_bit += _width(size)
    return {**offsets, "row": BANK_BITS, "channel": PLACE_BITS}


def channel_bits(channels: int) -> int:
    """Return the number of address bits that choose one of `channels` channels. Raises `MachineError` for an impossible number."""
    if channels not in CHANNEL_COUNTS:
        raise MachineError(f"`channels: {channels}`: must be one of {', '.join(map(str, CHANNEL_COUNTS))}")
    return _width(channels)


def moves(mapping: AddressMapping, table: DramTable, channels: int) -> tuple[Move, ...]:
    """Return the moves that turn a byte address into a packed place. Raises `MachineError` for an impossible number of channels."""
    runs: list[Move] = []
    for bit, place in sorted(_bits(mapping, table, channels), key=lambda pair: (pair[1] - pair[0], pair[0])):
        last = runs.pop() if runs else Move(bit, 0, place)
        if bit - last.shift == place - last.left == last.mask.bit_length():  # the next bit of the same run
            runs.append(Move(last.shift, 2 * last.mask + 1, last.left))
        else:
            runs += [last, Move(bit, 1, place)]
    return tuple(runs)


def _bits(mapping: AddressMapping, table: DramTable, channels: int) -> Iterator[tuple[int, int]]:
    """Yield pairs of a bit of an address and the bit of the packed place into which the first is xor-ed."""
    widths, offsets = {**field_widths(table), "channel": channel_bits(channels)}, field_offsets(table)
    stands = {place: bit for bit, place in enumerate(_fields_of_bits(mapping, widths))}
    for (field, k), bit in stands.items():
        if field in offsets:
            yield bit, offsets[field] + k
    for xor in mapping.xors:
        for k in range(min(widths[xor.target], widths[xor.source] - xor.low)):
            yield stands[xor.source, xor.low + k], offsets[xor.target] + k


def _fields_of_bits(mapping: AddressMapping, widths: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    """Yield for each bit of an address, from bit 0 upwards, its field and its place in the field."""
    for piece in mapping.pieces:
        for k in range(piece.low, widths[piece.field] if piece.bits is None else piece.low + piece.bits):
            yield piece.field, k


def keeps_addresses_apart(mapping: AddressMapping, table: DramTable, channels: int) -> bool:
    """Return whether no two transactions have the same column and place, which is so if the places of the single bits of all other
    fields are independent."""
    widths = {**field_widths(table), "channel": channel_bits(channels)}
    fields = [field for field, _ in _fields_of_bits(mapping, widths)]
    places = [0] * len(fields)
    for bit, place in _bits(mapping, table, channels):
        places[bit] ^= 1 << place
    basis: list[int] = []
    for place in (place for place, field in zip(places, fields, strict=True) if field not in ("byte", "column")):
        for known in basis:
            place = min(place, place ^ known)
        if place == 0:
            return False
        basis.append(place)
    return True


def place_tables(mapping: AddressMapping, table: DramTable, channels: int) -> Ints:
    """Return, for every digit of the number of a transaction, a table of the packed place of each value of the digit. A mapping
    is linear, so the place of a transaction is the xor of the places of its digits."""
    values = np.arange(DIGIT) << DIGIT_BITS * np.arange(DIGITS)[:, None]
    return pack_places(mapping, table, channels, values * table.transaction)


def pack_places(mapping: AddressMapping, table: DramTable, channels: int, addresses: Ints) -> Ints:
    """Return the packed place of each byte address."""
    packed = np.zeros_like(addresses)
    for move in moves(mapping, table, channels):
        packed ^= ((addresses >> move.shift) & move.mask) << move.left
    return packed


def decode_addresses(
    mapping: AddressMapping, table: DramTable, channels: int, addresses: npt.ArrayLike
) -> tuple[Ints, Ints, Ints]:
    """Return the channel, bank and row of each byte address."""
    packed = pack_places(mapping, table, channels, np.asarray(addresses, np.int64))
    return packed >> PLACE_BITS, packed & (1 << BANK_BITS) - 1, packed >> BANK_BITS & (1 << PLACE_BITS - BANK_BITS) - 1
