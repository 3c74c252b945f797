"""This module compiles kernels, each once, when a graph first needs it, and keeps them in a cache on disk.

Kernels are called by address, from the loop over nodes and from one another, so a graph needs no compilation of its own. The
cache directory is named after the sources that kernels are made of, since a compiled kernel contains the helpers that it calls.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib import resources
from pathlib import Path
from types import FunctionType
from typing import Any

import numba
from llvmlite import ir
from numba import float64, int64
from numba.core import config
from numba.extending import intrinsic

from fuseflow.sim.native.records import COMPILED

Function = Callable[..., Any]
_log = logging.getLogger(__name__)

KERNEL = int64(int64)
"""This is the signature of a kernel. It takes the address of its node and returns 0."""
ELEMENTWISE = int64(int64, int64, int64, int64, int64, int64, int64, int64)
"""This is the signature of an operator on arrays. It takes the address of the results, their number, and address and stride (in
words) of each of three operands."""
FOLD = float64(float64, int64, int64, int64)
"""This is the signature of a fold. It takes the value so far, then address and stride of the values, and their number; it returns
the new value."""
SWEEP = int64(int64, int64, int64)
"""This is the signature of the joint loop. It takes the addresses of the nodes and of the agenda, and the number of firings after
which it returns."""
FOLD_INTO = int64(int64, int64, int64, int64)
"""This is the signature of an elementwise fold. It takes the address of the values so far, address and stride of the new ones,
and their number."""
NOTE = int64(int64, int64, int64, int64, int64)
"""This is the signature of the function that notes firings. It takes the address of the tracer, the first cycle, the number of
firings, the cycle by which their tokens were visible, and the cycle from which their slots were free."""

ADVANCE = int64(int64, int64)
"""This is the signature of a memory model. It takes the address of the memory and the cycle to which it advances."""
SWEEP_AT_MEMORY = int64(int64, int64, int64, int64, int64, int64)
"""This is the signature of the joint loop at a memory. It takes the arguments of `SWEEP`, the addresses of the memory and of its
model, and the number of cycles of a turn."""

_OPTIONS: dict[str, Any] = {"error_model": "numpy"}


def specialize(template: Function, name: str, **meanings: Function) -> Function:
    """Return the template as a function of its own, called `name`, in which each global name in `meanings` refers to the given
    function."""
    assert isinstance(template, FunctionType)
    helpers = {key: numba.njit(function, **_OPTIONS) if COMPILED else function for key, function in meanings.items()}
    specialized = FunctionType(template.__code__, {**template.__globals__, **helpers}, name)
    specialized.__qualname__, specialized.__module__ = name, template.__module__
    return specialized


class Library:
    """A library compiles functions on demand and finds the compiled ones by name and by address."""

    def __init__(self) -> None:
        self.functions: dict[str, Any] = {}
        self.announced = False

    def compiled(self, function: Function, signature: Any) -> Any:
        """Return the function as a compiled callable; without a compiler, return it as it is."""
        if not COMPILED:
            return function
        name = f"{function.__module__}.{function.__qualname__}"
        if name not in self.functions:
            self._announce(function)
            directory = cache_directory()
            with _caching_in(directory):
                self.functions[name] = numba.cfunc(signature, cache=directory is not None, **_OPTIONS)(function)
        return self.functions[name].ctypes

    def _announce(self, function: Function) -> None:
        """Log once why the first run takes longer."""
        if self.announced or is_cached(function):
            return
        self.announced = True
        directory = cache_directory()
        occasion = (
            "in every run: the cache directory cannot be written" if directory is None else f"once: they are kept in {directory}"
        )
        _log.info("compiling the simulator's kernels, some 20 seconds, %s", occasion)

    def address(self, function: Function, signature: Any = KERNEL) -> int:
        """Return the address of the compiled function, for calls from kernels."""
        if not COMPILED:
            return _register(function)
        self.compiled(function, signature)
        return int(self.functions[f"{function.__module__}.{function.__qualname__}"].address)


@cache
def library() -> Library:
    """Return the library of this process; what one graph had compiled is there for the next."""
    return Library()


def is_cached(function: Function) -> bool:
    """Return whether an earlier run left the compiled function in the cache."""
    directory = cache_directory()
    return directory is not None and any(directory.rglob(f"*.{function.__qualname__}-*.nbi"))


@cache
def cache_directory() -> Path | None:
    """Return the directory that keeps the compiled kernels of these sources, below `FUSEFLOW_CACHE_DIR` or the user's cache
    directory. Return None if it cannot be written."""
    root = os.environ.get("FUSEFLOW_CACHE_DIR")
    base = Path(root) if root else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fuseflow"
    digest = hashlib.sha256(numba.__version__.encode())
    for file in _sources():
        digest.update(file.read_bytes())
    directory = base / "kernels" / digest.hexdigest()[:16]
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    return directory if os.access(directory, os.W_OK) else None


def _sources() -> list[Path]:
    """Return the files that kernels are made of."""
    package = Path(str(resources.files("fuseflow")))
    return [
        package / "ops.py",
        package / "tile_ops.py",
        package / "sim" / "events" / "causes.py",
        *(file for part in ("engine", "memory", "native") for file in sorted((package / "sim" / part).rglob("*.py"))),
    ]


@contextmanager
def _caching_in(path: Path | None) -> Iterator[None]:
    settings: Any = config
    earlier_directory = settings.CACHE_DIR
    settings.CACHE_DIR = "" if path is None else str(path)
    try:
        yield
    finally:
        settings.CACHE_DIR = earlier_directory


# Calls by address

_plain_functions: list[Function] = []


def _register(function: Function) -> int:
    if function not in _plain_functions:
        _plain_functions.append(function)
    return _plain_functions.index(function)


def _indirect(signature: Any) -> Any:
    """Return the type and the code generator of a call of the function at an address."""

    def generate(context: Any, builder: Any, _: Any, args: Any) -> Any:
        types = [context.get_value_type(kind) for kind in signature.args]
        function = ir.FunctionType(context.get_value_type(signature.return_type), types)
        return builder.call(builder.inttoptr(args[0], function.as_pointer()), args[1:])

    return signature.return_type(int64, *signature.args), generate


def _call_plain(address: int, *arguments: Any) -> Any:
    return _plain_functions[address](*arguments)


call_kernel: Function = _call_plain
call_elementwise: Function = _call_plain
call_fold: Function = _call_plain
call_fold_into: Function = _call_plain
call_advance: Function = _call_plain
call_note: Function = _call_plain

if COMPILED:

    @intrinsic
    def call_kernel(typing_context: Any, address: Any, node: Any) -> Any:
        return _indirect(KERNEL)

    @intrinsic
    def call_elementwise(
        typing_context: Any, address: Any, out: Any, k: Any, a: Any, sa: Any, b: Any, sb: Any, c: Any, sc: Any
    ) -> Any:
        return _indirect(ELEMENTWISE)

    @intrinsic
    def call_fold(typing_context: Any, address: Any, value: Any, values: Any, stride: Any, k: Any) -> Any:
        return _indirect(FOLD)

    @intrinsic
    def call_fold_into(typing_context: Any, address: Any, into: Any, values: Any, stride: Any, k: Any) -> Any:
        return _indirect(FOLD_INTO)

    @intrinsic
    def call_advance(typing_context: Any, address: Any, memory: Any, cycle: Any) -> Any:
        return _indirect(ADVANCE)

    @intrinsic
    def call_note(typing_context: Any, address: Any, tracer: Any, t: Any, k: Any, seen: Any, free: Any) -> Any:
        return _indirect(NOTE)
