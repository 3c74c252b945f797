"""Values at places that `topk` or `argmax` chooses, as matrices of rows and columns in which only the chosen places count.

For example, a mixture of experts sorts tokens by the expert that each of them chose, multiplies every group of rows by the weights of its
expert, and adds the rows up for each token. Here it becomes a product of all tokens with the weights of all experts times a matrix of
ones, tokens by experts, that stores the chosen places alone, and a sum over the experts. The program itself computes which places these
are, and multiplies at these alone.

A value is rewritten only where it leaves the slots, as in a sum over them. What reads slots in their order stays as it is.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from math import prod
from typing import Any

import torch
from torch.fx import Node

from fuseflow.frontend.positions.chosen_operators import ALONG, along, grouped, permuted, pointwise, product, reshaped_slots
from fuseflow.frontend.positions.chosen_slots import chosen_slots, divided, put, repeated, result_part, sorted_slots, taken
from fuseflow.frontend.positions.chosen_values import Choices, SlotValue, arguments, instead_of, repeated_rows
from fuseflow.frontend.positions.edge_spaces import RESHAPES, UNARY
from fuseflow.frontend.positions.selections import Selections, described, first_operand, is_zero, same_beside
from fuseflow.frontend.trace import fx_origin
from fuseflow.frontend.trace.dependence import Memories, described_tensor, remove_unused, written_by
from fuseflow.frontend.trace.fx_origin import named


def counts(choices: Choices, node: Node) -> Node | None:
    """Return how many chosen places each column has, from `histc` or `bincount` of the numbers of the columns."""
    value = choices.values.get(first_operand(node))
    if value is None or value.meaning != "column":
        return None
    columns, given = value.space.columns, arguments(node)
    if "bins" in given:  # each number has a bin of its own
        is_one_each = given["bins"] == columns and given["min"] == 0 and columns - 1 <= given["max"] <= columns
        return column_sums(choices, node, value) if is_one_each else None
    more = given["minlength"] - columns
    if given["weights"] is not None or more < 0:  # with less, the size of the result is data
        return None
    sums = column_sums(choices, node, value)
    return choices.call(node, torch.ops.aten.constant_pad_nd.default, sums, [0, more]) if more else sums


def column_sums(choices: Choices, node: Node, value: SlotValue) -> Node:
    if described(node).shape[-1] == value.space.columns:
        choices.counted[node] = value.space
    total = choices.summed(node, choices.marks_of(node, value.space), [0])
    return choices.typed(node, total)


def cumulated(choices: Choices, node: Node) -> None:
    if first_operand(node) in choices.counted:
        choices.ends[node] = choices.counted[first_operand(node)]


def one_hot(choices: Choices, node: Node) -> SlotValue | Node | None:
    value = choices.values.get(first_operand(node))
    if value is None or value.meaning != "column" or described(node).shape[-1] != value.space.columns:
        return None
    if value.space.count > 1 or not value.is_flat or described(node).dim() != 2:
        return choices.numbered(node, value, "one_hot")
    return choices.typed(node, choices.marks_of(node, value.space))


def reduced(choices: Choices, node: Node) -> SlotValue | Node | None:
    """Return a sum, a mean or an extreme, over the slots or over other dimensions."""
    operand, given, name = first_operand(node), arguments(node), fx_origin.short_name(node.target)
    value, rank, dims = choices.values.get(operand), described(operand).dim(), given.get("dim")
    if value is None or not isinstance(dims, list) or not dims:
        return None
    over = {dim % rank for dim in dims}
    if value.slot_dim in over:
        return over_slots(choices, node, operand, value, over) if value.space.choice is not None else None
    if value.meaning or not over.isdisjoint(value.dims):
        return None
    kept = [dim for dim in range(rank) if given["keepdim"] or dim not in over]

    def make() -> Node:
        inner = [value.matrix_dim(dim) for dim in sorted(over)]
        matrix = choices.widened(operand, choices.matrix(operand), inner)
        return choices.call(node, node.target, matrix, inner, *node.args[2:], **node.kwargs)

    dims = tuple(kept.index(dim) for dim in value.dims)
    return value.derived(make, masked=value.masked and name in ("sum", "mean"), dims=dims)


def over_slots(choices: Choices, node: Node, operand: Node, value: SlotValue, over: set[int]) -> Node | None:
    name, shape = fx_origin.short_name(node.target), tuple(described(operand).shape)
    if value.meaning == "one_hot":
        if name != "sum" or over != {value.slot_dim}:
            return None
        if value.is_flat:
            return column_sums(choices, node, value) if described(operand).dim() == 2 else None
        marks = choices.reshaped(node, choices.marks_of(node, value.space), described(node).shape)
        return choices.typed(node, marks) if value.dims == tuple(range(len(shape) - 1)) else None
    if value.meaning == "slot":
        return None
    slots = (value.slot_dim, value.slot_dim + 1) if value.is_flat else (value.slot_dim,)
    inner = [m for dim in sorted(over) for m in (slots if dim == value.slot_dim else (value.matrix_dim(dim),))]
    if name in ("amax", "amin"):
        absent = float("-inf") if name == "amax" else float("inf")
        matrix = choices.call(node, instead_of, choices.marks_at(node, value), choices.matrix(operand), absent)
    else:
        matrix = choices.masked(operand)
    matrix = choices.widened(operand, matrix, inner)
    if name == "mean":
        matrix = choices.summed(node, matrix, inner)
        matrix = choices.call(node, torch.ops.aten.mul.Tensor, matrix, 1 / prod(shape[dim] for dim in over))
    else:
        matrix = choices.call(node, node.target, matrix, inner)
    return choices.whole(node, matrix)


def added(choices: Choices, node: Node) -> SlotValue | Node | None:
    """Return `base.index_add(dim, index, source)`, `scatter_add` or `index_put`, which add up the slots of each row or column."""
    given, name = arguments(node), fx_origin.short_name(node.target).rstrip("_")
    base, dim = given["self"], given.get("dim", 0)
    index: Any = given.get("index")
    source: Any = given.get("source", given.get("src", given.get("values")))
    if name == "index_put":
        if len(given["indices"]) != 1 or given["indices"][0] is None:
            return None
        index = given["indices"][0]
        if not given["accumulate"]:
            return put(choices, node, base, index, source)
    value, to = choices.values.get(source), choices.values.get(index)
    dim %= described(base).dim()
    if value is None or given.get("alpha", 1) != 1 or value.space.choice is None or value.meaning in ("slot", "one_hot"):
        return None
    at = dim if name == "scatter_add" else 0
    rows, columns = described(base).shape[dim] == value.space.row_count, described(base).shape[dim] == value.space.columns
    if to is None:
        known = choices.selections.known(index)
        is_rows = value.is_flat and value.sorting is None and value.slot_dim == dim and rows
        if known is None or not is_rows or repeated_rows(known, value.space.row_count) != value.space.count:
            return None
        over = [dim + 1]
    elif not to.is_beside(value) or to.slot_dim != at or value.slot_dim != dim:
        return None
    elif to.meaning == "row" and value.is_flat and rows:
        over = [dim + 1]
    elif to.meaning == "column" and value.is_flat and columns:
        over = [dim]
    elif to.meaning == "column" and name == "scatter_add" and columns and same_beside(dim, base, index):
        over = []
    else:
        return None
    total = choices.masked(source)
    if over:
        total = choices.summed(node, total, over)
    return choices.whole(node, total if is_zero(base) else choices.call(node, torch.ops.aten.add.Tensor, base, total))


def bags(choices: Choices, node: Node) -> None:
    """Replace the sums or means of `embedding_bag` over the chosen rows of a table: a product of the weights of the rows with the
    table."""
    given = arguments(node)
    value, table = choices.values.get(given["indices"]), given["weight"]
    weights, mode = given["per_sample_weights"], given["mode"]
    starts = choices.selections.known(given["offsets"])
    if value is None or value.meaning != "column" or not value.is_flat or value.sorting is not None or starts is None:
        return
    space, slots = value.space, described(given["indices"]).numel()
    is_bag_of_row = torch.equal(starts[: space.row_count], torch.arange(0, slots, space.count, dtype=starts.dtype))
    is_whole = len(starts) == space.row_count + given["include_last_offset"] and described(table).shape[0] == space.columns
    if not is_bag_of_row or not is_whole or mode not in (0, 1) or given.get("padding_idx") not in (None, -1):
        return
    if weights is not None and not (weights in choices.values and choices.values[weights].is_beside(value)):
        return
    total = choices.call(node, torch.mm, choices.marks_of(node, space) if weights is None else choices.masked(weights), table)
    result = choices.call(node, torch.mul, total, 1 / space.count) if mode == 1 else total
    for user in list(node.users):
        if user.target is operator.getitem and user.args[1] == 0:
            user.replace_all_uses_with(result)


def written(choices: Choices, node: Node) -> Node | None:
    """Return `base.scatter(dim, index, source)` that writes to the chosen column of each row."""
    given = arguments(node)
    base, dim, index = given["self"], given["dim"] % max(1, described(given["self"]).dim()), given["index"]
    source: Any = given.get("src", given.get("value"))
    value = choices.values.get(index)
    if value is None or value.meaning != "column" or "reduce" in given or described(base).shape[dim] != value.space.columns:
        return None
    if value.is_flat or value.slot_dim != dim or not same_beside(dim, base, index):
        return None
    if isinstance(source, Node):
        known = choices.selections.known(source)
        if known is not None and known.numel() and bool((known == known.reshape(-1)[0]).all()):
            source = known.reshape(-1)[0].item()
        elif (
            source not in choices.values
            or not choices.values[source].is_beside(value)
            or choices.values[source].dims != value.dims
        ):
            return None
        elif is_zero(base):  # dimensions of sparse values are neither merged nor split, and a `keep` is simpler for the elements
            is_plain = source.target is operator.getitem and source.args[0] is value.space.choice
            return None if is_plain or _is_regrouped(node) else choices.whole(node, choices.masked(source))
        else:
            source = choices.matrix(source)
    marks, dtype = choices.marks_at(node, value), described(node).dtype
    start: Node | float = 0.0 if is_zero(base) and dtype.is_floating_point else base
    if is_zero(base) and _is_regrouped(node):
        start = choices.selections.argument(named(node, "zeros"), torch.zeros(described(base).shape, dtype=dtype))
    elif is_zero(base) and source == 1:
        return choices.whole(node, marks)
    number = source if isinstance(source, Node) else float(source) if dtype.is_floating_point else int(source)
    return choices.whole(node, choices.call(node, instead_of, marks, number, start))


def _is_regrouped(node: Node) -> bool:
    """Return whether a reshape merges or splits dimensions of a value, or of a copy with more dimensions."""
    extents = [extent for extent in described(node).shape if extent != 1]
    for user in node.users:
        name = fx_origin.short_name(user.target)
        if name in ("view", "reshape", "unflatten", "flatten"):
            if [extent for extent in described(user).shape if extent != 1] != extents:
                return True
        elif name in UNARY | {"to", "expand", "unsqueeze"} and _is_regrouped(user):
            return True
    return False


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
