"""Emits a fusion table as a SAMML graph. It begins at the writers, so that cells that no result needs are left out (rule L14)."""

from __future__ import annotations

from dataclasses import replace

from fuseflow.samml.nodes import Graph, Load, Primitive, Root, Scan, TensorUser, upstream
from fuseflow.table.table import TableNodes


def emit(table: TableNodes) -> Graph:
    """Return the graph of the nodes that the writers of the table need, in the order in which the table made them."""
    by_name = {n.name: n for n in table.nodes}
    needed = upstream(by_name, (p for w in table.writes for p in w.inputs))
    nodes = tuple(_with_access(n, by_name) for n in table.nodes if n.name in needed)
    used = {n.tensor for n in nodes if isinstance(n, TensorUser)} | set(table.outputs)
    tensors = tuple(t for t in table.tensors if t.name in used)
    return Graph(table.region, tensors, (*nodes, *table.writes), table.outputs)


def _with_access(node: Primitive, by_name: dict[str, Primitive]) -> Primitive:
    """Mark scans and loads whose references come straight from the scan of the level above in the same tensor: a memory may
    prefetch them."""
    if isinstance(node, Scan | Load):
        return replace(node, sequential=isinstance(by_name[node.inputs[0].node], Scan | Root))
    return node
