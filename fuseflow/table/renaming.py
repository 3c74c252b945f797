"""Renames the graph of a table: regions that differ in names alone have graphs that differ in names alone.

A node is named after its function, and after the tensor or the producer that it serves: `A_i`, `A_val`, `drop_Y`. So its name
follows from the new names, and equal names are numbered again (`mul'2`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from fuseflow.samml.node import with_names
from fuseflow.samml.nodes import Drop, Graph, Port, Primitive, Select, TensorUser, TensorWriter
from fuseflow.table.node_interning import NodeNames
from fuseflow.table.table import TableNodes


@dataclass(frozen=True, slots=True)
class TableNames:
    """The new names of a region, of its `tensors`, and of its producers and results, by label."""

    region: str
    tensors: Mapping[str, str]
    labels: Mapping[str, str]

    def wanted(self, node: Primitive, order: tuple[str, ...]) -> str | None:
        """Return the name that a node would want in a table in this order; None if it is not clear what it is named after."""
        old = node.name.partition("'")[0]
        if isinstance(node, TensorUser):
            before, after = node.tensor, self.tensors[node.tensor]
            return after + old.removeprefix(before) if old.startswith(before) else None
        if isinstance(node, Drop | Select):
            what, _, label = old.partition("_")
            if (label in self.labels) == (label in order):
                return None  # an index and a producer are called alike
            return f"{what}_{self.labels.get(label, label)}"
        return old


def renamed_graph(table: TableNodes, graph: Graph, names: TableNames) -> Graph | None:
    """Return the graph that `emit` makes for a table that differs from this one in `names` alone; `graph` is that of this table.
    None if the names of nodes do not tell after which objects they are named."""
    if any("'" in name for name in (*names.tensors.values(), *names.tensors, *names.labels)):
        return None
    fresh, node_names = NodeNames(), dict[str, str]()
    for node in table.nodes:
        wanted = names.wanted(node, table.order)
        if wanted is None:
            return None
        node_names[node.name] = fresh.fresh(wanted)
    for write in table.writes:
        assert isinstance(write, TensorWriter)
        after = names.tensors[write.tensor]
        node_names[write.name] = f"write_{after}" + write.name.removeprefix(f"write_{write.tensor}")
    tensors = [replace(tensor, name=names.tensors[tensor.name]) for tensor in graph.tensors]
    renamed = Graph(
        names.region,
        tuple(sorted(tensors, key=lambda tensor: tensor.name)),
        tuple([_renamed(node, node_names, names.tensors) for node in graph.nodes]),
        tuple([names.tensors[output] for output in graph.outputs]),
    )
    return renamed.with_structure_of(graph, names.tensors)


def _renamed(node: Primitive, nodes: Mapping[str, str], tensors: Mapping[str, str]) -> Primitive:
    inputs = tuple([Port(nodes[port.node], port.output) for port in node.inputs])
    return with_names(node, nodes[node.name], inputs, tensors[node.tensor] if isinstance(node, TensorUser) else "")
