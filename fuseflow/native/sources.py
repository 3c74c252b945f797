"""This module finds the sources of a kernel, and computes their digest, under which the object code is stored.

The sources are the kernel's function and all helpers that it calls, directly or not, with the numbers and records that they name.
The digest has the bytes of the files that define those functions, and no paths: equal sources have equal digests, wherever they
are.
"""

from __future__ import annotations

import builtins
import dis
import hashlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import TypeAlias, get_args

from fuseflow.errors import SimulationError
from fuseflow.native.records import (
    AtMost,
    BitLength,
    Common,
    Equal,
    FetchAdd,
    Latest,
    Least,
    Load,
    LoadAcquire,
    Pointer,
    Prefetch,
    Put,
    RaiseBy,
    Store,
    StoreRelease,
    TrailingZeros,
    YieldProcessor,
    is_inlined,
)
from fuseflow.native.signatures import Call, Function, Signature

Instruction: TypeAlias = (
    Pointer | Load | Store | Prefetch | TrailingZeros | BitLength | AtMost | Least | RaiseBy | Latest | Equal | Common | Put | FetchAdd
    | LoadAcquire | StoreRelease | YieldProcessor | Call
)  # fmt: skip
"""Operations that Python lacks, and that compiled code has as one or two instructions."""
COMPILER_FILES = ("machine_code.py", "numba_compiler.py", "records.py", "signatures.py")
"""The files whose text affects the object code of all kernels."""
_NOTHING = object()
INSTRUCTIONS = get_args(Instruction)


class KernelError(SimulationError):
    """A kernel does what compiled kernels cannot do."""

    code = "kernel"


@dataclass(slots=True)
class Parts:
    """All functions and instructions of a kernel, and one line of text for each function and each name that they use."""

    functions: dict[FunctionType, None] = field(default_factory=dict)
    instructions: dict[Instruction, None] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)


def parts_of(function: Function) -> Parts:
    """Return the parts of a kernel. Raise `KernelError` if it names anything but functions, instructions, numbers, texts, modules
    outside of fuseflow and built-in names of Python."""
    assert isinstance(function, FunctionType)
    parts, waiting = Parts(), [function]
    while waiting:
        current = waiting.pop()
        if current not in parts.functions:
            parts.functions[current] = None
            own = _own_parts(current)
            parts.lines += own.lines
            parts.instructions |= own.instructions
            waiting += own.functions
    return parts


@cache
def _own_parts(function: FunctionType) -> Parts:
    """Return the lines of one function, and the functions and instructions that it names. Kernels share most of their functions."""
    own = Parts(lines=[f"{_title(function)} inlined={is_inlined(function)} defaults={function.__defaults__}"])
    for name, value in _named_values(function):
        if not _is_known(value, name):
            _refuse_if_used(function, name, value)
            continue
        own.lines.append(f"{name} = {_describe(value)}")
        if isinstance(value, FunctionType):
            own.functions[value] = None
        elif isinstance(value, INSTRUCTIONS):
            own.instructions[value] = None
    return own


def source_digest(function: Function, signature: Signature) -> str:
    """Return the digest of the sources of a kernel, its signature and the compiler."""
    from llvmlite import __version__ as llvmlite_version

    parts = parts_of(function)
    digest = hashlib.sha256(f"{llvmlite_version}\n{function.__qualname__} {signature}\n".encode())
    digest.update("\n".join(parts.lines).encode())
    for module in sorted({part.__module__ for part in parts.functions}):
        digest.update(f"\n{module} {_file_digest(module)}".encode())
    digest.update(_compiler_digest())
    return digest.hexdigest()


def bytecode_digest(function: Function) -> str:
    """Return a digest of the kernel as this process has it in memory. It distinguishes a kernel of a file that was edited after
    its import from a kernel of the file as it now is. It depends on the version of Python."""
    digest = hashlib.sha256()
    for part in parts_of(function).functions:
        digest.update(_own_bytecode(part))
    return f"{sys.implementation.cache_tag} {digest.hexdigest()}"


@cache
def _own_bytecode(function: FunctionType) -> bytes:
    """Return the bytecode of one function, with the names and constants that it uses."""
    text = b""
    for code in _codes(function.__code__):
        constants = [constant for constant in code.co_consts if not isinstance(constant, CodeType)]
        text += code.co_code + repr((code.co_names, code.co_varnames, constants)).encode()
    return text


def _title(function: FunctionType) -> str:
    return f"{function.__module__}.{function.__qualname__}:{function.__code__.co_firstlineno}"


def _named_values(function: FunctionType) -> Iterator[tuple[str, object]]:
    """Yield the names that a function uses, with values: global, enclosing, and in modules of fuseflow that it uses."""
    names = sorted({name for code in _codes(function.__code__) for name in code.co_names})
    for name in names:
        value = function.__globals__.get(name, _NOTHING)
        if isinstance(value, ModuleType) and value.__name__.startswith("fuseflow"):
            yield from ((f"{name}.{inner}", vars(value)[inner]) for inner in names if inner in vars(value))
        elif value is not _NOTHING:
            yield name, value
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        yield name, cell.cell_contents


def _codes(code: CodeType) -> Iterator[CodeType]:
    """Yield the code of a function and of the functions inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _is_known(value: object, name: str) -> bool:
    kinds = (FunctionType, ModuleType, *INSTRUCTIONS)
    return isinstance(value, kinds) or _is_constant(value) or getattr(builtins, name, None) is value


def _is_constant(value: object) -> bool:
    return isinstance(value, int | float | str | None) or (isinstance(value, tuple) and all(map(_is_constant, value)))


def _refuse_if_used(function: FunctionType, name: str, value: object) -> None:
    """Raise `KernelError` if the function uses the name for this value. It may be an attribute's name as well."""
    loads = (step for code in _codes(function.__code__) for step in dis.get_instructions(code))
    if name in function.__code__.co_freevars or any(step.opname == "LOAD_GLOBAL" and step.argval == name for step in loads):
        raise KernelError(
            f"the kernel function `{_title(function)}` uses `{name}`, a {type(value).__name__}, which cannot be compiled"
        )


def _describe(value: object) -> str:
    """Return a text of a value that is equal for equal values, in every process."""
    if isinstance(value, FunctionType):
        return _title(value)
    if isinstance(value, Pointer):
        return f"Pointer{value.fields}"
    return f"module {value.__name__}" if isinstance(value, ModuleType) else repr(value)


@cache
def _file_digest(module: str) -> str:
    """Return the digest of the file of a module, as it was at the first call in this process."""
    file = sys.modules[module].__file__
    assert file is not None, module
    return hashlib.sha256(Path(file).read_bytes()).hexdigest()


@cache
def _compiler_digest() -> bytes:
    """Return the digest of the files that turn functions into machine code."""
    digest = hashlib.sha256()
    for name in COMPILER_FILES:
        digest.update((Path(__file__).parent / name).read_bytes())
    return digest.digest()
