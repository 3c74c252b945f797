"""The pass over a traced model that replaces gathers, scatters and movements of data by products with selections."""

from __future__ import annotations

import torch
from torch.fx import Node

from fuseflow.frontend.positions.edge_matrix import edges_to_matrices
from fuseflow.frontend.positions.gathers import EMBEDDING_BAGS, GATHERS
from fuseflow.frontend.positions.grid_samples import GRID_SAMPLES
from fuseflow.frontend.positions.linear_operators import KNOWN_MATRICES, TRIANGULAR
from fuseflow.frontend.positions.losses import LOSSES
from fuseflow.frontend.positions.order_statistics import ORDERED
from fuseflow.frontend.positions.scatters import SCATTERS
from fuseflow.frontend.positions.selection_operators import extreme_along, multiplied_along, overwrite_along, product_along
from fuseflow.frontend.positions.selections import Call, Handler, Selections, described
from fuseflow.frontend.positions.sparse_values import NEIGHBOURS, SPARSE_VALUES
from fuseflow.frontend.trace import fx_origin
from fuseflow.frontend.trace.dependence import Memories, remove_unused, shares_memory, written_by

_HANDLERS: dict[str, Handler] = (
    GATHERS
    | EMBEDDING_BAGS
    | SCATTERS
    | KNOWN_MATRICES
    | ORDERED
    | NEIGHBOURS
    | SPARSE_VALUES
    | LOSSES
    | TRIANGULAR
    | GRID_SAMPLES
)
"""The replacement of each operator, by its name."""
_MOVED_TRUTHS = frozenset(
    {"gather", "take_along_dim", "index", "index_select", "scatter", "scatter_", "index_copy", "index_put", "index_put_"}
)
"""Operators that move elements to or from positions that are data, and may move truth values."""
_PRODUCTS = (product_along, extreme_along, multiplied_along, overwrite_along)
"""Functions with which operators are replaced, and whose results share no memory with their operands."""


def select_data(selections: Selections) -> None:
    """Replace, in place, every operator on data that takes, adds up or moves elements at known positions."""
    graph = selections.traced.graph_module.graph
    memories = Memories(graph)
    positions = {node: position for position, node in enumerate(graph.nodes)}
    for node in list(graph.nodes):
        if node.op != "call_function" or selections.dependences.get(node) != "data" or _is_read_as_it_was(node, positions):
            continue
        name = fx_origin.short_name(node.target)
        handler = _HANDLERS.get(name if name.startswith("_") else name.rstrip("_"))
        if handler is None or _has_no_dimension(node):
            continue
        root = memories.root(node)
        if root is not node and not any(written_by(node)) and any(positions[w] > positions[node] for w in memories.writers(root)):
            continue  # a view that is written to
        with graph.inserting_before(node):
            call = Call(selections, node)
            result = handler(call, *node.args, **node.kwargs)
            if result is None and name in _MOVED_TRUTHS and described(node).dtype == torch.bool:
                result = _as_numbers(call, handler)
        if result is not None:
            result.meta = {**node.meta, "val": node.meta["val"], fx_origin.REPLACED: fx_origin.shown_operator(node)}
            if node in selections.places:
                selections.places[result] = selections.places[node]
            node.replace_all_uses_with(result)
            graph.erase_node(node)
    remove_unused(selections.traced)
    edges_to_matrices(selections)


def _as_numbers(call: Call, handler: Handler) -> Node | None:
    """Return the replacement of an operator that moves truth values, which are numbers meanwhile."""
    args = [
        call.computed(torch.Tensor.to, argument, torch.float32)
        if isinstance(argument, Node) and described(argument).dtype == torch.bool
        else argument
        for argument in call.node.args
    ]
    result = handler(call, *args, **call.node.kwargs)
    return None if result is None else call.computed(torch.ne, result, 0)


def _has_no_dimension(node: Node) -> bool:
    """Return whether an operator goes along a dimension of a tensor that has none. It is refused later."""
    operand, schema = node.args[0] if node.args else None, getattr(node.target, "_schema", None)
    takes_dimension = schema is not None and any(argument.name == "dim" for argument in schema.arguments)
    return takes_dimension and isinstance(operand, Node) and described(operand).dim() == 0


def _is_read_as_it_was(node: Node, positions: dict[Node, int]) -> bool:
    """Return whether an operator writes to an argument, or to a value that another node reads later. `positions` orders nodes."""
    return any(
        target.op == "placeholder" or any(user is not node and not _is_past(user, node, positions) for user in target.users)
        for target in written_by(node)
    )


def _is_past(user: Node, writer: Node, positions: dict[Node, int]) -> bool:
    if user.target in _PRODUCTS:  # it replaced an operator before the writer
        return True
    return not shares_memory(user.target) and user in positions and positions[user] < positions[writer]
