"""Level formats, one file each. A new format joins the table `LEVELS`, or `FAMILIES` if there are numbers in its name."""

from collections.abc import Callable, Iterable, Mapping

from fuseflow.errors import TensorError, did_you_mean
from fuseflow.tensors.levels.base import Fibers, Level
from fuseflow.tensors.levels.bitmap import Bitmap
from fuseflow.tensors.levels.compressed import Compressed
from fuseflow.tensors.levels.dense import Dense
from fuseflow.tensors.levels.facts import checked
from fuseflow.tensors.levels.nm import NM
from fuseflow.tensors.levels.singleton import Singleton


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
