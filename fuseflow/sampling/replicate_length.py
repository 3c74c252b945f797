"""How long a replicate must be, so that what its memory keeps from one coordinate to the next matters little.

A replicate begins with a memory that has answered nothing. Three things are different in the middle of a loop:

    refresh    streams that ran ahead of each other hide a part of a pause, and they run ahead only after some pauses
    held       a port has lines of the tensors that are read whole, up to its limit, and asks for none of them again
    walked     a line of a tensor that is read coordinate by coordinate is asked for once, for all coordinates that lie in it

Short replicates on such machines agreed with each other, and were up to 18 % off.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, hypot, sqrt

from fuseflow.estimate.memory_pace import memory_pace
from fuseflow.fusion import FusedRegion
from fuseflow.machine.machine import Machine
from fuseflow.memory.layout import array_elements, tensor_arrays
from fuseflow.memory.settings import IdealMemory
from fuseflow.samml.nodes import Graph
from fuseflow.sampling.interval import EndUncertainty
from fuseflow.sampling.restriction import sampled_index
from fuseflow.tensors import Tensor
from fuseflow.tensors.levels.base import bytes_of

REFRESHES = 30
"""The fewest pauses for refresh in a replicate. With one, replicates of attention were 4 % too slow. With five or fifteen,
replicates of a layer with rows of 35 cycles were 3 or 2 % too fast, with thirty 0.2 % too slow."""
FILLS = 10
"""A replicate takes at least this many times the cycles that its ports take to fill."""
WALKED = 2
"""A replicate has at least the coordinates of this many lines of its longest array."""


def replicate_length(fused: FusedRegion, graph: Graph, read: Mapping[str, Tensor], machine: Machine) -> tuple[int, int]:
    """Return the fewest cycles and the fewest coordinates of a replicate of a region. `graph` is its graph, and `read` has the
    tensors that it reads.
    """
    memory, pace = machine.memory, memory_pace(machine)
    if isinstance(memory, IdealMemory):
        return 1, 1
    index = sampled_index(fused)
    restricted = {view.tensor for view in fused.views if index in view.indices}
    whole = {view.tensor for view in fused.views if index not in view.indices}
    held = min(memory.outstanding, _longest_array(graph, read, whole, memory.line))
    walked = _longest_array(graph, read, restricted, memory.line)
    cycles = FILLS * held * pace.latency
    if pace.refresh is not None:
        cycles = max(cycles, ceil(REFRESHES * pace.refresh.period))
    coordinates = ceil(fused.sizes[index] * min(1, WALKED / walked)) if walked else 1
    return max(1, cycles), coordinates


def _longest_array(graph: Graph, read: Mapping[str, Tensor], names: set[str], line: int) -> int:
    """Return the lines of the longest array of those of the tensors `names` that are read from memory, 0 if there is none."""
    lengths = [
        ceil(bytes_of(array_elements(read[name], array), bits) / line)
        for name in names.intersection(read)
        if not graph.declared[name].resident
        for array, bits in tensor_arrays(graph.declared[name])
    ]
    return max(lengths, default=0)


def end_uncertainty(machine: Machine, arrays: int) -> EndUncertainty:
    """Return the uncertainty of runs: a full FIFO and a pause for refresh in each run, and a line of each of the `arrays` arrays.

    Some events happen once in many rows: a pause in which the memory refreshes itself, or a line of an array of which each row reads
    a few bytes. A run has one more or one less of them than its share, and short ones may have none at all. Without them, rows that
    are all equal would make an interval without width.
    """
    slack, memory, pace = float(machine.first_depth or 0), machine.memory, memory_pace(machine)
    if isinstance(memory, IdealMemory):
        return EndUncertainty(slack, 0.0)
    pause = pace.refresh.cycles if pace.refresh is not None else 0.0
    line = pace.latency + memory.line / pace.peak
    return EndUncertainty(hypot(slack, pause), sqrt(arrays) * line)
