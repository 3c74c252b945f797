"""Machine code with vectors, written as LLVM's intermediate representation.

It is for loops whose sums must stay in registers, which a compiler of Python loops does not promise.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir

from fuseflow.native.machine_code import Loader, target_machine
from fuseflow.native.processor import host, host_levels

INTEGER = ir.IntType(64)
REAL = {4: ir.FloatType(), 8: ir.DoubleType()}
"""LLVM's types of floating-point numbers, by their bytes."""
VECTORS = {"x86-64-v4": (64, 32), "x86-64-v3": (32, 16)}
"""The bytes of a vector, and the number of registers for vectors, of processors of a level."""


def vectors() -> tuple[int, int]:
    """Return how many bytes a vector of this processor has, and how many registers for vectors there are at least."""
    return next((VECTORS[level] for level in host_levels() if level in VECTORS), (16, 16))


@dataclass(slots=True)
class Loop:
    """A loop in code that is written. `index` counts from 0. `values` are what the loop carries from pass to pass, and after the
    loop what it ended with; a pass sets them to its results."""

    index: Any
    values: list[Any]


@dataclass(slots=True, eq=False)
class VectorCode:
    """A function in LLVM's intermediate representation, written step by step. Its arguments are addresses and integers of 64
    bits, and it returns nothing. Functions of one `name` are equal, and one of them is compiled. Numbers have `size` bytes (4 or
    8), and a vector has `lanes` of them."""

    name: str
    size: int
    lanes: int
    arguments: int
    function: Any = field(init=False)
    builder: Any = field(init=False)

    def __post_init__(self) -> None:
        kind = ir.FunctionType(ir.VoidType(), [INTEGER] * self.arguments)
        self.function = ir.Function(ir.Module(self.name), kind, self.name)
        self.builder = ir.IRBuilder(self.function.append_basic_block())

    @property
    def real(self) -> Any:
        return REAL[self.size]

    @property
    def vector(self) -> Any:
        return ir.VectorType(self.real, self.lanes)

    @contextmanager
    def loop(self, count: Any, values: Sequence[Any] = ()) -> Iterator[Loop]:
        """Write a loop of `count` passes, at least one, that carries `values`."""
        before, body, after = self.builder.block, self.function.append_basic_block(), self.function.append_basic_block()
        self.builder.branch(body)
        self.builder.position_at_end(body)
        carried = [self.builder.phi(value.type) for value in (INTEGER(0), *values)]
        loop = Loop(carried[0], carried[1:])
        yield loop
        following = [self.builder.add(loop.index, INTEGER(1)), *loop.values]
        for phi, first, value in zip(carried, (INTEGER(0), *values), following, strict=True):
            phi.add_incoming(first, before)
            phi.add_incoming(value, self.builder.block)
        self.builder.cbranch(self.builder.icmp_signed("<", following[0], count), body, after)
        self.builder.position_at_end(after)

    def at(self, base: Any, index: Any, step: Any) -> Any:
        """Return `base` + `index` * `step`: the address of an element. `step` is in bytes."""
        step = INTEGER(step) if isinstance(step, int) else step
        return self.builder.add(base, self.builder.mul(index, step))

    def integer(self, address: Any, bits: int, signed: bool = True) -> Any:
        """Return the integer of `bits` bits at an address."""
        narrow = self.builder.load(self.builder.inttoptr(address, ir.IntType(bits).as_pointer()))
        return self.builder.sext(narrow, INTEGER) if signed else self.builder.zext(narrow, INTEGER)

    def number(self, address: Any, bits: int) -> Any:
        """Return the number at an address. It has the bits of a number here, or it is a bfloat16, which has 16."""
        if bits == 8 * self.size:
            return self.builder.load(self.builder.inttoptr(address, self.real.as_pointer()))
        assert (bits, self.size) == (16, 4)
        high = self.builder.shl(self.builder.trunc(self.integer(address, bits, False), ir.IntType(32)), ir.IntType(32)(16))
        return self.builder.bitcast(high, self.real)

    def store_number(self, value: Any, address: Any) -> None:
        self.builder.store(value, self.builder.inttoptr(address, self.real.as_pointer()))

    def load(self, address: Any, count: int = 1) -> list[Any]:
        """Return `count` vectors that follow each other in memory."""
        return [self.builder.load(self._vector_at(address, k), align=self.size) for k in range(count)]

    def store(self, vectors: Sequence[Any], address: Any) -> None:
        """Store vectors one after the other from an address on."""
        for k, vector in enumerate(vectors):
            self.builder.store(vector, self._vector_at(address, k), align=self.size)

    def _vector_at(self, address: Any, k: int) -> Any:
        return self.builder.inttoptr(self.builder.add(address, INTEGER(k * self.lanes * self.size)), self.vector.as_pointer())

    def everywhere(self, number: Any) -> Any:
        """Return a vector with a number in all lanes."""
        one = self.builder.insert_element(ir.Constant(self.vector, ir.Undefined), number, ir.IntType(32)(0))
        return self.shuffle(one, one, [0] * self.lanes)

    def shuffle(self, left: Any, right: Any, lanes: Sequence[int]) -> Any:
        """Return a vector of the given lanes; those of `right` follow those of `left`."""
        return self.builder.shuffle_vector(left, right, ir.Constant(ir.VectorType(ir.IntType(32), len(lanes)), list(lanes)))

    def multiply_add(self, a: Any, b: Any, added: Any) -> Any:
        """Return `a` * `b` + `added`, rounded once."""
        name = f"llvm.fma.v{self.lanes}f{8 * self.size}"
        fma = self.builder.module.globals.get(name) or ir.Function(
            self.builder.module, ir.FunctionType(self.vector, [self.vector] * 3), name
        )
        return self.builder.call(fma, [a, b, added])

    def total(self, vector: Any) -> Any:
        """Return the sum of the lanes: halves are added to halves."""
        lanes = self.lanes
        while lanes > 1:
            lanes //= 2
            low, high = (self.shuffle(vector, vector, range(start, start + lanes)) for start in (0, lanes))
            vector = self.builder.fadd(low, high)
        return self.builder.extract_element(vector, ir.IntType(32)(0))

    def compiled(self) -> Callable[..., None]:
        """Return the function for this processor. Calls let other threads of Python run."""
        self.builder.ret_void()
        address = _COMPILER.address(self.name, str(self.builder.module))
        return ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * self.arguments)(address)


@dataclass(slots=True, eq=False)
class _Compiler:
    """Functions that are compiled for this processor, each once, whatever the number of threads that ask for it."""

    loader: Loader | None = None
    addresses: dict[str, int] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)

    def address(self, name: str, text: str) -> int:
        with self.lock:
            self.loader = self.loader or Loader(*host())
            if name not in self.addresses:
                module, machine = llvm.parse_assembly(text), target_machine(*host())
                passes = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=3))
                passes.getModulePassManager().run(module, passes)
                self.addresses[name] = self.loader.load(machine.emit_object(module), name)
            return self.addresses[name]


_COMPILER = _Compiler()
"""There is one in a process: code lives as long as its loader, and functions point to it for good."""
