"""This module makes the object code of all kernels ahead of time, for the levels of x86-64, with numba and without a C compiler or linker.

    python -m fuseflow.sim.engine.ahead [--jobs 2]

It writes `fuseflow/native/objects`, in which the simulator looks before it compiles. The build of the package runs it.
"""

from __future__ import annotations

import argparse
import importlib
import os
import pkgutil
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

from fuseflow.annealing import try_moves
from fuseflow.float32.operator_precision import ARITHMETICS
from fuseflow.memory.dram_threads import receive_answers, send_to_channels
from fuseflow.memory.memory import ISSUE
from fuseflow.memory.models import dram_kernels
from fuseflow.memory.pipes import advance_comal, advance_fixed
from fuseflow.memory.ports import issue
from fuseflow.memory.table_files import preset, preset_names
from fuseflow.native.kernel_library import package_store
from fuseflow.native.object_store import ObjectCode, symbol_of
from fuseflow.native.processor import FEATURES_BY_LEVEL, OPTIMIZED_LEVEL, has_levels
from fuseflow.native.signatures import (
    ADVANCE,
    ELEMENTWISE,
    FOLD,
    FOLD_INTO,
    KERNEL,
    NOTE,
    SWEEP,
    SWEEP_AT_MEMORY,
    SWEEP_TOGETHER,
    Function,
    Signature,
)
from fuseflow.native.sources import bytecode_digest, source_digest
from fuseflow.ops import COMBINERS, OPERATORS, REDUCERS
from fuseflow.sim.engine import kernels
from fuseflow.sim.engine.kernels.alu import tile_operator
from fuseflow.sim.engine.kernels.elementwise_functions import elementwise
from fuseflow.sim.engine.kernels.permute import permuting_fill
from fuseflow.sim.engine.kernels.reduce import fold, fold_into
from fuseflow.sim.engine.loop import sweep, sweep_at_memory
from fuseflow.sim.engine.threaded_loop import sweep_in_threads
from fuseflow.sim.engine.tracer import note_firings, settle_all
from fuseflow.tile_ops import TILE_OPERATORS

PREFIX = "run_"
"""The names of the kernels of parts begin with this."""


def all_kernels() -> dict[str, tuple[Function, Signature]]:
    """Return every kernel that some graph may need, by name."""
    pairs = [(function, KERNEL) for function in _part_kernels()]
    for arithmetic in ARITHMETICS:
        pairs += [(elementwise(name, arithmetic), ELEMENTWISE) for name in (*OPERATORS, *COMBINERS)]
        pairs += [(tile_operator(name, arithmetic), ELEMENTWISE) for name in TILE_OPERATORS]
        for name in REDUCERS:
            pairs += [(fold(name, arithmetic), FOLD), (fold_into(name, arithmetic), FOLD_INTO)]
    pairs += [(sweep, SWEEP), (sweep_at_memory, SWEEP_AT_MEMORY), (settle_all, SWEEP), (note_firings, NOTE)]
    dram = [dram_kernels(table) for name in preset_names() for table in preset(name).tables]
    advances = [advance_comal, advance_fixed, send_to_channels, receive_answers]
    advances += [kernel for kernels_of_table in dram for kernel in (kernels_of_table.advance, kernels_of_table.run)]
    pairs += [(sweep_in_threads, SWEEP_TOGETHER), (issue, ISSUE), *((advance, ADVANCE) for advance in advances)]
    pairs.append((try_moves, KERNEL))
    return {f"{function.__module__}.{function.__qualname__}": (function, signature) for function, signature in pairs}


def _part_kernels() -> Iterator[Function]:
    yield permuting_fill()
    for entry in pkgutil.iter_modules(kernels.__path__):
        module = importlib.import_module(f"{kernels.__name__}.{entry.name}")
        for name, value in vars(module).items():
            if name.startswith(PREFIX) and value.__module__ == module.__name__:
                yield value


def make(names: list[str]) -> None:
    """Compile the named kernels for all levels of x86-64. The code is optimized once, for one level; other levels differ in
    instructions."""
    from numba.core import config

    from fuseflow.native.numba_compiler import object_code, optimized_module

    settings: Any = config
    settings.CPU_NAME, settings.CPU_FEATURES = OPTIMIZED_LEVEL, ""  # before numba first compiles
    for name in names:
        function, signature = all_kernels()[name]
        digest = source_digest(function, signature)
        module = optimized_module(function, signature, symbol_of(digest))
        for level in FEATURES_BY_LEVEL:
            kernel = ObjectCode(object_code(module, level), bytecode_digest(function))
            if not package_store(level).write(digest, kernel):
                raise OSError(f"cannot write to {package_store(level).folder}")


def make_all(jobs: int) -> int:
    """Compile all kernels that the package lacks, in `jobs` processes, remove those of older sources, and return the number of all."""
    digest_by_name = {name: source_digest(*kernel) for name, kernel in all_kernels().items()}
    missing = sorted(name for name, digest in digest_by_name.items() if not is_made(digest))
    if missing:
        with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
            list(pool.map(make, [missing[k::jobs] for k in range(jobs)]))
    for level in FEATURES_BY_LEVEL:
        package_store(level).keep_only(digest_by_name.values())
    return len(digest_by_name)


def is_made(digest: str) -> bool:
    """Return whether the kernel with a digest of its source is in the package for all levels of x86-64."""
    return all(package_store(level).read(digest) is not None for level in FEATURES_BY_LEVEL)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=min(os.cpu_count() or 1, 4))
    arguments = parser.parse_args()
    if not has_levels():
        raise SystemExit(
            "kernels are made ahead of time for x86-64 on Linux only; elsewhere numba compiles them when they are needed"
        )
    count = make_all(arguments.jobs)
    print(f"{count} kernels, each for {' and '.join(FEATURES_BY_LEVEL)}")


if __name__ == "__main__":
    main()
