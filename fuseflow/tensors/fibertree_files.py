"""Fibertrees as text files, one number a line: the layout that SAM tools share.

A folder holds, for a tensor `NAME`: `tensor_NAME_mode_<level>_{seg,crd}` (levels outermost first; what the level stores),
`tensor_NAME_mode_vals`, and `tensor_NAME_mode_shape`, in dimension order. Of a tensor in blocks the levels and the shape count blocks, and
the values are the elements of one tile after the other, row by row.
"""

from __future__ import annotations

from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fuseflow.errors import FileError, did_you_mean
from fuseflow.filesystem import read_text, write_text
from fuseflow.tensors.format import Format
from fuseflow.tensors.levels import Fibers, Level, names
from fuseflow.tensors.levels.base import Ints, Unreadable
from fuseflow.tensors.tensor import Tensor


def write_fibertree(directory: str | Path, name: str, tensor: Tensor) -> None:
    """Write a tensor into a folder."""
    columns: dict[str, npt.NDArray[Any]] = {"shape": np.array(tensor.shape, dtype=np.int64), "vals": tensor.values.reshape(-1)}
    for number, level in enumerate(tensor.levels):
        columns.update({f"{number}_{kind}": numbers for kind, numbers in level.arrays.items()})
    for column, numbers in sorted(columns.items()):
        write_text(_file(directory, name, column), "".join(f"{n}\n" for n in numbers.astype(str).tolist()))


def read_fibertree(directory: str | Path, name: str, format: Format, tile: tuple[int, ...] = ()) -> Tensor:
    """The tensor `name` of a folder, stored in `format` (of `appended` levels); of tiles, the elements of each row by row. Raises
    `FileError` for files that are missing, hold no numbers, or do not fit together."""
    if not _file(directory, name, "shape").is_file():
        found = sorted(path.name[len("tensor_") : -len("_mode_shape")] for path in Path(directory).glob("tensor_*_mode_shape"))
        raise FileError(f"`{directory}` holds no fibertree of `{name}`", hint=did_you_mean(name, found))
    shape = tuple(_integers(directory, name, "shape").tolist())
    if len(shape) != format.rank:
        raise FileError(
            f"`{_file(directory, name, 'shape')}` has {len(shape)} dimensions, the format {format} {format.rank} levels"
        )
    levels: list[Fibers] = []
    parents = 1
    for number, (level, dimension) in enumerate(zip(format.levels, format.order, strict=True)):
        levels.append(_level(directory, name, number, level, shape[dimension], parents))
        parents = levels[-1].entries
    values = _numbers(directory, name, "vals")
    if len(values) != parents * prod(tile):
        room = f"{parents} tiles of {tile[0]} x {tile[1]}" if tile else str(parents)
        raise FileError(f"`{_file(directory, name, 'vals')}` holds {len(values)} values, the levels have room for {room}")
    return Tensor(shape, format, tuple(levels), values.reshape(parents, *tile))


def _level(directory: str | Path, name: str, number: int, level: Level, size: int, parents: int) -> Fibers:
    if not level.appended:
        able = names(lambda level: level.appended, "`{}`")
        raise FileError(f"`{directory}`: a {level.text} level is not read from a fibertree", hint=f"{able} are")
    arrays = {array.name: _integers(directory, name, f"{number}_{array.name}") for array in level.arrays(size)}
    try:
        return level.read(size, parents, arrays)
    except Unreadable as error:
        raise FileError(f"`{_file(directory, name, f'{number}_{error.array}')}`: {error.why}") from None


def _integers(directory: str | Path, name: str, column: str) -> Ints:
    path = _file(directory, name, column)
    try:
        return np.array([int(word) for word in read_text(path).split()], dtype=np.int64)
    except (ValueError, OverflowError):
        raise FileError(f"`{path}` holds what is not a whole number") from None


def _numbers(directory: str | Path, name: str, column: str) -> npt.NDArray[np.float64]:
    path = _file(directory, name, column)
    try:
        return np.array([float(word) for word in read_text(path).split()], dtype=np.float64)
    except ValueError:
        raise FileError(f"`{path}` holds what is not a number") from None


def _file(directory: str | Path, name: str, column: str) -> Path:
    return Path(directory) / f"tensor_{name}_mode_{column}"
