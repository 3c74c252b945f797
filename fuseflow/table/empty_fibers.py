"""A test for empty fibers in coordinate streams. Above one, a compressed result would store coordinates without entries (rule L12)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

from fuseflow.einsum.nodes import TensorType
from fuseflow.errors import GraphError
from fuseflow.samml.nodes import (
    Align,
    Drop,
    Flatten,
    Fork,
    Join,
    Merge,
    Pointwise,
    Port,
    Range,
    Reduce,
    Repeat,
    Root,
    Scan,
    SplitLevel,
    TensorWriter,
    Workspace,
)
from fuseflow.table.cells import Cells


def may_be_empty(port: Port, cells: Cells, tensors: Mapping[str, TensorType]) -> bool:
    """Return whether a fiber of this coordinate stream can be empty, as far as formats and sizes tell."""
    node = cells.nodes[port.node]
    match node:
        case Range():
            return node.size == 0
        case Scan():
            return _scan_may_be_empty(node, cells, tensors)
        case Join():
            sides = [may_be_empty(node.inputs[crd], cells, tensors) for crd, _ in node.sides()]
            return {"intersect": True, "union": all(sides), "left": sides[0]}[node.kind]
        case Workspace() if port.output == 0:
            return any(may_be_empty(p, cells, tensors) for p in node.inputs[:-1])
        case Drop() if port.output == 0:
            return True  # all of a fiber may leave
        case Workspace() | Drop():
            return False  # a coordinate without a value below it is not given
        case Align() | Flatten() | SplitLevel() | Fork() | Merge():
            return True  # nothing is known
        case Root() | Repeat() | Pointwise() | Reduce() | TensorWriter():
            raise GraphError(f"`{node.name}` ({node.op}) makes no coordinates")
        case unknown:
            assert_never(unknown)


def _scan_may_be_empty(node: Scan, cells: Cells, tensors: Mapping[str, TensorType]) -> bool:
    tensor = tensors[node.tensor]
    assert tensor.format is not None
    above = _scanned(node.inputs[0], cells)
    if tensor.format.levels[node.level].full:
        return tensor.shape[tensor.format.order[node.level]] == 0 or (node.level > 0 and above is None)
    return above is None or tensor.format.levels[above.level].full


def _scanned(port: Port, cells: Cells) -> Scan | None:
    """Return the scan that the references of a stream come from, or None if one of them may be absent."""
    node = cells.nodes[port.node]
    while not isinstance(node, Scan):
        if isinstance(node, Repeat):
            port = node.inputs[0]
        elif isinstance(node, Join):
            at = [(s, p) for s, (_, payloads) in enumerate(node.sides()) for p in payloads]
            side, place = at[port.output - 1]
            if node.kind == "union" or (node.kind == "left" and side > 0):
                return None
            port = node.inputs[place]
        else:
            return None
        node = cells.nodes[port.node]
    return node
