"""Level formats, one file each. `LEVELS` is the table that a new format joins."""

from collections.abc import Callable

from fuseflow.tensors.levels.base import Fibers, Level
from fuseflow.tensors.levels.bitmap import Bitmap
from fuseflow.tensors.levels.compressed import Compressed
from fuseflow.tensors.levels.dense import Dense
from fuseflow.tensors.levels.singleton import Singleton

LEVELS: dict[str, Level] = {
    level.text: level
    for level in (Dense(), Compressed(), Compressed(unique=False), Singleton(), Singleton(unique=False), Bitmap())
}


def names(which: Callable[[Level], bool], each: str = "{}") -> str:
    """The levels of which something holds, each in this form, to be read in a sentence.

    >>> names(lambda level: level.follows)
    'singleton and singleton(nonunique)'
    """
    *before, last = (each.format(level.text) for level in LEVELS.values() if which(level))
    return f"{', '.join(before)} and {last}" if before else last


__all__ = ["LEVELS", "Compressed", "Dense", "Fibers", "Level", "Singleton", "names"]
