"""Numbers of bytes as a user writes them: `65536`, `64KB`, `1.5MB`. The memories of an accelerator come in powers of two."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from types import MappingProxyType

BYTE_UNITS: Mapping[str, int] = MappingProxyType({"": 1, "B": 1, "KB": 1024, "MB": 1024**2, "GB": 1024**3})
"""The bytes of each unit."""
BYTES_HINT = "bytes are written `65536`, `64KB` or `1MB`"
MOST_COUNTED = 2**63 - 1
"""The largest number that the 64 bits of a file hold."""
_AMOUNT = re.compile(r"\s*(-?[0-9][0-9_]*(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*")
_DIGITS = 30
"""No amount has more digits. Python refuses to read numbers of some thousand."""


def split_amount(text: str) -> tuple[Fraction, str] | None:
    """Return the number and the unit of an amount, or None for another text. A unit is in capitals, and an empty text if there is none.

    >>> split_amount("1.5MiB"), split_amount("many")
    ((Fraction(3, 2), 'MB'), None)
    """
    match = _AMOUNT.fullmatch(text)
    if match is None or len(match[1]) > _DIGITS:
        return None
    return Fraction(match[1].replace("_", "")), match[2].upper().replace("IB", "B")


def parse_bytes(text: str) -> int:
    """Return a number of bytes, 1 or more. Raises `ValueError`, which names the fault in the text.

    >>> parse_bytes("64KB"), parse_bytes("65536")
    (65536, 65536)
    """
    amount = split_amount(text)
    if amount is None:
        raise ValueError(f"`{text}` is no number of bytes")
    number, unit = amount
    if unit not in BYTE_UNITS:
        raise ValueError(f"there is no unit `{unit}`")
    size = number * BYTE_UNITS[unit]
    if size < 1 or size.denominator != 1:
        raise ValueError(f"`{text}` is no whole number of bytes, 1 or more")
    if size > MOST_COUNTED:
        raise ValueError(f"`{text}` is more than 64 bits count")
    return int(size)


def byte_text(size: int) -> str:
    """Return a number of bytes in the largest unit in which it is whole.

    >>> byte_text(65536), byte_text(100)
    ('64KB', '100')
    """
    for unit in ("GB", "MB", "KB"):
        if size and size % BYTE_UNITS[unit] == 0:
            return f"{size // BYTE_UNITS[unit]}{unit}"
    return str(size)
