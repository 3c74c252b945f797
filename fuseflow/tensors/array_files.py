"""Arrays in files: `.npy`, `.npz` (NumPy or scipy) and `.mtx`.

Reading never unpickles; writing goes to a temporary name that replaces the file when it is complete.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import io, sparse

from fuseflow.errors import FileError, FuseFlowError
from fuseflow.filesystem import replace_file
from fuseflow.tensors.dtypes import parse_dtype
from fuseflow.tensors.format import Format
from fuseflow.tensors.pack import pack
from fuseflow.tensors.tensor import Tensor

ArrayOrSparse: TypeAlias = npt.NDArray[Any] | sparse.coo_array


class Declaration(Protocol):
    """What is known of an input before its data is read (an Einsum program's `TensorType`)."""

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
    """The array in a `.npy` file, a `.npz` file (one NumPy array or a scipy sparse array) or a `.mtx` file.

    Raises `FileError` if the file is missing, holds something else, or holds what is not real numbers.
    """
    path = Path(path)
    if not path.is_file():
        raise FileError(f"no file `{path}`" if not path.exists() else f"`{path}` is not a file")
    if path.suffix not in _READERS:
        raise FileError(f"cannot read `{path}`: unknown kind of file `{path.suffix}`", hint=f"known: {', '.join(_READERS)}")
    try:
        array = _READERS[path.suffix](path)
    except FuseFlowError:
        raise
    except Exception as error:  # the readers raise whatever their parsers meet in a damaged file
        problem = "Python objects, or no array at all" if "pickle" in str(error) else str(error)
        raise FileError(f"cannot read `{path}`: {problem}") from error
    found = as_array_or_sparse(array)
    if found.dtype.kind not in "buif":
        raise FileError(f"`{path}` holds elements of type `{found.dtype}`", hint="store integers or real numbers")
    return found


def as_array_or_sparse(array: npt.ArrayLike | sparse.sparray | sparse.spmatrix) -> ArrayOrSparse:
    """A NumPy array, or a scipy COO array of what is sparse."""
    return sparse.coo_array(array) if sparse.issparse(array) else np.asarray(array)


def _load_npy(path: Path) -> Any:
    array = np.load(path, allow_pickle=False)
    if not isinstance(array, np.ndarray):
        raise FileError(f"`{path}` does not hold one NumPy array", hint="an archive of arrays is a `.npz` file")
    return array


def _load_npz(path: Path) -> Any:
    with np.load(path, allow_pickle=False) as archive:
        names = archive.files
        if "format" not in names and len(names) == 1:
            return archive[names[0]]
    if "format" in names:
        return sparse.load_npz(path)
    shown = ", ".join(f"`{name}`" for name in names) or "no array"
    raise FileError(f"`{path}` holds {shown}", hint="store one array, or a sparse one by `scipy.sparse.save_npz`")


_READERS: dict[str, Callable[[Path], Any]] = {".npy": _load_npy, ".npz": _load_npz, ".mtx": io.mmread}


def pack_declared(array: ArrayOrSparse, declaration: Declaration) -> Tensor:
    """Pack an array in the format, dtype and implicit value declared; raises `FileError` if it does not fit."""
    if array.shape != declaration.shape:
        sizes = enumerate(zip(array.shape, declaration.shape, strict=False)) if array.ndim == len(declaration.shape) else ()
        wrong = next((f": dimension {d} has size {given}, not {size}" for d, (given, size) in sizes if given != size), "")
        raise FileError(f"shape {list(array.shape)}, declared {list(declaration.shape)}{wrong}")
    dtype = parse_dtype(declaration.dtype)
    exact = array if isinstance(array, np.ndarray) else array.data
    with np.errstate(invalid="ignore"):
        lost = dtype.kind == "i" and not np.array_equal(exact.astype(dtype), exact)
    if lost:
        raise FileError(f"some values are not of the declared type {declaration.dtype}", hint="declare `f32` or `f64`")
    return pack(array.astype(dtype), declaration.format or Format.dense(len(declaration.shape)), declaration.fill)


def save_array(path: str | Path, array: npt.ArrayLike | sparse.sparray | sparse.spmatrix) -> None:
    """Write an array that `load_array` reads: `.npy` dense, `.npz` sparse or dense, `.mtx` a matrix."""
    path, found = Path(path), as_array_or_sparse(array)
    kind, suffixes = ("a dense", tuple(_READERS)) if isinstance(found, np.ndarray) else ("a sparse", (".npz", ".mtx"))
    if path.suffix not in suffixes:
        raise FileError(f"cannot write {kind} array to `{path}`", hint=f"known: {', '.join(suffixes)}")
    if path.suffix == ".mtx" and found.ndim != 2:
        raise FileError(f"cannot write an array of {found.ndim} dimensions to `{path}`", hint="`.mtx` holds matrices")
    with replace_file(path) as temporary, temporary.open("wb") as stream:
        if path.suffix == ".mtx":
            io.mmwrite(stream, found)
        elif not isinstance(found, np.ndarray):
            sparse.save_npz(stream, found)
        elif path.suffix == ".npz":
            np.savez(stream, array=found)
        else:
            np.save(stream, found, allow_pickle=False)
