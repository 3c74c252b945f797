"""The pass over a traced model that replaces gathers, scatters and movements of data by products with selections."""

from __future__ import annotations

from torch._ops import OpOverload
from torch.fx import Node

from fuseflow.errors import FrontendError
from fuseflow.frontend import fx_origin
from fuseflow.frontend.causal_attention import CAUSAL
from fuseflow.frontend.complex_pairs import separate_complex
from fuseflow.frontend.data_positions import COMPARISONS
from fuseflow.frontend.dependence import Dependence, Memories, remove_unused, written_by
from fuseflow.frontend.edge_matrix import edges_to_matrices
from fuseflow.frontend.known_masks import MASKS
from fuseflow.frontend.known_positions import GATHERS, Handler
from fuseflow.frontend.linear_maps import LINEAR_MAPS
from fuseflow.frontend.losses import LOSSES
from fuseflow.frontend.movements import MOVEMENTS
from fuseflow.frontend.neighbours import NEIGHBOURS
from fuseflow.frontend.ranking import RANKINGS
from fuseflow.frontend.scans import SCANS
from fuseflow.frontend.segments import SEGMENTS
from fuseflow.frontend.selection_products import extreme_along, multiplied_along, overwrite_along, product_along
from fuseflow.frontend.selections import Selections
from fuseflow.frontend.trace import Trace

_HANDLERS = GATHERS | MOVEMENTS | LINEAR_MAPS | RANKINGS | MASKS | NEIGHBOURS | SCANS | SEGMENTS | LOSSES | CAUSAL
"""For each operator, by name, what replaces it."""
_PRODUCTS = (product_along, extreme_along, multiplied_along, overwrite_along)
"""Functions with which operators are replaced, and whose results share no memory with their operands."""


def select_data(traced: Trace, dependences: dict[Node, Dependence]) -> list[FrontendError]:
    """Replace, in place, every operator on data that takes, adds up or moves elements at known positions. Return what
    stands against its complex numbers."""
    remove_unused(traced)
    graph = traced.graph_module.graph
    selections = Selections.of(traced, dependences)
    refusals = separate_complex(selections)
    memories = Memories(graph)
    positions = {node: position for position, node in enumerate(graph.nodes)}
    for node in list(graph.nodes):
        handlers = _handlers(node)
        if not handlers or dependences.get(node) != "data" or _is_read_as_it_was(node, positions):
            continue
        root = memories.root(node)
        if root is not node and not any(written_by(node)) and any(positions[w] > positions[node] for w in memories.writers(root)):
            continue  # a view that is written to
        with graph.inserting_before(node):
            result = next(
                (result for handler in handlers if (result := handler(selections, node, *node.args, **node.kwargs)) is not None),
                None,
            )
        if result is not None:
            result.meta = {**node.meta, "val": node.meta["val"], fx_origin.REPLACED: fx_origin.shown_operator(node)}
            node.replace_all_uses_with(result)
            graph.erase_node(node)
    remove_unused(traced)
    edges_to_matrices(selections)
    return refusals


def _handlers(node: Node) -> list[Handler]:
    """Return what may replace an operator, the first choice first."""
    if node.op != "call_function":
        return []
    name = fx_origin.short_name(node.target)
    name = name if name.startswith("_") else name.rstrip("_")
    return [table[name] for table in (_HANDLERS, COMPARISONS) if name in table]


def _is_read_as_it_was(node: Node, positions: dict[Node, int]) -> bool:
    """Return whether an operator writes to a value that something else reads, too. What was computed from it before is no matter."""
    return any(
        target.op == "placeholder" or any(user is not node and not _is_past(user, node, positions) for user in target.users)
        for target in written_by(node)
    )


def _is_past(user: Node, writer: Node, positions: dict[Node, int]) -> bool:
    target = user.target
    if target in _PRODUCTS:  # it replaced an operator before the writer
        return True
    is_view = not isinstance(target, OpOverload) or any(result.alias_info is not None for result in target._schema.returns)
    return not is_view and user in positions and positions[user] < positions[writer]
