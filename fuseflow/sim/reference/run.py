"""The schedule of the reference: processes run in graph order, each until it waits, until all have ended or none can fire."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fuseflow.sim.firing_limit import FiringLimitError
from fuseflow.sim.reference.build import Network
from fuseflow.sim.reference.process import Backlog, Process, Slots

SWEEPS_PER_REPORT = 16  # sweeps between two counts of the firings


def run_network(
    network: Network,
    progress: Callable[[int], None] | None = None,
    growing: Sequence[Slots] = (),
    limit: int | None = None,
) -> list[Process]:
    """Run a network to its end, and return the processes that are stuck. There are none unless the network deadlocks. Raises
    `FiringLimitError` soon after `limit` firings.

    `growing` are FIFO slots that all grow by one whenever the network is stuck on one of them. Computed tokens stay valid, since
    a deeper FIFO allows all that a shallower one does; so the added slots are the fewest with which the network ends.
    """
    live = list(network.processes)
    sweeps = 0
    while live:
        progressed = False
        for process in live:
            if process.waits is None or process.waits:
                process.waits = next(process.steps, None)
                progressed = True
        if any(process.waits is None for process in live):
            live = [process for process in live if process.waits is not None]
        if not progressed and not _lift(live) and not (network.controller is not None and network.controller.advance()):
            if not any(process.waits is slots for process in live for slots in growing):
                return live
            for slots in growing:
                slots.grow()
        sweeps += 1
        if sweeps % SWEEPS_PER_REPORT == 0:
            firings = sum(process.firings for process in network.processes)
            if progress is not None:
                progress(firings)
            if limit is not None and firings > limit:
                raise FiringLimitError
    return []


def _lift(live: list[Process]) -> bool:
    """Let one process that waits for a `Backlog` run further ahead of its readers, and return whether there is one. Some streams
    need this, as in a diamond around a reduction."""
    for process in reversed(live):
        if isinstance(process.waits, Backlog):
            process.waits = next(process.steps, None)
            return True
    return False
