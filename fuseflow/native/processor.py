"""The kinds of processor for which kernels are made ahead of time, the levels of x86-64 on Linux, and the processor of this
process."""

from __future__ import annotations

import platform
import sys
from collections.abc import Mapping
from functools import cache

FEATURES_BY_LEVEL = {
    "x86-64-v4": ("avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl"),
    "x86-64-v3": ("avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"),
    "x86-64-v2": ("cx16", "popcnt", "sse3", "sse4.1", "sse4.2", "ssse3"),
}
"""The features of a processor of each level beyond the levels after it, in the words of LLVM. The best level is first."""
OPTIMIZED_LEVEL = "x86-64-v3"
"""The level whose costs decide how loops are vectorized. The code for other levels differs only in the instructions."""


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
    from llvmlite import binding  # this and other imports of llvmlite wait until a kernel is needed

    return levels_of(binding.get_host_cpu_features()) if has_levels() else ()


@cache
def host() -> tuple[str, str]:
    """Return the name and the features of the processor that this process runs on."""
    from llvmlite import binding

    return binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten()
