"""This module defines memory as kernels access it: records and numbers at addresses.

A kernel is an ordinary Python function of one address. It reaches its node, streams and runs through typed records at addresses,
so that compiled code passes single integers around, never allocates and reads tensors where they are. Everything here is plain
Python: with `NUMBA_DISABLE_JIT=1` kernels run as plain Python, on `ctypes` views of the same memory. Compiled code has
instructions in the place of the classes of `Instruction` (`numba_compiler.py`), and loading it imports nothing from numba.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from time import sleep
from typing import Any, Literal, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

COMPILED: bool = os.environ.get("NUMBA_DISABLE_JIT", "0") in ("", "0")
"""Whether kernels are compiled; the name of the variable is numba's."""

F = TypeVar("F", bound=Callable[..., Any])
Scalar: TypeAlias = Literal["int64", "int32", "int16", "float64", "float32"]
"""The name of a type of numbers in memory."""
C_TYPES: dict[Scalar, Any] = {
    "int64": ctypes.c_int64,
    "int32": ctypes.c_int32,
    "int16": ctypes.c_int16,
    "float64": ctypes.c_double,
    "float32": ctypes.c_float,
}


def inline(function: F) -> F:
    """Mark a helper of kernels, as a decorator, that is inlined into the kernels that call it."""
    function.__dict__["inlined"] = True
    return function


def outline(function: F) -> F:
    """Mark a helper of kernels, as a decorator, that is seldom needed: the compiler is not told to inline it."""
    function.__dict__["inlined"] = False
    return function


def is_inlined(function: Callable[..., Any]) -> bool:
    """Return whether a helper is always inlined. The compiler decides about one that is not marked."""
    return bool(function.__dict__.get("inlined", False))


# What Python lacks


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class Pointer:
    """An instruction that returns the record at an address, by reference. `fields` has the type of each field."""

    fields: tuple[tuple[str, Scalar], ...]
    view: Any

    def __call__(self, address: int) -> Any:
        return self.view.from_address(address)


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class Load:
    """An instruction that returns the i-th number of the array at an address."""

    scalar: Scalar

    def __call__(self, address: int, i: int) -> Any:
        kind = C_TYPES[self.scalar]
        return kind.from_address(address + ctypes.sizeof(kind) * i).value


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class Store:
    """An instruction that sets the i-th number of the array at an address to a value."""

    scalar: Scalar

    def __call__(self, address: int, i: int, value: Any) -> None:
        kind = C_TYPES[self.scalar]
        kind.from_address(address + ctypes.sizeof(kind) * i).value = value


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class Prefetch:
    """An instruction that asks the processor to load memory into a cache ahead of use. Nothing is read."""

    def __call__(self, address: int) -> None:
        pass


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class TrailingZeros:
    """An instruction that returns the number of zeros below the lowest one of `bits`; there must be a one."""

    def __call__(self, bits: int) -> int:
        return (bits & -bits).bit_length() - 1


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class AtMost:
    """An instruction that returns the set (as bits) of indices of the `LANES` short integers at an address that are at most a limit."""

    def __call__(self, address: int, limit: int) -> int:
        return sum((get_short(address, k) <= limit) << k for k in range(LANES))


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class Least:
    """An instruction that returns the least of those of the `LANES` short integers at an address, none of them negative, whose
    indices are in a set, and of those at another address and in another set, or `LONGEST` if both sets are empty."""

    def __call__(self, address: int, indices: int, other: int, others: int) -> int:
        pairs = ((address, indices), (other, others))
        return min((get_short(at, k) for at, chosen in pairs for k in range(LANES) if chosen >> k & 1), default=LONGEST)


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class RaiseBy:
    """An instruction that raises the `LANES` short integers at an address to those at another address plus a number, where they
    are lower. All are stored at once, since loading a vector soon after a store of a part of it is slow."""

    def __call__(self, address: int, others: int, added: int) -> None:
        for k in range(LANES):
            set_short(address, k, max(get_short(address, k), get_short(others, k) + added))


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class Latest:
    """An instruction that adds the `LANES` short integers at two addresses, and returns the largest sum."""

    def __call__(self, address: int, others: int) -> int:
        return max(get_short(address, k) + get_short(others, k) for k in range(LANES))


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class Equal:
    """An instruction that returns the set of indices of the `WORDS` 32-bit integers at an address that are a number."""

    def __call__(self, address: int, number: int) -> int:
        return sum((get_int32(address, k) == number) << k for k in range(WORDS))


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class Common:
    """An instruction that returns the set of indices of the `WORDS` 32-bit integers at an address that have a bit in common with
    `chosen`."""

    def __call__(self, address: int, chosen: int) -> int:
        return sum((get_int32(address, k) & chosen != 0) << k for k in range(WORDS))


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class Put:
    """An instruction that sets the i-th 32-bit integer of an array at an address that starts with a cache line. The whole line is
    stored, since loading a vector soon after a store of a part of it is slow."""

    def __call__(self, address: int, i: int, number: int) -> None:
        set_int32(address, i, number)


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class BitLength:
    """An instruction that returns the number of bits of a positive integer."""

    def __call__(self, number: int) -> int:
        return number.bit_length()


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class FetchAdd:
    """An instruction that adds to the i-th 64-bit integer of an array at an address, for all threads at once, and returns the sum
    before. What other threads wrote before they added is visible afterwards."""

    def __call__(self, address: int, i: int, value: int) -> int:
        with _one_at_a_time:
            before: int = get_int(address, i)
            set_int(address, i, before + value)
        return before


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class LoadAcquire:
    """An instruction that returns the i-th 64-bit integer of an array at an address. What the thread that released it wrote before is
    visible afterwards."""

    def __call__(self, address: int, i: int) -> int:
        with _one_at_a_time:
            number: int = get_int(address, i)
        return number


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class StoreRelease:
    """An instruction that sets the i-th 64-bit integer of an array at an address, and releases all that this thread wrote before
    to those that acquire the integer."""

    def __call__(self, address: int, i: int, value: int) -> None:
        with _one_at_a_time:
            set_int(address, i, value)


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class YieldProcessor:
    """An instruction that lets another thread run on this processor."""

    def __call__(self) -> None:
        sleep(0)


_one_at_a_time = Lock()

LANES, WORDS = 32, 64
"""The number of short integers, and of 32-bit integers, that one vector instruction compares."""
LONGEST = (1 << 15) - 1
"""The largest short integer."""

get_int, set_int = Load("int64"), Store("int64")
get_float, set_float = Load("float64"), Store("float64")
get_int32, set_int32 = Load("int32"), Store("int32")
get_float32, set_float32 = Load("float32"), Store("float32")
prefetch, trailing_zeros, bit_length = Prefetch(), TrailingZeros(), BitLength()
get_short, set_short = Load("int16"), Store("int16")
at_most, least, raise_by, latest, equal, common, put = AtMost(), Least(), RaiseBy(), Latest(), Equal(), Common(), Put()
fetch_add, load_acquire, store_release, yield_processor = FetchAdd(), LoadAcquire(), StoreRelease(), YieldProcessor()


LINE = 64
"""The bytes of a cache line."""


def whole_lines(size: int) -> int:
    """Return `size` bytes rounded up to whole cache lines."""
    return -(-size // LINE) * LINE


def zeros(count: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return a zeroed array of `count` elements from the start of a cache line, so no record of that size is in two lines."""
    size = count * np.dtype(dtype).itemsize
    room = np.zeros(size + LINE, np.uint8)
    start = -address(room) % LINE
    return room[start : start + size].view(dtype)


class Record:
    """A record type with 64-bit fields, whose names are separated by spaces: integers in `fields`, floats in `floats`.
    `at(address)` returns the record there, by reference."""

    def __init__(self, fields: str, floats: str = "") -> None:
        scalars: list[tuple[str, Scalar]] = [(name, "int64") for name in fields.split()]
        scalars += [(name, "float64") for name in floats.split()]
        self.dtype = np.dtype(scalars)
        self.size = self.dtype.itemsize
        view = type("View", (ctypes.Structure,), {"_fields_": [(name, C_TYPES[scalar]) for name, scalar in scalars]})
        self.at = Pointer(tuple(scalars), view)

    def offset(self, field: str) -> int:
        """Return the number of bytes from the start of a record to a field."""
        assert self.dtype.fields is not None
        return int(self.dtype.fields[field][1])

    def array(self, count: int) -> npt.NDArray[Any]:
        """Return an array of `count` zeroed records, which starts at a cache line."""
        return zeros(count, self.dtype)


def address(array: npt.NDArray[Any]) -> int:
    """Return the address of the elements of a contiguous array; the caller keeps the array alive."""
    assert array.flags.c_contiguous
    if array.nbytes and array.flags.writeable:  # as is nearly always so: this takes a tenth of the time of the other way
        return ctypes.addressof(ctypes.c_char.from_buffer(array))  # type: ignore[arg-type]
    return int(array.ctypes.data)
