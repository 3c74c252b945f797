"""Reading and writing arrays in `.npy`, `.npz` (NumPy or scipy) and `.mtx` files.

Reading never unpickles an object. Writing uses a temporary file that replaces the old one when it is complete.

Fibertrees are text files with one number on each line, in the layout that the tools of SAM share. For a tensor `NAME`, a folder holds the
files `tensor_NAME_mode_<level>_{seg,crd}` with the arrays of each level (outermost first), `tensor_NAME_mode_vals` with the values, and
`tensor_NAME_mode_shape` with the size of the dimension that each level stores, in the order of the levels. For a tensor in blocks, levels
and sizes count blocks, and the values are the elements of one tile after the other, row by row.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from fuseflow.errors import FileError, FuseFlowError, TensorError, did_you_mean
from fuseflow.filesystem import read_text, replace_file, write_text
from fuseflow.tensors.dtypes import EXACT_INTEGERS, ElementType, parse_dtype
from fuseflow.tensors.format import Format
from fuseflow.tensors.levels import Fibers, Level, names
from fuseflow.tensors.levels.base import Ints, Unreadable
from fuseflow.tensors.mtx_files import read_mtx
from fuseflow.tensors.npy_files import open_npz, read_npy, read_sparse
from fuseflow.tensors.number_text import NotARow, read_columns
from fuseflow.tensors.pack import add_up, from_coordinates, is_compressed, is_scipy, pack
from fuseflow.tensors.tensor import Tensor

if TYPE_CHECKING:
    from scipy import sparse


ArrayOrSparse: TypeAlias = "npt.NDArray[Any] | sparse.coo_array"


class Declaration(Protocol):
    """The declaration of an input, which is known before its data is read. The `TensorType` of an Einsum program is one."""

    @property
    def name(self) -> str: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def format(self) -> Format | None: ...
    @property
    def dtype(self) -> str: ...
    @property
    def fill(self) -> float: ...


def load_array(path: str | Path) -> ArrayOrSparse:
    """Return the array in a `.npy` file, a `.npz` file (one NumPy array or a scipy sparse array) or a `.mtx` file.

    Raise `FileError` if the file is missing, does not hold an array, or holds elements that are not real numbers.
    """
    path = Path(path)
    if "\0" in str(path) or not path.is_file():
        raise FileError(f"`{path}` is not a file" if "\0" not in str(path) and path.exists() else f"no file `{path}`")
    if path.suffix not in _READERS:
        raise FileError(f"cannot read `{path}`: unknown kind of file `{path.suffix}`", hint=f"known: {', '.join(_READERS)}")
    try:
        content = _READERS[path.suffix](path)
    except FuseFlowError:
        raise
    except Exception as error:  # the readers raise whatever their parsers meet in a damaged file
        raise FileError(f"cannot read `{path}`: {error}") from error
    array = as_array_or_sparse(content)
    if array.dtype.kind not in "buif":
        raise FileError(f"`{path}` holds elements of type `{array.dtype}`", hint="store integers or real numbers")
    return array


def as_array_or_sparse(array: npt.ArrayLike | sparse.sparray | sparse.spmatrix) -> ArrayOrSparse:
    """Return a scipy COO array for a scipy matrix or array, and a NumPy array for anything else."""
    content: Any = array
    if not is_scipy(content):
        return np.asarray(content)
    from scipy import sparse  # see `pack.is_scipy`

    return sparse.coo_array(content)


def _load_npz(path: Path) -> Any:
    with open_npz(path) as archive:
        names = archive.names
        if "format" in names:
            return read_sparse(path, archive)
        if len(names) == 1:
            return archive[names[0]]
    contents = ", ".join(f"`{name}`" for name in names[:8]) or "no array"
    raise FileError(f"`{path}` holds {contents}", hint="store one array, or a sparse one by `scipy.sparse.save_npz`")


_READERS: dict[str, Callable[[Path], Any]] = {".npy": read_npy, ".npz": _load_npz, ".mtx": read_mtx}


def pack_declared(array: Any, declaration: Declaration, *, copy: bool = True) -> Tensor:
    """Pack an array of NumPy or scipy with the format, dtype and implicit value of its declaration. Without `copy`, the tensor
    may share the memory of the array. Raise `FileError` if shape or values do not fit."""
    if not (is_scipy(array) and array.format in ("csr", "csc")):  # those two are packed as they are
        array = as_array_or_sparse(array)
    check_shape(array.shape, declaration.shape)
    type = parse_dtype(declaration.dtype)
    format = declaration.format or Format.dense(len(declaration.shape))
    if isinstance(array, np.ndarray):
        stored = array if type.has_zero or format.all_dense else np.where(array == declaration.fill, 1, array)
        check_values(stored, declaration.dtype)
        return pack(type.hold(array), format, declaration.fill, copy=copy, type=type)
    if array.dtype.kind in "biu" and not _is_canonical(array):
        array = _added_up(array)
    if type.narrow:
        return _pack_narrow(array, declaration, format, type)
    check_values(array.data, declaration.dtype, lambda: np.array(array.tocoo().coords))
    with np.errstate(over="ignore"):  # values beyond the type become infinite in it, as in `ElementType.hold`
        held = array.astype(type.holder, copy=False)
    return pack(held, format, declaration.fill, copy=copy)


def check_declared(tensor: Tensor, declaration: Declaration) -> None:
    """Raise `FileError` unless a tensor is packed as `pack_declared` packs it: in single elements, with this type and implicit value."""
    check_shape(tensor.shape, declaration.shape)
    format = declaration.format or Format.dense(len(declaration.shape))
    packed = (tensor.element_type.name, str(tensor.format), f"implicit value {tensor.fill:g}", *map(str, tensor.tile))
    declared = (parse_dtype(declaration.dtype).name, str(format), f"implicit value {declaration.fill:g}")
    if packed != declared:
        raise FileError(f"packed as {', '.join(packed)}, declared {', '.join(declared)}", hint="pass an array instead")


def _is_canonical(array: Any) -> bool:
    """Return whether a scipy array is known, without a sort, to have no two entries at the same coordinates."""
    if array.format not in ("csr", "csc"):
        return False
    rows, columns = array.shape if array.format == "csr" else array.shape[::-1]
    return is_compressed(rows, columns, array.indptr, array.indices)


def _added_up(array: Any) -> sparse.coo_array:
    """Return a sparse array of scipy in the order of its coordinates, each once. Values are added up in their own type, so that a
    sum does not depend on the declared type. (scipy lets integers wrap around.)"""
    from scipy import sparse  # see `pack.is_scipy`

    coo = sparse.coo_array(array)
    coordinates, values = add_up(np.array(coo.coords, dtype=np.int64), coo.data)
    return sparse.coo_array((values, tuple(coordinates)), shape=coo.shape)


def _pack_narrow(array: Any, declaration: Declaration, format: Format, type: ElementType) -> Tensor:
    """Pack a sparse array of scipy in a narrow type; scipy itself has no floats of 16 bits. Entries at equal coordinates are
    added before their sum is rounded."""
    if declaration.fill != 0:
        raise TensorError("a scipy array has the implicit value 0", hint="pass a dense array or coordinates")
    coo = _added_up(array.astype(np.float64) if array.dtype.kind == "f" else array)
    coordinates = np.array(coo.coords, dtype=np.int64)
    check_values(coo.data, declaration.dtype, lambda: coordinates)
    return from_coordinates(coo.shape, coordinates, type.hold(coo.data.astype(np.float64)), format, 0.0, type)


def check_shape(actual: tuple[int, ...], declared: tuple[int, ...]) -> None:
    """Raise `FileError` unless the shapes are equal. The message names the first dimension that differs."""
    if actual != declared:
        sizes = enumerate(zip(actual, declared, strict=False)) if len(actual) == len(declared) else ()
        difference = next((f": dimension {d} has size {one}, not {other}" for d, (one, other) in sizes if one != other), "")
        raise FileError(f"shape {list(actual)}, declared {list(declared)}{difference}")


def check_values(values: npt.NDArray[Any], declared: str, coordinates: Callable[[], npt.NDArray[Any]] | None = None) -> None:
    """Raise `FileError` if some values are none of the declared type, which has no number to round them to, or are integers so large that
    computing would round them. `values` is an array, or a list of entries that stand at `coordinates`, an array [rank, n]."""
    type = parse_dtype(declared)
    if type.is_integer:
        least, greatest = type.range
        numbers = f"whole, from {least} to {greatest}"
        with np.errstate(invalid="ignore"):
            refused = values.astype(type.holder) != values
        if type.narrow:
            refused |= (values < least) | (values > greatest)
    elif type.narrow:
        refused, numbers = type.unholdable(values), "not NaN" if type.has_zero else "powers of 2"
    else:
        return
    if refused.any():
        first = int(np.flatnonzero(refused)[0])
        place = (
            np.unravel_index(first, values.shape) if coordinates is None else coordinates()[:, first // prod(values.shape[1:])]
        )
        raise FileError(
            f"some values are not of the declared type {declared}, whose numbers are {numbers}: the first is "
            f"{values.reshape(-1)[first]} at ({', '.join(map(str, place))})",
            hint="declare `f32` or `f64`, or scale and round the values first",
        )
    if type.is_integer and type.bits == 64 and values.size:
        largest = max(int(values.max()), -int(values.min()))
        if largest >= EXACT_INTEGERS:
            raise FileError(
                f"the magnitude {largest} of a value is 2^53 or more: values are computed in 64-bit floats, which round such integers",
                hint="scale the integers down, or declare `f64` and accept the rounding",
            )


def save_array(path: str | Path, array: npt.ArrayLike | sparse.sparray | sparse.spmatrix) -> None:
    """Write an array to a file that `load_array` reads. A `.npy` file takes a dense array, a `.npz` file any, and a `.mtx` file a matrix.

    Raise `FileError` for another suffix or where the file cannot be written.
    """
    path, content = Path(path), as_array_or_sparse(array)
    kind, suffixes = ("a dense", tuple(_READERS)) if isinstance(content, np.ndarray) else ("a sparse", (".npz", ".mtx"))
    if path.suffix not in suffixes:
        raise FileError(f"cannot write {kind} array to `{path}`", hint=f"known: {', '.join(suffixes)}")
    if path.suffix == ".mtx" and content.ndim != 2:
        raise FileError(f"cannot write an array of {content.ndim} dimensions to `{path}`", hint="`.mtx` holds matrices")
    from scipy import io, sparse  # see `pack.is_scipy`

    with replace_file(path) as temporary, temporary.open("wb") as stream:
        if path.suffix == ".mtx":
            io.mmwrite(stream, content)
        elif not isinstance(content, np.ndarray):
            sparse.save_npz(stream, content)
        elif path.suffix == ".npz":
            np.savez(stream, array=content)
        else:
            np.save(stream, content, allow_pickle=False)


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
