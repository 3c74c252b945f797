"""Fibertrees as text files with one number on each line, in the layout that the tools of SAM share.

For a tensor `NAME`, a folder holds the files `tensor_NAME_mode_<level>_{seg,crd}` with the arrays of each level (outermost first),
`tensor_NAME_mode_vals` with the values, and `tensor_NAME_mode_shape` with the size of the dimension that each level stores, in the order
of the levels. For a tensor in blocks, levels and sizes count blocks, and the values are the elements of one tile after the other, row by
row.
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
from fuseflow.tensors.number_text import NotARow, read_columns
from fuseflow.tensors.tensor import Tensor


def write_fibertree(directory: str | Path, name: str, tensor: Tensor) -> None:
    """Write a tensor into a folder. Raise `FileError` where its files cannot be written."""
    sizes = [tensor.shape[dimension] for dimension in tensor.format.order]
    columns: dict[str, npt.NDArray[Any]] = {"shape": np.array(sizes, dtype=np.int64), "vals": tensor.values.reshape(-1)}
    for number, level in enumerate(tensor.levels):
        columns.update({f"{number}_{kind}": numbers for kind, numbers in level.arrays.items()})
    for column, numbers in sorted(columns.items()):
        write_text(_file(directory, name, column), "".join(f"{n}\n" for n in numbers.astype(str).tolist()))


def read_fibertree(directory: str | Path, name: str, format: Format, tile: tuple[int, ...] = (), fill: float = 0.0) -> Tensor:
    """Read the tensor `name` from a folder. It is stored in `format`, whose levels must all be `readable`; its values are tiles
    of the shape `tile`. The folder does not say the implicit value, which is `fill`. Raise `FileError` for missing files, and for
    files that do not hold numbers or do not fit together."""
    if not _file(directory, name, "shape").is_file():
        names_in_folder = sorted(
            path.name[len("tensor_") : -len("_mode_shape")] for path in Path(directory).glob("tensor_*_mode_shape")
        )
        raise FileError(f"`{directory}` holds no fibertree of `{name}`", hint=did_you_mean(name, names_in_folder))
    sizes = _integers(directory, name, "shape").tolist()
    if len(sizes) != format.rank:
        raise FileError(
            f"`{_file(directory, name, 'shape')}` has {len(sizes)} dimensions, the format {format} {format.rank} levels"
        )
    levels: list[Fibers] = []
    parents = 1
    for number, (level, size) in enumerate(zip(format.levels, sizes, strict=True)):
        levels.append(_level(directory, name, number, level, size, parents))
        parents = levels[-1].entries
    shape = tuple(size for _, size in sorted(zip(format.order, sizes, strict=True)))
    values = _column(_file(directory, name, "vals"), np.float64, "number")
    if len(values) != parents * prod(tile):
        capacity = f"{parents} tiles of {tile[0]} x {tile[1]}" if tile else str(parents)
        raise FileError(f"`{_file(directory, name, 'vals')}` holds {len(values)} values, the levels have room for {capacity}")
    return Tensor(shape, format, tuple(levels), values.reshape(parents, *tile), fill)


def _level(directory: str | Path, name: str, number: int, level: Level, size: int, parents: int) -> Fibers:
    if not level.readable:
        readable_levels = names(lambda level: level.readable, "`{}`")
        raise FileError(f"`{directory}`: a {level.text} level is not read from a fibertree", hint=f"{readable_levels} are")
    arrays = {array.name: _integers(directory, name, f"{number}_{array.name}") for array in level.arrays(size)}
    try:
        return level.read(size, parents, arrays)
    except Unreadable as error:
        raise FileError(f"`{_file(directory, name, f'{number}_{error.array}')}`: {error.why}") from None


def _integers(directory: str | Path, name: str, column: str) -> Ints:
    return _column(_file(directory, name, column), np.int64, "whole number")


def _column(path: Path, type: type[np.generic], kind: str) -> npt.NDArray[Any]:
    text = read_text(path)
    try:
        return read_columns(text.encode(), [type])[0]
    except NotARow as error:
        line = text.split("\n")[error.line].strip()
        raise FileError(f"`{path}`, line {error.line + 1}, holds what is not a {kind}: `{line[:40]}`") from None


def _file(directory: str | Path, name: str, column: str) -> Path:
    return Path(directory) / f"tensor_{name}_mode_{column}"
