"""By how many cycles a run may be wrong because of the moment at which it ends.

Some events happen once in many rows: a pause in which the memory refreshes itself, or a line of an array of which each row reads
a few bytes. A run has one more or one less of them than its share, and short ones may have none at all. Without them, rows that
are all equal would make an interval without width.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import hypot, sqrt

from fuseflow.estimate.memory_load import memory_latency, peak_bandwidth
from fuseflow.machine.machine import Machine
from fuseflow.memory.settings import Hbm2Memory, IdealMemory, clock_ratio
from fuseflow.memory.timing import HBM2_2000


@dataclass(frozen=True, slots=True)
class EndUncertainty:
    """The cycles between the least and the largest time that a run may have. `each` is the part that differs from replicate to
    replicate, and `common` the part that all share, as the data of each begin with a new line."""

    each: float
    common: float

    def variance(self, replicates: int) -> float:
        """Return the variance of the mean of `replicates` replicates, if all times between the least and the largest are equally
        likely."""
        return (self.each**2 / replicates + self.common**2) / 12


def end_uncertainty(machine: Machine, arrays: int) -> EndUncertainty:
    """Return the uncertainty of runs: a full FIFO and a pause for refresh in each run, and a line of each of the `arrays`
    arrays."""
    slack, memory = float(machine.first_depth or 0), machine.memory
    if isinstance(memory, IdealMemory):
        return EndUncertainty(slack, 0.0)
    pause = 0.0
    if isinstance(memory, Hbm2Memory):
        pause = HBM2_2000.nRFC / float(clock_ratio(memory.clock_ghz, machine.clock_ghz))
    line = memory_latency(memory) + memory.line / peak_bandwidth(machine)
    return EndUncertainty(hypot(slack, pause), sqrt(arrays) * line)
