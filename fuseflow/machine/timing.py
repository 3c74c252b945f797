"""The latency and the initiation interval of a node on a machine, and the FIFO of an edge with its hops, which both
simulators and the estimate share. The rule of time is in docs/reference/streams.md."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from fuseflow.errors import MachineError
from fuseflow.machine import comal
from fuseflow.machine.machine import Machine
from fuseflow.memory.settings import IdealMemory
from fuseflow.samml import nodes as n
from fuseflow.samml.hops import NO_HOPS
from fuseflow.samml.node import HOP_UNIT, MEMORY_UNIT, operand_bits
from fuseflow.tile_ops import TileShape, work_count

Pace: TypeAlias = tuple[int, int]
"""The cycles from a firing of a process on a value to the next firing, and those from a firing on a stop."""
Paces: TypeAlias = tuple[Pace, Pace]


class NodeTiming(NamedTuple):
    """The cycles of a node: its `latency`, its `interval` between firings on values, and the interval of a process that only
    emits values that another process folded (`emission`), which equals `interval` if the node folds nothing. A `pause` is from a
    firing on a stop to the next firing."""

    latency: int
    interval: int
    emission: int
    pause: int = 1

    @property
    def paces(self) -> Paces:
        """The paces of the process that takes values, and of the one that emits what it folded."""
        return (self.interval, self.pause), (self.emission, 1)


def node_timing(node: n.Node, graph: n.Graph, machine: Machine, tiles: Sequence[TileShape] = ()) -> NodeTiming:
    """Return the timing of a node. `tiles` are the shapes of the values that it reads.

    A reduction starts a scalar every `machine.interval.of("fold")` cycles, whatever its latency. An operator on tiles works on
    `machine.tile_macs` elements of 32 bits (or multiply-accumulates) in a cycle, on more of fewer bits as `machine.lanes` says, and answers
    after the last. On `comal` the values of tiles lag behind this latency, as `comal.tile_lags` says. Hops between the tiles of a node
    are a part of its latency. The sums of a fiber go round the tiles of an accumulation before the next fiber is added to them. Where the
    memory answers at once, the way to its port and back is a part of the latency, too.
    """
    if machine.rules == "comal":
        interval = comal.firing_interval(node, tiles)
        return NodeTiming(1, interval, interval)
    unit = node.unit(graph.declared if isinstance(node, n.TensorUser) else {})
    if unit == HOP_UNIT:
        return NodeTiming(1, 1, 1)
    latency, interval = machine.latency.of(unit.latency), 1 if unit.pipelined else machine.interval.of(unit.latency)
    if unit.function and any(tiles):
        elements = machine.tile_macs * machine.lanes.of(operand_bits(node, graph.element_bits))
        interval = max(interval, -(-work_count(unit.function, tiles) // elements))
        latency += interval - 1
    hops = graph.hops_of.get(node.name, NO_HOPS)
    latency += hops.inner
    if unit == MEMORY_UNIT and isinstance(machine.memory, IdealMemory):
        latency += 2 * hops.port
    fold = machine.interval.of("fold") if node.grain == "fold" else 1
    return NodeTiming(latency, max(interval, fold), interval, 1 + hops.loop)


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
    """Raise `MachineError` for hops with `rules: comal`, or with a FIFO of one slot behind hops of two slots."""
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
