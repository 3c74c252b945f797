"""Level formats, one file each. `LEVELS` is the table that a new format joins."""

from fuseflow.tensors.levels.base import Fibers, Level
from fuseflow.tensors.levels.compressed import Compressed
from fuseflow.tensors.levels.dense import Dense
from fuseflow.tensors.levels.singleton import Singleton

LEVELS: dict[str, Level] = {
    level.text: level for level in (Dense(), Compressed(), Compressed(unique=False), Singleton(), Singleton(unique=False))
}

__all__ = ["LEVELS", "Compressed", "Dense", "Fibers", "Level", "Singleton"]
