"""Amounts as people read them: a unit that fits the size, and the digits that count. JSON has the exact numbers in base units."""

from __future__ import annotations

from math import floor, log10

ENERGY_UNITS = {"pJ": 1.0, "nJ": 1e3, "µJ": 1e6, "mJ": 1e9, "J": 1e12}
"""The picojoules of each unit."""
UNIT_WORDS = {"pJ": "picojoules", "nJ": "nanojoules", "µJ": "microjoules", "mJ": "millijoules", "J": "joules"}
_BYTE_UNITS = {"GiB": 1 << 30, "MiB": 1 << 20, "KiB": 1 << 10}
DIGITS = 4
"""The digits of the largest number that a unit is chosen for."""
_EXACT_BYTES = 10_000
"""Fewer bytes are counted one by one."""


def energy_unit(picojoules: float) -> str:
    """Return the largest unit in which an energy is 1 or more.

    >>> energy_unit(5_855_760), energy_unit(19_052_805_900), energy_unit(0)
    ('µJ', 'mJ', 'pJ')
    """
    return [unit for unit, size in ENERGY_UNITS.items() if abs(picojoules) >= size or unit == "pJ"][-1]


def energy_places(picojoules: float) -> int:
    """Return the decimal places that leave `DIGITS` digits of an energy in its unit.

    >>> energy_places(5_855_760), energy_places(19_052_805_900)
    (3, 2)
    """
    size = abs(picojoules) / ENERGY_UNITS[energy_unit(picojoules)]
    return min(DIGITS - 1, max(0, DIGITS - 1 - floor(log10(size)))) if size else 0


def bytes_text(size: float) -> str:
    """Return a number of bytes for a sentence.

    >>> bytes_text(2_720), bytes_text(102_144), bytes_text(19_052_805)
    ('2,720 bytes', '99.8 KiB', '18.2 MiB')
    """
    if size < _EXACT_BYTES:
        return f"{size:,.0f} bytes"
    unit, least = next((unit, least) for unit, least in _BYTE_UNITS.items() if size >= least)
    return f"{size / least:,.1f} {unit}"
