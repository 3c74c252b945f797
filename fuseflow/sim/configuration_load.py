"""The configuration of the accelerator: it is loaded before a region runs, and holds the resident tensors of that region.

Resident tensors are read without a request to the memory. Their bytes are moved once, as fast as the memory can move them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import ceil

from fuseflow.errors import MachineError
from fuseflow.machine.machine import Machine
from fuseflow.memory.layout import array_elements, tensor_arrays
from fuseflow.samml.nodes import Graph
from fuseflow.tensors import Tensor
from fuseflow.tensors.levels.base import bytes_of


@dataclass(frozen=True, slots=True)
class ConfigurationLoad:
    """The load from the memory into the configuration before a region, or before each of several: its bytes, and its least number
    of cycles. They are not among the cycles of a run."""

    bytes: int = 0
    cycles: int = 0

    @classmethod
    def at(cls, peak: Fraction | float, size: int) -> ConfigurationLoad:
        """Return the load of `size` bytes by a memory that moves at most `peak` bytes in a cycle (`inf`: any number).

        >>> from math import inf
        >>> ConfigurationLoad.at(Fraction(32), 100).cycles, ConfigurationLoad.at(inf, 100).cycles
        (4, 0)
        """
        return cls(size, ceil(size / peak))

    @classmethod
    def total(cls, loads: Iterable[tuple[int, ConfigurationLoad]]) -> ConfigurationLoad:
        """Return the sum of loads, given as pairs of a count and a load that occurs that often."""
        loads = tuple(loads)
        return cls(sum(times * load.bytes for times, load in loads), sum(times * load.cycles for times, load in loads))


def configuration_bytes(graph: Graph, tensors: Mapping[str, Tensor]) -> int:
    """Return the bytes of all arrays of the resident tensors of a graph."""
    return sum(
        bytes_of(array_elements(tensors[decl.name], array), bits)
        for decl in graph.tensors
        if decl.resident
        for array, bits in tensor_arrays(decl)
    )


def require_room(graph: Graph, size: int, machine: Machine) -> None:
    """Raise `MachineError` if `size`, the bytes of the resident tensors of a graph, exceeds the configuration of the machine."""
    if size <= machine.config_bytes:
        return
    names = ", ".join(f"`{decl.name}`" for decl in graph.tensors if decl.resident)
    raise MachineError(
        f"the resident tensors of region `{graph.name}` have {size:,} bytes ({names}); the configuration of machine "
        f"`{machine.name}` holds {machine.config_bytes:,}",
        hint="leave some of them in memory, or give the machine more room: `--set config_bytes=...`",
    )
