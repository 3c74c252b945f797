"""This module finds the machine code of kernels: made ahead of time, stored by an earlier run, or compiled now.

Kernels are called by address, from the loop over nodes and from one another, so no graph needs its own compilation. Object code
is looked up by the digest of the sources of a kernel (`sources.py`), first in the object code of the package, then in the user's
cache. Only where both lack the kernel is numba imported.
"""

from __future__ import annotations

import hashlib
import logging
import os
from functools import cache
from importlib import resources
from pathlib import Path
from threading import Lock
from types import FunctionType
from typing import TYPE_CHECKING

from fuseflow.native.object_store import ObjectCode, ObjectStore, symbol_of
from fuseflow.native.processor import host, host_levels
from fuseflow.native.records import COMPILED
from fuseflow.native.signatures import KERNEL, Function, Signature, plain_address
from fuseflow.native.sources import bytecode_digest, source_digest

if TYPE_CHECKING:
    from fuseflow.native.machine_code import Loader

_log = logging.getLogger(__name__)


def specialize(template: Function, name: str, **meanings: Function) -> Function:
    """Return a copy of the function `template`, called `name`, whose global names in `meanings` refer to these functions."""
    assert isinstance(template, FunctionType)
    specialized = FunctionType(template.__code__, {**template.__globals__, **meanings}, name)
    specialized.__qualname__, specialized.__module__ = name, template.__module__
    return specialized


def specialize_all(kernel: Function, name: str, **meanings: object) -> Function:
    """Return a copy of a kernel, called `name`, in which each global name in `meanings` has the given value, also in all helpers that
    the kernel calls, directly or not."""
    copies: dict[Function, Function] = {}

    def copy(function: Function) -> Function:
        if function not in copies:
            assert isinstance(function, FunctionType)
            scope = {**function.__globals__, **meanings}
            copies[function] = copied = FunctionType(function.__code__, scope, function.__name__, function.__defaults__)
            copied.__qualname__, copied.__module__ = function.__qualname__, function.__module__
            copied.__dict__.update(function.__dict__)
            for used in function.__code__.co_names:
                if isinstance(scope.get(used), FunctionType):
                    scope[used] = copy(scope[used])
        return copies[function]

    copied = copy(kernel)
    copied.__name__ = copied.__qualname__ = name
    return copied


class Library:
    """A library finds the machine code of kernels, and compiles the kernels that no store has. `made_ahead` are the stores of the
    package, the best for this processor first, and `own` is the store of kernels that this user's runs compiled."""

    def __init__(self, made_ahead: tuple[ObjectStore, ...] | None = None, own: ObjectStore | None = None) -> None:
        self.made_ahead = package_stores() if made_ahead is None else made_ahead
        self.own = user_store() if own is None else own
        self.addresses: dict[str, int] = {}
        self.announced = False
        self.loader: Loader | None = None
        self.lock = Lock()

    def compiled(self, function: Function, signature: Signature) -> Function:
        """Return the function as a compiled callable; without a compiler, return it as it is."""
        return signature.callable_at(self.address(function, signature)) if COMPILED else function

    def address(self, function: Function, signature: Signature = KERNEL) -> int:
        """Return the address of a compiled function for calls from kernels, or the plain function's number without a compiler."""
        if not COMPILED:
            return plain_address(function)
        name = f"{function.__module__}.{function.__qualname__}"
        if name not in self.addresses:  # read without the lock, which another thread of a copied process may hold forever
            with self.lock:
                self._load(name, function, signature)
        return self.addresses[name]

    def _load(self, name: str, function: Function, signature: Signature) -> None:
        if name not in self.addresses:
            digest = source_digest(function, signature)
            kernel = self._kept(function, digest) or self._compile(function, signature, digest)
            from fuseflow.native.machine_code import Loader

            self.loader = self.loader or Loader(*host())
            self.addresses[name] = self.loader.load(kernel.code, symbol_of(digest))

    def _kept(self, function: Function, digest: str) -> ObjectCode | None:
        """Return the kernel with a digest from the first store that has it, with the bytecode of `function` if comparable, or None."""
        bytecode = bytecode_digest(function)
        for store in (*self.made_ahead, self.own):
            kernel = store.read(digest)
            if kernel is not None and is_same_code(kernel.bytecode, bytecode):
                return kernel
        return None

    def _compile(self, function: Function, signature: Signature, digest: str) -> ObjectCode:
        from fuseflow.native.numba_compiler import object_code, optimized_module  # numba takes long to import

        self._announce()
        kernel = ObjectCode(
            object_code(optimized_module(function, signature, symbol_of(digest)), *host()), bytecode_digest(function)
        )
        self.own.write(digest, kernel)
        return kernel

    def _announce(self) -> None:
        """Log, once, that kernels are compiled now, and whether later runs will have them."""
        if not self.announced:
            self.announced = True
            once = f"once: they are kept in {self.own.folder}"
            always = f"in every run: {self.own.folder} cannot be written, or is not this user's alone"
            _log.info("compiling kernels of the simulator, up to a minute, %s", once if self.own.is_writable() else always)


def is_same_code(kept: str, wanted: str) -> bool:
    """Return whether two bytecode digests are equal, or of different versions of Python and so not comparable."""
    return kept == wanted or kept.partition(" ")[0] != wanted.partition(" ")[0]


@cache
def library() -> Library:
    """Return the library of this process, which all graphs share. Code that was loaded lives as long as its library, so threads
    that ask at the same time get the same one."""
    with _FIRST:
        return _library()


_FIRST = Lock()


@cache
def _library() -> Library:
    return Library()


def package_stores() -> tuple[ObjectStore, ...]:
    """Return the stores of the kernels that are part of the package, the best for this processor first."""
    return tuple(package_store(level) for level in host_levels())


def package_store(level: str) -> ObjectStore:
    """Return the store of the kernels that are made ahead of time for a level of processors."""
    return ObjectStore(Path(str(resources.files("fuseflow"))) / "native" / "objects" / level, private=False)


def user_store() -> ObjectStore:
    """Return the store of kernels that this user's runs compiled for this processor, in `FUSEFLOW_CACHE_DIR` or the user's cache."""
    root = os.environ.get("FUSEFLOW_CACHE_DIR")
    base = Path(root) if root else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fuseflow"
    name, features = host()
    return ObjectStore(base / "kernels" / f"{name}-{hashlib.sha256(features.encode()).hexdigest()[:16]}", private=True)
