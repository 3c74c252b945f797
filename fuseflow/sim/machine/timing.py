"""How long a node takes on a machine: the same for every simulator."""

from __future__ import annotations

from collections.abc import Sequence

from fuseflow.samml import nodes as n
from fuseflow.sim.machine import comal
from fuseflow.sim.machine.machine import Machine
from fuseflow.tile_ops import TileShape, work_count


def timing(node: n.Node, graph: n.Graph, machine: Machine, tiles: Sequence[TileShape] = ()) -> tuple[int, int]:
    """Latency and interval of a node that reads values of the shapes `tiles`. Reductions start a scalar every cycle at any latency.
    An operator works on `machine.tile_macs` elements (or multiply-accumulates) of a tile in a cycle, and answers after the last. On
    `comal` tiles lag behind this latency (`comal.lags`)."""
    if machine.rules == "comal":
        return 1, comal.interval(node, tiles)
    unit = node.unit(graph.declared if isinstance(node, n.Names) else {})
    latency, interval = machine.latency.of(unit.latency), 1 if unit.pipelined else machine.interval.of(unit.latency)
    if not unit.function or not any(tiles):
        return latency, interval
    interval = max(interval, -(-work_count(unit.function, tiles) // machine.tile_macs))
    return latency + interval - 1, interval
