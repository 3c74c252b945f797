"""This module is memory as kernels see it: records and numbers at addresses.

A kernel is an ordinary Python function of one address. It reaches its node, streams and runs through typed records at addresses,
so that compiled code passes single integers around, never allocates and reads tensors where they are. Without a compiler
(`NUMBA_DISABLE_JIT=1`) the same functions run as plain Python on `ctypes` views of the same memory.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, TypeVar

import numba
import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.core import cgutils, config
from numba.extending import intrinsic, register_jitable

_settings: Any = config
COMPILED: bool = not _settings.DISABLE_JIT

F = TypeVar("F", bound=Callable[..., Any])


def inline(function: F) -> F:
    """Mark a helper of kernels, as a decorator, that is inlined into the kernels that call it."""
    helper: F = register_jitable(forceinline=True)(function) if COMPILED else function
    return helper


def outline(function: F) -> F:
    """Mark a helper of kernels, as a decorator, that is seldom needed and stays a function of its own."""
    helper: F = register_jitable(function) if COMPILED else function
    return helper


class Record:
    """A record type has 64-bit fields, which are integers, except those in `floats`. `at(address)` returns the record there, by
    reference."""

    def __init__(self, fields: str, floats: str = "") -> None:
        names = [*fields.split(), *floats.split()]
        float_names = set(floats.split())
        self.dtype = np.dtype([(name, np.float64 if name in float_names else np.int64) for name in names])
        self.size = self.dtype.itemsize
        self.at: Callable[[int], Any] = _pointer(self.dtype) if COMPILED else _view(names, float_names)

    def offset(self, field: str) -> int:
        """Return the number of bytes from the start of a record to a field."""
        assert self.dtype.fields is not None
        return int(self.dtype.fields[field][1])

    def array(self, count: int) -> npt.NDArray[Any]:
        """Return an array of so many zeroed records (at least one)."""
        return np.zeros(max(count, 1), self.dtype)


def _view(names: list[str], float_names: set[str]) -> Callable[[int], Any]:
    fields = [(name, ctypes.c_double if name in float_names else ctypes.c_int64) for name in names]
    view: Any = type("View", (ctypes.Structure,), {"_fields_": fields})
    return lambda address: view.from_address(address)


def _pointer(dtype: np.dtype[Any]) -> Callable[[int], Any]:
    record = numba.from_dtype(dtype)

    @intrinsic
    def at(typing_context: Any, address: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.inttoptr(args[0], context.get_value_type(record))

        return record(types.int64), generate

    pointer: Any = at
    return pointer


def _cells(numba_type: Any, llvm_type: Any, c_type: Any) -> tuple[Callable[[int, int], Any], Callable[[int, int, Any], None]]:
    """Return the functions `get(address, i)` and `set(address, i, value)` of the i-th number of an array at an address."""
    if not COMPILED:
        size = ctypes.sizeof(c_type)

        def plain_get(address: int, i: int) -> Any:
            return c_type.from_address(address + size * i).value

        def plain_set(address: int, i: int, value: Any) -> None:
            c_type.from_address(address + size * i).value = value

        return plain_get, plain_set

    @intrinsic
    def get(typing_context: Any, address: Any, i: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.load(builder.gep(builder.inttoptr(args[0], llvm_type.as_pointer()), [args[1]]))

        return numba_type(types.int64, types.int64), generate

    @intrinsic
    def put(typing_context: Any, address: Any, i: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            builder.store(args[2], builder.gep(builder.inttoptr(args[0], llvm_type.as_pointer()), [args[1]]))
            return context.get_dummy_value()

        return types.void(types.int64, types.int64, numba_type), generate

    cells: Any = (get, put)
    return cells


get_int, set_int = _cells(types.int64, ir.IntType(64), ctypes.c_int64)
get_float, set_float = _cells(types.float64, ir.DoubleType(), ctypes.c_double)
get_int32, set_int32 = _cells(types.int32, ir.IntType(32), ctypes.c_int32)
get_float32, set_float32 = _cells(types.float32, ir.FloatType(), ctypes.c_float)


def _prefetch() -> Callable[[int], None]:
    """Return `prefetch(address)`, which asks the processor to bring memory close that is read soon, and reads nothing."""
    if not COMPILED:
        return lambda address: None

    @intrinsic
    def prefetch(typing_context: Any, address: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            word, byte = ir.IntType(32), ir.IntType(8).as_pointer()
            kind = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
            insert: Any = cgutils.get_or_insert_function
            function = insert(builder.module, kind, "llvm.prefetch.p0i8")
            builder.call(function, [builder.inttoptr(args[0], byte), word(0), word(3), word(1)])
            return context.get_dummy_value()

        return types.void(types.int64), generate

    intrinsic_function: Any = prefetch
    return intrinsic_function


prefetch = _prefetch()


def _trailing_zeros() -> Callable[[int], int]:
    """Return `trailing_zeros(bits)`, the number of zeros below the lowest one; `bits` must have a one."""
    if not COMPILED:
        return lambda bits: (bits & -bits).bit_length() - 1

    @intrinsic
    def trailing_zeros(typing_context: Any, bits: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.cttz(args[0], ir.IntType(1)(1))

        return types.int64(types.int64), generate

    intrinsic_function: Any = trailing_zeros
    return intrinsic_function


trailing_zeros = _trailing_zeros()


def address(array: npt.NDArray[Any]) -> int:
    """Return the address of the elements of a contiguous array; the caller keeps the array alive."""
    assert array.flags.c_contiguous
    return int(array.ctypes.data)
