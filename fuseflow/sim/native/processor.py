"""Object code runs in this process, and is made for some kinds of processor ahead of time: the levels of x86-64 on Linux."""

from __future__ import annotations

import platform
import sys
from collections.abc import Mapping
from functools import cache

import llvmlite.binding as llvm

FEATURES_BY_LEVEL = {
    "x86-64-v3": ("avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"),
    "x86-64-v2": ("cx16", "popcnt", "sse3", "sse4.1", "sse4.2", "ssse3"),
}
"""What a processor of each level has beyond those of the levels after it, in the words of LLVM. The best level is first."""


def levels_of(features: Mapping[str, bool]) -> tuple[str, ...]:
    """Return the levels of a processor with these features, the best first.

    >>> levels_of(dict.fromkeys(FEATURES_BY_LEVEL["x86-64-v2"], True)), levels_of({"sse3": True})
    (('x86-64-v2',), ())
    """
    levels: list[str] = []
    for level, needed in reversed(FEATURES_BY_LEVEL.items()):
        if not all(features.get(name, False) for name in needed):
            break
        levels.insert(0, level)
    return tuple(levels)


def has_levels() -> bool:
    """Return whether kernels are made ahead of time for this kind of system. Elsewhere numba compiles them when they are first needed."""
    return sys.platform == "linux" and platform.machine() == "x86_64"


@cache
def host_levels() -> tuple[str, ...]:
    """Return the levels of the processor that this process runs on, the best first."""
    return levels_of(llvm.get_host_cpu_features()) if has_levels() else ()


@cache
def host() -> tuple[str, str]:
    """Return the name and the features of the processor that this process runs on."""
    return llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()


def target_machine(cpu: str, features: str = "") -> llvm.TargetMachine:
    """Return what LLVM needs to make code for a processor that is then loaded into a process."""
    initialize()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(cpu=cpu, features=features, opt=3, reloc="static", codemodel="jitdefault", jit=True)


@cache
def initialize() -> None:
    """Prepare LLVM, once in a process."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


class Loader:
    """A loader places object code in the memory of this process, where it stays as long as the loader."""

    def __init__(self) -> None:
        name, features = host()
        self.engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), target_machine(name, features))

    def load(self, code: bytes, symbol: str) -> int:
        """Return the address of a function in an object file."""
        self.engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        self.engine.finalize_object()
        address: int = self.engine.get_function_address(symbol)
        assert address, symbol
        return address
