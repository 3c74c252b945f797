"""The rules for the facts of a level format, which must hold before anything reads them. A format is checked when it joins the
table of levels."""

from __future__ import annotations

from typing import NoReturn

from fuseflow.errors import TensorError
from fuseflow.tensors.levels.base import Level

SIZES = (1, 40)
"""Sizes of a dimension for which the arrays of a format are checked."""


def checked(level: Level) -> Level:
    """Return a level format. Raises `TypeError` if a fact is missing, or if two contradict each other.

    A level that stores nothing is scanned as if it had every coordinate. So any other level must store something.
    """
    for size in SIZES:
        arrays = level.arrays(size)
        if level.full == bool(arrays):
            _refuse(level, "is full and stores arrays" if arrays else "is not full, and does not say what it stores")
        if len({array.kind for array in arrays}) < len(arrays):
            _refuse(level, "stores two arrays of one kind")
        if any(array.bits < 1 for array in arrays):
            _refuse(level, "stores elements without bits")
        try:
            reads, points = level.reads(size), level.points(size)
        except TensorError as error:
            _refuse(level, f"stores what nothing reads: {error.message}")
        if arrays and not (reads.scanned or reads.entries):
            _refuse(level, "stores arrays, and a scan reads none of them")
        if arrays and level.located != bool(points):
            facts = ("located", "no") if level.located else ("not located", "an")
            _refuse(level, "is {}, and {} array tells of a coordinate".format(*facts))
        if level.pads != (level.room(size) is not None):
            _refuse(level, "pads, and has no room that it fills" if level.pads else "has room, and does not pad")
        if level.kept and reads.entries is None:
            _refuse(level, "is kept, and has no array of entries")
    for fact, holds, method in (("appended", level.appended, "append"), ("readable", level.readable, "read")):
        if holds and getattr(type(level), method) is getattr(Level, method):
            _refuse(level, f"is {fact}, and has no `{method}`")
    return level


def _refuse(level: Level, why: str) -> NoReturn:
    raise TypeError(f"level format `{level.text}`: it {why}")
