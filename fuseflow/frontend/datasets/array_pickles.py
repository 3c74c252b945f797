"""Pickles of arrays, sparse matrices and dictionaries of lists, read without calling anything that they name.

A pickle names functions and the arguments to call them with. Here each name stands for a record that keeps its arguments, and the
arrays are made of these records afterwards, once sizes and types were compared with the bytes that are there.
"""

from __future__ import annotations

import io
import pickle
import pickletools
import re
from collections import defaultdict
from math import prod
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from scipy import sparse

_MOST_OPERATIONS: Final = 50_000_000
_FORBIDDEN: Final = frozenset({"EXT1", "EXT2", "EXT4", "PERSID", "BINPERSID", "INST", "OBJ", "NEXT_BUFFER", "READONLY_BUFFER"})
_MEMO: Final = frozenset({"PUT", "BINPUT", "LONG_BINPUT", "GET", "BINGET", "LONG_BINGET"})
_ELEMENT: Final = re.compile(r"[biuf](?:1|2|4|8)|b1")


class PickledType:
    """The type of the elements of an array in a pickle, as the pickle describes it."""

    def __init__(self, name: object = "", *_: object) -> None:
        self.name, self.order = name, "="

    def __setstate__(self, state: Any) -> None:
        self.order = state[1]

    def dtype(self) -> np.dtype[Any]:
        """Return the type for NumPy. Raise `ValueError` unless its elements are numbers."""
        if not isinstance(self.name, str) or not _ELEMENT.fullmatch(self.name) or self.order not in ("=", "|", "<", ">"):
            raise ValueError("an array does not hold numbers")
        return np.dtype(self.name if self.order == "=" else self.order + self.name)


class _Record:
    """What a pickle says of a value: its `state`."""

    state: Any = None

    def __setstate__(self, state: Any) -> None:
        self.state = state


class PickledArray(_Record):
    """An array in a pickle: its `state` has the shape, the element type and the bytes."""

    @classmethod
    def reconstruct(cls, *_: object) -> PickledArray:
        return cls()


class PickledMatrix(_Record):
    """A CSR matrix of scipy in a pickle."""

    def csr(self) -> sparse.csr_array:
        """Return the matrix. Raise `ValueError` if its arrays do not fit together."""
        if not isinstance(self.state, dict):
            raise ValueError("a matrix has no arrays")
        data, indices, indptr = (array_of(self.state.get(key), 1) for key in ("data", "indices", "indptr"))
        shape = self.state.get("_shape")
        if (
            not isinstance(shape, tuple)
            or len(shape) != 2
            or not all(isinstance(size, int) and 0 <= size < 2**31 for size in shape)
        ):
            raise ValueError("a matrix has no two sizes")
        if indices.dtype.kind != "i" or indptr.dtype.kind != "i":
            raise ValueError("the positions of a matrix are no whole numbers")
        if indptr.min(initial=0) < 0 or (indptr[1:] < indptr[:-1]).any():
            raise ValueError("the positions of a matrix are negative or fall")
        matrix = sparse.csr_array((data.copy(), indices.copy(), indptr.copy()), shape=shape)
        matrix.check_format(full_check=True)
        return matrix


def array_of(value: object, rank: int) -> npt.NDArray[Any]:
    """Return an array from its record in a pickle. Raise `ValueError` for a value that is no array of this rank."""
    if not isinstance(value, PickledArray) or value.state is None:
        raise ValueError(f"there is no array of {rank} dimensions")
    _, shape, kind, in_columns, content = value.state
    content = content.encode("latin-1") if isinstance(content, str) else content
    sizes = isinstance(shape, tuple) and all(isinstance(size, int) and size >= 0 for size in shape)
    if not sizes or len(shape) != rank or not isinstance(kind, PickledType) or not isinstance(content, bytes):
        raise ValueError(f"there is no array of {rank} dimensions")
    dtype = kind.dtype()
    if prod(shape) * dtype.itemsize != len(content):
        raise ValueError(f"an array of {list(shape)} does not have {len(content):,} bytes")
    flat = np.frombuffer(content, dtype)
    return flat.reshape(shape[::-1]).T if in_columns else flat.reshape(shape)


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        match module, name:
            case ("scipy.sparse.csr" | "scipy.sparse._csr", "csr_matrix"):
                return PickledMatrix
            case ("numpy.core.multiarray" | "numpy._core.multiarray", "_reconstruct"):
                return PickledArray.reconstruct
            case ("numpy", "ndarray"):
                return PickledArray
            case ("numpy", "dtype"):
                return PickledType
            case ("collections", "defaultdict"):
                return defaultdict
            case ("__builtin__" | "builtins", "list"):
                return list
        raise pickle.UnpicklingError(f"`{module}.{name}` is not a numpy or scipy array")


def read_pickle(content: bytes) -> Any:
    """Return the value of a pickle, with records in the place of arrays and matrices. A damaged one raises any error of Python."""
    _screen(content)
    return _Unpickler(io.BytesIO(content), encoding="latin1").load()


def _screen(content: bytes) -> None:
    """Raise `ValueError` for operations that no array needs, and for an index into the memo of the unpickler beyond the
    operations, for which Python would take memory at once."""
    for number, (operation, argument, _) in enumerate(pickletools.genops(content)):
        if operation.name in _FORBIDDEN or number > _MOST_OPERATIONS:
            raise ValueError(f"a pickle of arrays has no operation {operation.name}")
        if operation.name in _MEMO and not 0 <= int(argument or 0) <= number:
            raise ValueError(f"it refers to the value {argument} of {number}")
