"""The FIFO that an edge is, with its hops: both simulators share these numbers. The rule of time is described in
docs/streams.md."""

from __future__ import annotations

from dataclasses import dataclass

from fuseflow.errors import MachineError
from fuseflow.machine.machine import Machine
from fuseflow.samml.graph import Graph
from fuseflow.samml.hops import Hops


@dataclass(frozen=True, slots=True)
class EdgeFifo:
    """The numbers of the FIFO of an edge. A token is visible `delay` cycles after the latency of its writer, the FIFO has `depth` slots
    at its reader (None if it is unbounded) and `added` slots before these, and a slot is free `1 + back` cycles after its token was
    taken."""

    depth: int | None
    delay: int = 0
    added: int = 0
    back: int = 0

    @property
    def slots(self) -> int | None:
        """All slots, None if there is no bound."""
        return None if self.depth is None else self.depth + self.added


def edge_fifo(depth: int | None, hops: Hops | None, latency: int) -> EdgeFifo:
    """Return the FIFO of an edge of a depth whose writer has a latency in cycles. `hops` is None if the edge has none.

    A chain of hops of two slots in front of a FIFO of two slots or more is one FIFO. The first hop has a slot more for each cycle of
    the writer's latency after the first.
    """
    if hops is None or hops.count == 0:
        return EdgeFifo(depth)
    added = 2 * hops.count + latency - 1 if hops.slots else 0
    return EdgeFifo(depth, hops.count, added, 0 if depth is None else hops.count)


def require_slots_behind_hops(graph: Graph, machine: Machine) -> None:
    """Raise `MachineError` if hops cannot be simulated: on a machine with `rules: comal`, or where a FIFO of one slot is behind hops of
    two slots."""
    depths = dict(graph.depths)
    for edge, hops in graph.hops:
        if machine.rules == "comal":
            raise MachineError(
                f"graph `{graph.name}` has hops at input {edge.input} of `{edge.node}`; machine `{machine.name}` knows none",
                hint="leave the hops out of the graph, or take a machine with `rules: dataflow`",
            )
        depth = depths.get(edge, machine.first_depth)
        if hops.count and hops.slots and depth == 1:
            raise MachineError(
                f"graph `{graph.name}` has hops before a FIFO of one slot, at input {edge.input} of `{edge.node}`",
                hint="give that FIFO two slots or more (`--depth`, or `fifo_depth` of the machine)",
            )
