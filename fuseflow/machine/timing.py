"""The latency and the initiation interval of a node on a machine, which both simulators and the estimate share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

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
