"""The FIFO that an edge is, with its hops: both simulators share these numbers. The rule of time is described in
docs/reference/streams.md."""

from __future__ import annotations

from dataclasses import dataclass

from fuseflow.errors import MachineError
from fuseflow.machine.machine import Machine
from fuseflow.samml import nodes as n


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


def edge_fifo(reader: n.Node, stated: int | None, hops: n.Hops | None, latency: int, machine: Machine) -> EdgeFifo:
    """Return the FIFO of an edge to `reader` whose writer has a latency in cycles. `stated` is the depth in the graph, and `hops` the
    hops; both may be None.

    A chain of hops of two slots in front of a FIFO of two slots or more is one FIFO. The first hop, or a node that is a hop itself,
    has a slot more for each cycle of the writer's latency after the first.
    """
    depth, count = stated_depth(reader, stated, machine), 0 if hops is None else hops.count
    added = 2 * count if hops is not None and hops.slots else 0
    if added or reader.stage_slots:
        added += latency - 1
    return EdgeFifo(None, count) if depth is None else EdgeFifo(depth, count, added, count)


def stated_depth(reader: n.Node, stated: int | None, machine: Machine) -> int | None:
    """Return the slots of the FIFO at a reader: those that are stated, those of a hop, or those of the machine."""
    return stated or reader.stage_slots or machine.first_depth


def require_slots_behind_hops(graph: n.Graph, machine: Machine) -> None:
    """Raise `MachineError` if hops cannot be simulated: on a machine with `rules: comal`, or where a FIFO of one slot is behind hops of
    two slots."""
    depths = dict(graph.depths)
    if graph.node_hops and machine.rules == "comal":
        raise MachineError(
            f"graph `{graph.name}` has hops at `{graph.node_hops[0][0]}`; machine `{machine.name}` knows none",
            hint="leave the hops out of the graph, or take a machine with `rules: dataflow`",
        )
    for edge, hops in graph.hops:
        if machine.rules == "comal":
            raise MachineError(
                f"graph `{graph.name}` has hops at input {edge.input} of `{edge.node}`; machine `{machine.name}` knows none",
                hint="leave the hops out of the graph, or take a machine with `rules: dataflow`",
            )
        depth = stated_depth(graph.by_name[edge.node], depths.get(edge), machine)
        if hops.count and hops.slots and depth == 1:
            raise MachineError(
                f"graph `{graph.name}` has hops before a FIFO of one slot, at input {edge.input} of `{edge.node}`",
                hint="give that FIFO two slots or more (`--depth`, or `fifo_depth` of the machine)",
            )
