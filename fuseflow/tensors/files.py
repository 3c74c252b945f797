"""Tensors in files: arrays in `.npy`, `.npz` (NumPy or scipy) and `.mtx`, a YAML file that names them, and fibertrees as text.

Reading never unpickles; writing goes to a temporary name that replaces the file when it is complete.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode
from scipy import io, sparse

from fuseflow.errors import FileError, FuseFlowError, Span, did_you_mean
from fuseflow.filesystem import read_text, replacing, write_text
from fuseflow.tensors.dtypes import dtype_named
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
    found = plain_array(array)
    if found.dtype.kind not in "buif":
        raise FileError(f"`{path}` holds elements of type `{found.dtype}`", hint="store integers or real numbers")
    return found


def plain_array(array: npt.ArrayLike | sparse.sparray | sparse.spmatrix) -> ArrayOrSparse:
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


def load_tensors(path: str | Path, inputs: Iterable[Declaration]) -> dict[str, Tensor]:
    """The inputs of a program, packed as declared (`dense` without a format), from a YAML file:

        A: {path: adjacency.mtx}
        x: {path: features.npy}

    Paths are relative to the YAML file. Raises `FileError` for entries that are unknown, missing or do not fit.
    """
    path = Path(path)
    declared = {d.name: d for d in inputs}
    entries = _read_entries(path, declared)
    missing = [name for name in declared if name not in entries]
    if missing:
        names = ", ".join(f"`{name}`" for name in missing)
        raise FileError(f"`{path}` has no entry for {names}", hint=f"add `{missing[0]}: {{path: FILE}}`")
    tensors = {}
    for name, declaration in declared.items():
        file, span = entries[name]
        try:
            tensors[name] = pack_declared(load_array(path.parent / file), declaration)
        except FuseFlowError as error:
            raise FileError(f"tensor `{name}`: {error.message}", hint=error.hint, span=span) from error
    return tensors


def pack_declared(array: ArrayOrSparse, declaration: Declaration) -> Tensor:
    """Pack an array in the format, dtype and implicit value declared; raises `FileError` if it does not fit."""
    if array.shape != declaration.shape:
        raise FileError(f"shape {list(array.shape)}, declared {list(declaration.shape)}")
    dtype = dtype_named(declaration.dtype)
    exact = array if isinstance(array, np.ndarray) else array.data
    with np.errstate(invalid="ignore"):
        lost = dtype.kind == "i" and not np.array_equal(exact.astype(dtype), exact)
    if lost:
        raise FileError(f"some values are not of the declared type {declaration.dtype}", hint="declare `f32` or `f64`")
    return pack(array.astype(dtype), declaration.format or Format.dense(len(declaration.shape)), declaration.fill)


def _read_entries(path: Path, known: Iterable[str]) -> dict[str, tuple[str, Span]]:
    """File name and place of each tensor's entry."""
    text = read_text(path)
    try:
        root = YAML(typ="safe", pure=True).compose(text)
    except YAMLError as error:
        mark = error.problem_mark if isinstance(error, MarkedYAMLError) else None
        span = Span(str(path), mark.line + 1, mark.column + 1) if mark else None
        problem = error.problem if isinstance(error, MarkedYAMLError) else error
        raise FileError(f"not YAML: {problem}", span=span) from error
    entries = {}
    names = list(known)
    for name, value, span in _pairs(root, path, "a list of tensors, as in `A: {path: a.npz}`"):
        if name not in names:
            raise FileError(f"the program has no input `{name}`", hint=did_you_mean(name, names), span=span)
        if name in entries:
            raise FileError(f"tensor `{name}` has two entries", span=span)
        entries[name] = (_path_of(name, value, path), span)
    return entries


def _path_of(name: str, node: Node, path: Path) -> str:
    found = ""
    for key, value, span in _pairs(node, path, f"`{name}: {{path: FILE}}`"):
        if key != "path":
            raise FileError(f"unknown key `{name}.{key}`", hint=did_you_mean(key, ["path"]), span=span)
        if not isinstance(value, ScalarNode) or not value.value:
            raise FileError(f"`{name}.path` is not a file name", span=span)
        found = value.value
    if not found:
        raise FileError(f"tensor `{name}` has no `path`", hint=f"write `{name}: {{path: FILE}}`", span=_span(node, path))
    return found


def _pairs(node: Node | None, path: Path, expected: str) -> Iterator[tuple[str, Node, Span]]:
    if node is None:
        return
    if not isinstance(node, MappingNode):
        raise FileError(f"expected {expected}", span=_span(node, path))
    for key, value in node.value:
        if not isinstance(key, ScalarNode):
            raise FileError(f"expected {expected}", span=_span(key, path))
        yield key.value, value, _span(key, path)


def _span(node: Node, path: Path) -> Span:
    return Span(str(path), node.start_mark.line + 1, node.start_mark.column + 1)


def save_array(path: str | Path, array: npt.ArrayLike | sparse.sparray | sparse.spmatrix) -> None:
    """Write an array that `load_array` reads: `.npy` dense, `.npz` sparse or dense, `.mtx` a matrix."""
    path, found = Path(path), plain_array(array)
    kind, suffixes = ("a dense", tuple(_READERS)) if isinstance(found, np.ndarray) else ("a sparse", (".npz", ".mtx"))
    if path.suffix not in suffixes:
        raise FileError(f"cannot write {kind} array to `{path}`", hint=f"known: {', '.join(suffixes)}")
    if path.suffix == ".mtx" and found.ndim != 2:
        raise FileError(f"cannot write an array of {found.ndim} dimensions to `{path}`", hint="`.mtx` holds matrices")
    with replacing(path) as temporary, temporary.open("wb") as stream:
        if path.suffix == ".mtx":
            io.mmwrite(stream, found)
        elif not isinstance(found, np.ndarray):
            sparse.save_npz(stream, found)
        elif path.suffix == ".npz":
            np.savez(stream, array=found)
        else:
            np.save(stream, found, allow_pickle=False)


def write_fibertree(directory: str | Path, name: str, tensor: Tensor) -> None:
    """Write a tensor as text files, one number a line: `tensor_<name>_mode_<level>_{seg,crd}` (levels outermost first; what the
    level stores), `tensor_<name>_mode_vals`, and `tensor_<name>_mode_shape` in dimension order."""
    columns: dict[str, npt.NDArray[Any]] = {"shape": np.array(tensor.shape, dtype=np.int64), "vals": tensor.values}
    for number, level in enumerate(tensor.levels):
        columns.update({f"{number}_{kind}": numbers for kind, numbers in level.arrays.items()})
    for column, numbers in sorted(columns.items()):
        write_text(Path(directory) / f"tensor_{name}_mode_{column}", "".join(f"{n}\n" for n in numbers.astype(str).tolist()))
