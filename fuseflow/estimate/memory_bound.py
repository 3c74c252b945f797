"""The speed of a memory: the bytes that it moves in a cycle, the cycles to an answer, and the answers that elements wait for."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import assert_never

from fuseflow.machine.machine import Machine
from fuseflow.memory.settings import (
    ComalFixedMemory,
    FixedMemory,
    Hbm2Memory,
    IdealMemory,
    MemorySettings,
    clock_ratio,
)
from fuseflow.samml import nodes as n

CHANNEL_BYTES = 32
"""The bytes that a channel of HBM2 moves in one of its cycles."""
FIXED_PIPE_BYTES = 16
"""The bytes that the fixed pipe of Comal moves in a cycle: four words."""


def memory_latency(memory: MemorySettings) -> int:
    """Return the cycles from a request to its answer in an idle memory, beyond the one cycle that a memory that answers at once
    takes."""
    match memory:
        case Hbm2Memory():
            return 35
        case ComalFixedMemory():
            return 18
        case FixedMemory():
            return memory.latency - 1
        case IdealMemory():
            return 0
        case unknown:
            assert_never(unknown)


def memory_answers(node: n.Primitive, declared: Mapping[str, n.TensorDecl]) -> int:
    """Return how many answers of the memory an element waits for on its way through a node, one after the other."""
    if isinstance(node, n.TensorUser) and not node.asks_memory(declared):
        return 0
    match node:
        case n.Load() | n.WriteValues() | n.WriteLaneValues():
            return 1
        case n.Scan():
            arrays = declared[node.tensor].stored_arrays(node.level)
            return any(array.scanned for array in arrays) + any(array.entry for array in arrays)
        case n.Locate():
            return int(any(array.told for array in declared[node.tensor].stored_arrays(node.level)))
        case n.WriteLevel() | n.WriteLaneLevel():
            return 0
        case n.Root() | n.Range() | n.Join() | n.Align() | n.Repeat() | n.Pointwise() | n.Reduce() | n.Accumulate() | n.Permute():
            return 0
        case n.Drop() | n.Select() | n.Flatten() | n.SplitLevel() | n.Fork() | n.Merge():
            return 0
        case unknown:
            assert_never(unknown)


def peak_bandwidth(machine: Machine) -> float:
    """Return the bytes that the memory can move in a cycle of the machine."""
    match machine.memory:
        case Hbm2Memory() as memory:
            return float(CHANNEL_BYTES * memory.channels * clock_ratio(memory.clock_ghz, machine.clock_ghz))
        case ComalFixedMemory():
            return FIXED_PIPE_BYTES
        case IdealMemory() | FixedMemory():
            return inf
        case unknown:
            assert_never(unknown)


def request_bytes(memory: MemorySettings) -> int:
    """Return the bytes of one request that a memory answers."""
    match memory:
        case Hbm2Memory() | FixedMemory():
            return memory.line
        case ComalFixedMemory():
            return 4
        case IdealMemory():
            return 64
        case unknown:
            assert_never(unknown)
