"""The indices along the rows and columns of the tiles of a graph, given those of the tensors that it reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from fuseflow.errors import GraphError
from fuseflow.samml import nodes as n

Indices: TypeAlias = tuple[str, str]
"""The indices of the rows and of the columns of a tile. An index is "" if it is unknown, or if there is one row or column only."""


def tile_indices(graph: n.Graph, loads: Mapping[str, Indices]) -> dict[str, Indices]:
    """Return the indices of the tiles of each output; `loads` has those of the tensors that are read. Raises `GraphError` at an
    operator whose operands do not fit together, because the tiles of a tensor are transposed."""
    indices: dict[n.Port, Indices] = {}
    results: dict[str, Indices] = {}
    for node in graph.nodes:
        inputs = [indices[port] for port in node.inputs]
        if isinstance(node, n.WriteValues):
            results[node.tensor] = inputs[0]
        for k, carried in enumerate(node.carries()):
            indices[n.Port(node.name, k)] = inputs[carried[0]] if carried else ("", "")
        if isinstance(node, n.Load):
            indices[n.Port(node.name)] = loads.get(node.tensor, ("", ""))
        elif isinstance(node, n.Alu):
            indices[n.Port(node.name)] = _of_operator(graph, node, inputs)
    return results


def _of_operator(graph: n.Graph, node: n.Alu, inputs: Sequence[Indices]) -> Indices:
    match node.function, inputs:
        case "matmul", [(row, left), (right, column)]:
            _agree(graph, node, inputs, left, right)
            return row, column
        case "matmul_t", [(row, left), (column, right)]:
            _agree(graph, node, inputs, left, right)
            return row, column
        case "transpose", [(row, column)]:
            return column, row
        case str(name), [(row, column)] if name.startswith(("row_", "col_")):
            return (row, "") if name.startswith("row_") else ("", column)
    row, column = "", ""
    for other in inputs:
        _agree(graph, node, inputs, row, other[0])
        _agree(graph, node, inputs, column, other[1])
        row, column = row or other[0], column or other[1]
    return row, column


def _agree(graph: n.Graph, node: n.Alu, inputs: Sequence[Indices], one: str, other: str) -> None:
    if one and other and one != other:
        shown = " and ".join(" x ".join(f"`{index or '?'}`" for index in tile) for tile in inputs)
        raise GraphError(
            f"graph `{graph.name}`, operation `{node.name}`: `{node.function}` of tiles of {shown}: `{one}` meets `{other}`",
            hint="a tensor whose tiles lie the other way round has its dimensions in the wrong order: name them in `indices`",
        )
