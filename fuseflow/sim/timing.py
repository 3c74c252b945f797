"""How long a node takes on a machine: the same for every simulator."""

from __future__ import annotations

from collections.abc import Sequence

from fuseflow.ops import reducer
from fuseflow.samml import nodes as n
from fuseflow.sim import comal
from fuseflow.sim.machine import Machine
from fuseflow.tile_ops import FUNCTIONS, Tile, work


def timing(node: n.Node, graph: n.Graph, machine: Machine, tiles: Sequence[Tile] = ()) -> tuple[int, int]:
    """Latency and interval of a node that reads values of the shapes `tiles`. Reductions start a scalar every cycle at any latency.
    An operator works on `machine.tile_macs` elements (or multiply-accumulates) of a tile in a cycle, and answers after the last. On
    `comal` tiles lag behind this latency (`comal.lags`)."""
    if machine.rules == "comal":
        return 1, comal.interval(node, tiles)
    match node:
        case n.Alu():
            unit = FUNCTIONS[node.function].unit
            return _on_tiles(node.function, tiles, machine, machine.latency.of(unit), machine.interval.of(unit))
        case n.Reduce() | n.Accumulate():
            return _on_tiles(node.function, tiles, machine, machine.latency.of(reducer(node.function).unit), 1)
        case n.Permute():  # an accumulator with nothing to add
            return _on_tiles("sum", tiles, machine, machine.latency.of(reducer("sum").unit), 1)
        case n.Scan() | n.Locate() if graph.declared[node.tensor].format.levels[node.level].stored:
            unit = "memory"
        case n.Load() | n.WriteLevel() | n.WriteValues():
            unit = "memory"
        case _:
            unit = "default"
    return machine.latency.of(unit), machine.interval.of(unit)


def _on_tiles(function: str, tiles: Sequence[Tile], machine: Machine, latency: int, interval: int) -> tuple[int, int]:
    if not any(tiles):
        return latency, interval
    interval = max(interval, -(-work(function, tiles) // machine.tile_macs))
    return latency + interval - 1, interval
