"""Signatures: the types of arguments and results. A kernel calls another function of a known signature by its address."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fuseflow.native.records import C_TYPES, Scalar

Function = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Signature:
    """The types of the arguments of a function, and of its result (None: it has no result)."""

    result: Scalar | None
    arguments: tuple[Scalar, ...]

    def callable_at(self, address: int) -> Function:
        """Return the function at an address, for calls from Python."""
        result = None if self.result is None else C_TYPES[self.result]
        function: Function = ctypes.CFUNCTYPE(result, *(C_TYPES[argument] for argument in self.arguments))(address)
        return function


def integers(count: int) -> Signature:
    """Return the signature of a function of `count` integers that returns an integer."""
    word: Scalar = "int64"
    return Signature(word, (word,) * count)


KERNEL = integers(1)
"""A kernel: the address of its node record. It returns 0."""
ELEMENTWISE = integers(8)
"""An operator on arrays: the address of the results, their number, and address and stride (in words) of each of three operands."""
FOLD = Signature("float64", ("float64", "int64", "int64", "int64"))
"""A fold: the value so far, address and stride of the values, and their number. It returns the new value."""
SWEEP = integers(3)
"""The loop over parts: the addresses of the nodes and of the agenda, and the number of firings after which it returns."""
FOLD_INTO = integers(4)
"""An elementwise fold: the address of the values so far, address and stride of the new ones, and their number."""
NOTE = integers(5)
"""The function that notes firings: the address of the tracer, the first cycle, the number of firings, the cycle by which their tokens
were visible, and the cycle from which their slots were free."""
ADVANCE = integers(2)
"""A memory model: the address of the memory and the cycle to which it advances."""
SWEEP_AT_MEMORY = integers(6)
"""The signature of the loop over parts at a memory. It takes the arguments of `SWEEP`, the addresses of the memory and of the
function that advances it, and the number of cycles by which it advances at a time."""

SWEEP_TOGETHER = integers(2)
"""The signature of the loop over parts in threads. It takes the address of a worker, and the number of firings after which it returns."""

_plain_functions: list[Function] = []


def plain_address(function: Function) -> int:
    """Return the number that serves as the address of a function that is not compiled."""
    if function not in _plain_functions:
        _plain_functions.append(function)
    return _plain_functions.index(function)


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class Call:
    """An instruction that calls the function at an address, which has this signature."""

    signature: Signature

    def __call__(self, address: int, *arguments: Any) -> Any:
        return _plain_functions[address](*arguments)


call_kernel, call_elementwise, call_fold = Call(KERNEL), Call(ELEMENTWISE), Call(FOLD)
call_fold_into, call_advance, call_note = Call(FOLD_INTO), Call(ADVANCE), Call(NOTE)
