"""Tells whether narrow types make a program faster: a unit only works on more elements of fewer bits in a cycle if tiles bring
enough of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fuseflow.machine.machine import Machine
from fuseflow.samml.graph import Graph
from fuseflow.samml.node import TensorReader, TensorUser, operand_bits
from fuseflow.tile_ops import work_count

_MOST_NAMED = 4
_WHOLE_BITS = 32
WHY = "a stream of single elements carries one a cycle, whatever its type, and a unit works on a tile that is small in one cycle"


def narrow_notice(graphs: Sequence[Graph], machine: Machine) -> str:
    """Return a text that says that the narrow types of a program only save bytes. It is '' if there are none, or if they also
    save cycles of units."""
    names = dict.fromkeys(name for graph in graphs for name in _narrow_operands(graph))
    if not names or any(gains(graph, machine) for graph in graphs):
        return ""
    listed = ", ".join(f"`{name}`" for name in [*names][:_MOST_NAMED]) + (" and others" if len(names) > _MOST_NAMED else "")
    return f"narrow types save bytes and no cycles of units here ({listed}): {WHY}; large blocks (`--block`) would save cycles"


def gains(graph: Graph, machine: Machine, bits: int | None = None) -> bool:
    """Return whether a unit takes fewer cycles for its tiles than for tiles of 32-bit elements. Elements have `bits` bits, or
    those of their types if it is None."""
    types = graph.types()
    for node in graph.nodes:
        function = node.unit(graph.declared if isinstance(node, TensorUser) else {}).function
        tiles = [types[port].tile for port in node.inputs if types[port].kind == "val"]
        if function and any(tiles):
            lanes = machine.lanes.of(operand_bits(node, graph.element_bits) if bits is None else bits)
            work = work_count(function, tiles)
            if -(-work // (machine.tile_macs * lanes)) < -(-work // (machine.tile_macs * machine.lanes.of(_WHOLE_BITS))):
                return True
    return False


def _narrow_operands(graph: Graph) -> Iterable[str]:
    """Yield the tensors whose values a graph reads in fewer bits than 32."""
    reads_values = {port.node for port in graph.element_bits}
    for node in graph.nodes:
        if (
            isinstance(node, TensorReader)
            and node.name in reads_values
            and graph.declared[node.tensor].element_bits < _WHOLE_BITS
        ):
            yield node.tensor
