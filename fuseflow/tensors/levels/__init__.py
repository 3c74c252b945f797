"""Level formats, one file each. A new format joins the table `LEVELS`, or `FAMILIES` if there are numbers in its name.

The facts of a format are checked when it joins the table, before anything reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NoReturn

from fuseflow.errors import TensorError, did_you_mean
from fuseflow.tensors.levels.base import Fibers, Level
from fuseflow.tensors.levels.bitmap import Bitmap
from fuseflow.tensors.levels.compressed import Compressed
from fuseflow.tensors.levels.dense import Dense
from fuseflow.tensors.levels.nm import NM
from fuseflow.tensors.levels.singleton import Singleton

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


def table(levels: Iterable[Level]) -> dict[str, Level]:
    """Return level formats by their names. Raises `TypeError` for one whose facts contradict each other or lack something."""
    return {level.text: checked(level) for level in levels}


LEVELS: dict[str, Level] = table(
    (Dense(), Compressed(), Compressed(unique=False), Singleton(), Singleton(unique=False), Bitmap())
)
FAMILIES: Mapping[str, Callable[[str], Level]] = {"nm": NM.parse}
"""The parser of a name with numbers, such as `nm(2:4)`, by the word before its parenthesis."""


def parse_level(name: str) -> Level:
    """Return the level format called `name`. Raise `TensorError` with the nearest right name if there is none.

    >>> parse_level("nm(2:4)")
    NM(n=2, m=4)
    """
    if name in LEVELS:
        return LEVELS[name]
    if is_family(name):
        return checked(FAMILIES[_family(name)](name))
    raise TensorError(f"unknown level format `{name}`", hint=did_you_mean(name, [*LEVELS, "nm(2:4)"]))


def is_family(name: str) -> bool:
    """Return whether a name is one with numbers, or an attempt at one."""
    return _family(name) in FAMILIES


def _family(name: str) -> str:
    return name.partition("(")[0].strip()


def names(which: Callable[[Level], bool], each: str = "{}") -> str:
    """Return the levels for which `which` is true, each in this form, as a list in a sentence.

    >>> names(lambda level: level.follows)
    'singleton and singleton(nonunique)'
    """
    *before, last = (each.format(level.text) for level in LEVELS.values() if which(level))
    return f"{', '.join(before)} and {last}" if before else last


__all__ = ["LEVELS", "Compressed", "Dense", "Fibers", "Level", "Singleton", "is_family", "names", "parse_level", "table"]
