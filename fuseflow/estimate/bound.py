"""The cycles of a graph: the bounds, and the cycles that are expected from them together.

The *compute* bound is the cycles that the busiest node takes for its firings; no run takes fewer. The *imbalance* is how much
longer the largest stages of all batches take than that node. The *FIFO* bound is the loop of FIFOs that takes longest. The
*memory* bound is the cycles in which the memory moves all lines. The *control* bound is the time before the first tokens of nodes
and after their last: latencies along the graph, and whole workspaces where a reduction emits nothing before its fiber ends.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from fuseflow.estimate.flows import Number

Limit = Literal["compute", "imbalance", "FIFOs", "control", "memory"]
"""The names of the bounds."""


@dataclass(frozen=True, slots=True)
class Bound:
    """The bounds of a graph, in cycles.

    `node` is the busiest node. `fifo` names the nodes between which FIFOs hold the graph up most, and `lanes` has the cycles of
    the busiest node that is not behind the lanes. `answers` is how long the busiest port waits for answers of the memory, and
    `crowded` how long ports wait for lines that many of them want at once, or for writes that come behind all reads. `behind` is
    the work that is left behind the lanes when these are done. `refresh` is the share of the time for which the graph stands
    still because the memory refreshes itself. `stands_still` says that it is expected never to end: FIFOs lack slots.
    """

    compute: Number
    control: Number
    memory: Number
    node: str
    refresh: float = 0.0
    imbalance: Number = 0
    fifos: Number = 0
    fifo: tuple[str, str] | None = None
    lanes: Number = 0
    answers: Number = 0
    crowded: Number = 0
    behind: Number = 0
    stands_still: bool = False

    @property
    def cycles(self) -> Number:
        """The cycles that the graph is expected to take."""
        work = max(self.stages, self.fifos, self.answers) / (1 - self.refresh)
        return max(work, self.memory, self.crowded) + max(self.control, self.behind)

    @property
    def stages(self) -> Number:
        """The cycles of the largest stages. In a graph with lanes whose batches are even, those of stages behind the lanes do not
        count."""
        return self.compute + self.imbalance if self.imbalance or not self.lanes else self.lanes

    @property
    def waits(self) -> Number:
        """The cycles in which the memory moves all lines, or in which one port or array waits for its lines if these are more."""
        return max(self.memory, self.answers, self.crowded)

    @property
    def limit(self) -> Limit:
        """The name of the largest bound."""
        bounds: dict[Limit, Number] = {
            "compute": self.compute,
            "imbalance": self.imbalance,
            "FIFOs": self.fifos,
            "memory": self.waits,
            "control": self.control,
        }
        return max(bounds, key=lambda name: bounds[name])
