"""Values at places that `topk` or `argmax` chooses, as matrices of rows and columns in which only the chosen places count.

For example, a mixture of experts sorts tokens by the expert that each of them chose, multiplies every group of rows by the weights of its
expert, and adds the rows up for each token. Here it becomes a product of all tokens with the weights of all experts times a matrix of
ones, tokens by experts, that stores the chosen places alone, and a sum over the experts. The program itself computes which places these
are, and multiplies at these alone.

A value is rewritten only where it leaves the slots, as in a sum over them. What reads slots in their order stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable

from torch.fx import Node

from fuseflow.frontend.positions.chosen_exits import added, bags, counts, cumulated, one_hot, reduced, written
from fuseflow.frontend.positions.chosen_operators import ALONG, along, permuted, pointwise, reshaped_slots
from fuseflow.frontend.positions.chosen_products import grouped, product
from fuseflow.frontend.positions.chosen_slots import chosen_slots, divided, repeated, result_part, sorted_slots, taken
from fuseflow.frontend.positions.chosen_spaces import SlotValue
from fuseflow.frontend.positions.chosen_values import Choices
from fuseflow.frontend.positions.edge_spaces import RESHAPES
from fuseflow.frontend.positions.selections import Selections
from fuseflow.frontend.trace import fx_origin
from fuseflow.frontend.trace.dependence import Memories, described_tensor, remove_unused, written_by


def chosen_to_matrices(selections: Selections) -> bool:
    """Rewrite, in place, what leaves the slots of chosen elements as a reduction of a matrix. Other values stay as they are. Return
    whether the model chooses any."""
    graph = selections.traced.graph_module.graph
    if not any(fx_origin.short_name(node.target) in ("topk", "max", "argmax") for node in graph.nodes):
        return False
    choices = Choices(selections, Memories(graph))
    choices.positions.update((node, position) for position, node in enumerate(graph.nodes))
    for node in list(graph.nodes):
        if node.op == "call_function" and selections.dependences.get(node) != "structure":
            with graph.inserting_before(node):
                _read(choices, node)
    remove_unused(selections.traced)
    return True


def _read(choices: Choices, node: Node) -> None:
    """Note the slots that the result of a node has, or replace the result if it leaves the slots."""
    for target in written_by(node):
        if _is_read_later(choices, target, node):
            _forget(choices, target)
            return
    name = fx_origin.short_name(node.target)
    name = name if name.startswith("_") else name.rstrip("_")
    if any(0 in tensor.shape for tensor in map(described_tensor, (node, *node.all_input_nodes)) if tensor is not None):
        return
    known = any(operand in known for operand in node.all_input_nodes for known in (choices.values, choices.counted, choices.ends))
    rule = _RULES.get(name) or (pointwise if known else None)
    result = rule(choices, node) if rule is not None and (known or name in _OPENING) else None
    if isinstance(result, SlotValue):
        choices.values[node] = result
    elif result is not None:
        result.meta = {**node.meta, "val": node.meta["val"], fx_origin.REPLACED: fx_origin.shown_operator(node)}
        node.replace_all_uses_with(result)
        if node in choices.counted:
            choices.counted[result] = choices.counted[node]


def _is_read_later(choices: Choices, target: Node, writer: Node) -> bool:
    """Return whether the memory that an operator writes to is an argument, or is read later under another name than its result."""
    root, place = choices.memories.root(target), choices.positions[writer]
    others = {root, *root.users} if isinstance(root.meta["val"], tuple | list) else set[Node]()  # other results of an operator
    before = (node for node, position in choices.positions.items() if position < place and node not in others - {target})
    sharing = [node for node in before if choices.memories.root(node) is root]
    return root.op == "placeholder" or any(choices.positions.get(user, 0) > place for node in sharing for user in node.users)


def _forget(choices: Choices, target: Node) -> None:
    root = choices.memories.root(target)
    for node in [node for node in choices.values if choices.memories.root(node) is root]:
        del choices.values[node]


_OPENING = frozenset({"topk", "max", "argmax", "repeat_interleave", "index", "index_select", "embedding"})
"""Operators whose result may have slots that no operand has."""
_RULES: dict[str, Callable[[Choices, Node], SlotValue | Node | None]] = {
    **dict.fromkeys(("topk", "max", "argmax"), chosen_slots),
    "getitem": result_part,
    **dict.fromkeys(("sort", "argsort"), sorted_slots),
    **dict.fromkeys(("floor_divide", "div"), divided),
    "repeat_interleave": repeated,
    **dict.fromkeys(("index", "index_select", "embedding", "gather"), taken),
    **dict.fromkeys((*RESHAPES, "flatten", "unflatten"), reshaped_slots),
    **dict.fromkeys(("transpose", "permute", "t", "movedim", "swapaxes"), permuted),
    **dict.fromkeys(ALONG, along),
    **dict.fromkeys(("mm", "bmm", "matmul", "linear", "einsum"), product),
    "_grouped_mm": grouped,
    **dict.fromkeys(("histc", "bincount"), counts),
    "cumsum": cumulated,
    "one_hot": one_hot,
    **dict.fromkeys(("sum", "mean", "amax", "amin"), reduced),
    **dict.fromkeys(("index_add", "scatter_add", "index_put"), added),
    "scatter": written,
    "embedding_bag": bags,
}
"""The rule of each operator, by its name. Others are pointwise."""
