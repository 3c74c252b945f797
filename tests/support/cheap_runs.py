"""What makes all tests cheap, and changes nothing that they compute.

Modules are compiled to bytecode once, even where `PYTHONDONTWRITEBYTECODE` is set. The suite starts hundreds of processes, each of which
would compile all of fuseflow, and pytest would rewrite the assertions of all tests.

PyTorch has one thread in a test. Tests run side by side, and threads that wait for each other's processor burn the time of both.

The collector of garbage leaves alone what was loaded before the first test. Otherwise it searches all of PyTorch again and again.

Every export lists all operators of PyTorch twice. The list is kept until one is added.

The engine is loaded once for all tests of a process, so `auto` takes it sooner than in a command, which loads it for one run.
"""

from __future__ import annotations

import gc
import os
import sys

import pytest

ALLOCATIONS = 20_000
"""How many objects more are made than freed until the collector looks at the young ones."""
REFERENCE_FIRINGS = 20_000
"""The number of firings up to which the reference is not slower than an engine that is loaded."""


def keep_bytecode() -> None:
    """Write the bytecode of modules beside them, in this process and in those that it starts, as Python does if nothing forbids it."""
    sys.dont_write_bytecode = False
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def one_thread() -> None:
    """Give PyTorch one thread, in this process and in those that it starts. It must not be loaded yet."""
    os.environ["OMP_NUM_THREADS"] = "1"


def leave_what_is_loaded() -> None:
    gc.collect()
    gc.freeze()
    gc.set_threshold(ALLOCATIONS)


def keep_the_list_of_operators() -> None:
    """Patch PyTorch if it is loaded."""
    if "torch" not in sys.modules:
        return
    import torch._export.utils
    import torch.export.decomp_utils
    import torch.export.exported_program

    name = "_collect_all_valid_cia_ops"
    collect, lists = getattr(torch._export.utils, name), dict[tuple[int, int], set[object]]()

    def listed() -> set[object]:
        known = len(torch._C._dispatch_get_all_op_names()), len(torch.ops._dir)
        if known not in lists:
            lists[known] = collect()
        return lists[known]

    for module in (torch.export.decomp_utils, torch.export.exported_program):
        pytest.MonkeyPatch().setattr(module, name, listed)  # for good: nothing undoes it


def prefer_the_engine() -> None:
    """Let `auto` begin fewer runs on the reference, where tests use a simulator. Both simulators give the same outcome."""
    if simulators := sys.modules.get("fuseflow.sim.simulators"):
        pytest.MonkeyPatch().setattr(simulators, "REFERENCE_FIRINGS", REFERENCE_FIRINGS)  # for good: nothing undoes it
