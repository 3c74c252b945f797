"""The kernels of a table of a DRAM: the model's functions, specialized for the controller and the sizes of the table."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from fuseflow.memory.channel import Shape, shape_of
from fuseflow.memory.controllers import tick_lpddr5, tick_one_bus, tick_two_buses
from fuseflow.memory.dram import advance_dram
from fuseflow.memory.dram_rows import distance_rows
from fuseflow.memory.dram_table import ControllerKind, DramTable
from fuseflow.memory.dram_threads import run_channels
from fuseflow.memory.queues import POSITIONS
from fuseflow.native.kernel_library import specialize_all
from fuseflow.native.records import LANES
from fuseflow.native.signatures import Function

TICKS = {"generic_ddr": tick_one_bus, "hbm12": tick_two_buses, "hbm34": tick_two_buses, "lpddr5": tick_lpddr5}

GAPS = 16
"""A queue has at least this many positions more than requests in each word, so that gaps are closed seldom."""


@dataclass(frozen=True, slots=True)
class DramKernels:
    """The kernels that advance a model, and the channels of a thread, with the shape of their channels."""

    shape: Shape
    advance: Function
    run: Function


def dram_kernels(table: DramTable) -> DramKernels:
    """Return the kernels of a table."""
    bank_words = next(words for words in (1, 2, 4) if LANES * words >= table.banks)
    most = max(table.read_queue, table.write_queue)
    queue_words = next(words for words in (1, 2, 4) if POSITIONS * words >= most + GAPS * words)
    return _kernels(table.controller, bank_words, queue_words, 1 if distance_rows(table, bank_words).apart else 0)


@cache
def _kernels(controller: ControllerKind, bank_words: int, queue_words: int, apart: int) -> DramKernels:
    one_bus = 0 if TICKS[controller] is tick_two_buses else 1
    shape = shape_of(bank_words, queue_words, one_bus, edges=1 if controller == "hbm34" else 0, apart=apart)
    name = f"{controller}_{bank_words}_{queue_words}_{apart}"
    meanings = {"SHAPE": shape, "tick": TICKS[controller]}
    advance, run = (specialize_all(kernel, f"{kernel.__name__}_{name}", **meanings) for kernel in (advance_dram, run_channels))
    return DramKernels(shape, advance, run)
