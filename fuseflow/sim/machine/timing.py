"""The latency and the initiation interval of a node on a machine, which both simulators and the estimate share."""

from __future__ import annotations

from collections.abc import Sequence

from fuseflow.samml import nodes as n
from fuseflow.samml.node import operand_bits
from fuseflow.sim.machine import comal
from fuseflow.sim.machine.machine import Machine
from fuseflow.tile_ops import TileShape, work_count


def node_timing(node: n.Node, graph: n.Graph, machine: Machine, tiles: Sequence[TileShape] = ()) -> tuple[int, int]:
    """Return the latency and the interval of a node, in cycles. `tiles` are the shapes of the values that it reads.

    A reduction starts a scalar every cycle, whatever its latency. An operator on tiles works on `machine.tile_macs` elements of 32 bits (or
    multiply-accumulates) in a cycle, on more of fewer bits as `machine.lanes` says, and answers after the last. On `comal` the values of
    tiles lag behind this latency, as `comal.tile_lags` says.
    """
    if machine.rules == "comal":
        return 1, comal.firing_interval(node, tiles)
    unit = node.unit(graph.declared if isinstance(node, n.TensorUser) else {})
    latency, interval = machine.latency.of(unit.latency), 1 if unit.pipelined else machine.interval.of(unit.latency)
    if not unit.function or not any(tiles):
        return latency, interval
    elements = machine.tile_macs * machine.lanes.of(operand_bits(node, graph.element_bits))
    interval = max(interval, -(-work_count(unit.function, tiles) // elements))
    return latency + interval - 1, interval
