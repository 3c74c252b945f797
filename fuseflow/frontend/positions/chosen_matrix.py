"""Values at places that `topk` or `argmax` chooses, as matrices of rows and columns in which only the chosen places count.

For example, a mixture of experts sorts tokens by the expert that each of them chose, multiplies every group of rows by the weights of its
expert, and adds the rows up for each token. Here it becomes a product of all tokens with the weights of all experts times a matrix of
ones, tokens by experts, that stores the chosen places alone, and a sum over the experts. The program itself computes which places these
are, and multiplies at these alone.

A value is rewritten only where it leaves the slots, as in a sum over them. What reads slots in their order stays as it is.
"""

from __future__ import annotations

import math
import operator
import string
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

import torch
from torch import Tensor
from torch.fx import Node

from fuseflow.frontend.positions.chosen_spaces import Chosen, ChosenSpace, Meaning, Slice, opened, repeated_rows
from fuseflow.frontend.positions.edge_spaces import RESHAPES, UNARY
from fuseflow.frontend.positions.selections import Call, Selections, described, first_operand, is_zero
from fuseflow.frontend.trace import fx_origin
from fuseflow.frontend.trace.dependence import Memories, described_tensor, remove_unused, schema_arguments, written_by
from fuseflow.frontend.trace.fx_origin import named
from fuseflow.keep_rules import Largest

_KEEPS_ZERO = UNARY | {
    "add",
    "sub",
    "neg",
    "relu",
    "relu6",
    "leaky_relu",
    "elu",
    "tanh",
    "abs",
    "sign",
    "sqrt",
    "square",
    "gelu",
    "silu",
    "to",
}
"""Operators whose result is zero where all operands are."""
_ALONG = frozenset({"layer_norm", "chunk", "split", "split_with_sizes", "slice", "softmax", "log_softmax", "rms_norm"})
"""Operators along other dimensions than the one of the slots."""
_KEEPS_SHAPE = frozenset({"layer_norm", "rms_norm", "softmax", "log_softmax"})


def labelled_product(left: Tensor, right: Tensor, equation: str) -> Tensor:
    """Return `torch.einsum(equation, left, right)`. An operand that is the same for all coordinates of an index of both the other
    operand and the result is expanded, so that the index counts a batch of products."""
    operands, result = equation.split("->")
    labels = operands.split(",")
    extents: dict[str, int] = {}
    for tensor, names in zip((left, right), labels, strict=True):
        extents |= {name: size for name, size in zip(names, tensor.shape, strict=True) if extents.get(name, 1) == 1}
    shared = [name for name in labels[0] if name in labels[1] and name in result]
    tensors = [left, right]
    smaller = min((0, 1), key=lambda n: tensors[n].numel())
    shape = [
        extents[name] if name in shared else size for name, size in zip(labels[smaller], tensors[smaller].shape, strict=True)
    ]
    tensors[smaller] = tensors[smaller].expand(shape)
    return torch.einsum(equation, *tensors)


def at_places(marks: Tensor, x: Tensor) -> Tensor:
    """Return x at the places that are marked, and zero elsewhere."""
    return marks.to(x.dtype) * x


def instead_of(marks: Tensor, x: Tensor | float, base: Tensor | float) -> Tensor:
    """Return x at the places that are marked, and `base` elsewhere."""
    return torch.where(marks == 0, base, x)


def chosen_to_matrices(selections: Selections) -> bool:
    """Rewrite, in place, what leaves the slots of chosen elements as a reduction of a matrix. Other values stay as they are. Return
    whether the model chooses any."""
    graph = selections.traced.graph_module.graph
    if not any(fx_origin.short_name(node.target) in ("topk", "max", "argmax") for node in graph.nodes):
        return False
    choices = _Choices(selections, Memories(graph))
    choices.positions.update((node, position) for position, node in enumerate(graph.nodes))
    for node in list(graph.nodes):
        if node.op == "call_function" and selections.dependences.get(node) != "structure":
            with graph.inserting_before(node):
                choices.read(node)
    remove_unused(selections.traced)
    return True


@dataclass(slots=True)
class _Choices:
    """The values with slots of a traced model. `marks` has the matrix of ones of each space. `counted` has the values that are the
    number of chosen places in each column, and `ends` the sums of these numbers so far. `inverses` has the values that undo a
    permutation of slots. `positions` orders the nodes."""

    selections: Selections
    memories: Memories
    values: dict[Node, Chosen] = field(default_factory=dict)
    marks: dict[ChosenSpace, Node] = field(default_factory=dict)
    counted: dict[Node, ChosenSpace] = field(default_factory=dict)
    ends: dict[Node, ChosenSpace] = field(default_factory=dict)
    inverses: dict[Node, Chosen] = field(default_factory=dict)
    positions: dict[Node, int] = field(default_factory=dict)

    # Nodes

    def call(self, node: Node, target: Any, *args: Any, **kwargs: Any) -> Node:
        return self.selections.computed(node, target, args, **kwargs)

    def reshaped(self, node: Node, value: Node, shape: Sequence[int]) -> Node:
        if tuple(described(value).shape) == tuple(shape):
            return value
        return self.call(node, torch.ops.aten.reshape.default, value, list(shape))

    def matrix(self, node: Node) -> Node:
        """Return the matrix of a value with slots, which is added where the value is."""
        value = self.values[node]
        if not value.made:
            with node.graph.inserting_before(node):
                value.made.append(value.make())
        return value.made[0]

    def masked(self, node: Node) -> Node:
        """Return the matrix of a value with slots, with zeros at places that are not chosen."""
        value = self.values[node]
        if value.masked:
            return self.matrix(node)
        if len(value.made) < 2:
            matrix = self.matrix(node)
            with node.graph.inserting_before(node):
                value.made.append(self.call(node, at_places, self.marks_at(node, value), matrix))
        return value.made[1]

    def marks_at(self, node: Node, value: Chosen) -> Node:
        """Return the chosen places in the dimensions that the matrix of a value has."""
        marks = self.marks_of(node, value.space)
        shape = list(value.shape(tuple(described(node).shape)))
        if value.is_flat:
            return self.reshaped(node, marks, [n if d - value.slot_dim in (0, 1) else 1 for d, n in enumerate(shape)])
        order = sorted(range(len(value.dims)), key=value.dims.__getitem__)
        if order != list(range(len(order))):
            marks = self.reshaped(node, marks, [shape[d] for d in value.dims])
            marks = self.call(node, torch.ops.aten.permute.default, marks, order)
        return self.reshaped(node, marks, [n if d in value.dims else 1 for d, n in enumerate(shape)])

    def marks_of(self, node: Node, space: ChosenSpace) -> Node:
        choice = space.choice
        assert choice is not None
        if space not in self.marks:
            with node.graph.inserting_before(choice):
                x = first_operand(choice)
                dims = opened(choice, x, _arguments(choice)["dim"], space.count).dims
                rule = Largest(space.count, by="greatest")
                marks = Call(self.selections, choice).kept(x, rule, (dims[-1],), marks=True)
                rest = [d for d in range(described(x).dim()) if d not in dims]
                marks = self.call(choice, torch.ops.aten.permute.default, marks, [*rest, *dims])
                self.marks[space] = self.reshaped(choice, marks, (space.row_count, space.columns))
        return self.marks[space]

    # What has slots

    def read(self, node: Node) -> None:
        """Note the slots that the result of a node has, or replace the result if it leaves the slots."""
        for target in written_by(node):
            if self.is_read_later(target, node):
                self.forget(target)
                return
        name = fx_origin.short_name(node.target)
        name = name if name.startswith("_") else name.rstrip("_")
        if any(0 in tensor.shape for tensor in map(described_tensor, (node, *node.all_input_nodes)) if tensor is not None):
            return
        known = any(operand in known for operand in node.all_input_nodes for known in (self.values, self.counted, self.ends))
        rule = _RULES.get(name) or (_Choices.pointwise if known else None)
        result = rule(self, node) if rule is not None and (known or name in _OPENING) else None
        if isinstance(result, Chosen):
            self.values[node] = result
        elif result is not None:
            result.meta = {**node.meta, "val": node.meta["val"], fx_origin.REPLACED: fx_origin.shown_operator(node)}
            node.replace_all_uses_with(result)
            if node in self.counted:
                self.counted[result] = self.counted[node]

    def is_read_later(self, target: Node, writer: Node) -> bool:
        """Return whether the memory that an operator writes to is an argument, or is read later under another name than its result."""
        root, place = self.memories.root(target), self.positions[writer]
        others = (
            {root, *root.users} if isinstance(root.meta["val"], tuple | list) else set[Node]()
        )  # other results of an operator
        before = (node for node, position in self.positions.items() if position < place and node not in others - {target})
        sharing = [node for node in before if self.memories.root(node) is root]
        return root.op == "placeholder" or any(self.positions.get(user, 0) > place for node in sharing for user in node.users)

    def forget(self, target: Node) -> None:
        root = self.memories.root(target)
        for node in [node for node in self.values if self.memories.root(node) is root]:
            del self.values[node]

    def numbers(self, node: Node, value: Chosen, *, of_rows: bool = False) -> Node:
        """Return the numbers of the columns, or of the rows, in the dimensions that the matrix of a value has."""
        extent, dim = value.space.columns, value.matrix_dim(value.slot_dim)
        if of_rows:
            assert value.is_flat
            extent, dim = value.space.row_count, value.slot_dim
        counted = self.selections.counted(extent, torch.int64, named(node, "places"))
        rank = described(node).dim() + value.is_flat
        return self.reshaped(node, counted, [extent if d == dim else 1 for d in range(rank)])

    def numbered(self, node: Node, value: Chosen, meaning: Meaning) -> Chosen:
        """Return a value with slots whose numbers have a meaning."""

        def make() -> Node:
            assert meaning in ("column", "row"), f"{meaning} has no matrix"
            return self.numbers(node, value, of_rows=meaning == "row")

        return value.derived(make, meaning=meaning)

    # Operators that choose

    def chosen(self, node: Node) -> Chosen | None:
        """Return the slots of `topk`, `max(x, dim)` or `argmax(x, dim)`."""
        given = _arguments(node)
        x, dim, name = given["self"], given.get("dim"), fx_origin.short_name(node.target)
        if not isinstance(x, Node) or not isinstance(dim, int) or not given.get("largest", True):
            return None
        shape = described(x).shape
        if not described(x).is_floating_point() or not shape or not 0 < given.get("k", 1) <= shape[dim]:
            return None
        value = opened(node, x, dim, given.get("k", 1))
        if name != "topk" and not given["keepdim"]:
            if len(value.dims) != 2:
                return None
            row = value.dims[0]
            value = replace(value, dims=(row - (dim % len(shape) < row),), is_flat=True)
        return self.numbered(node, value, "column") if name == "argmax" else value

    def part(self, node: Node) -> Chosen | None:
        """Return a result of an operator with several ones."""
        source, number = node.args
        assert isinstance(source, Node)
        value, name = self.values.get(source), fx_origin.short_name(source.target)
        if value is None:
            return None
        if name in ("topk", "max"):
            return self.numbered(node, value, "column") if number == 1 else self.chosen_elements(node, value)
        if name == "sort":
            meaning: Meaning = "slot" if number == 1 else "column"
            return None if meaning == "slot" and not value.is_flat else self.numbered(node, value, meaning)

        def part(x: Node, dim: int) -> Node:
            args = list(source.args[1:2])
            options = {key: given for key, given in source.kwargs.items() if key != "dim"}
            tensors = source.target(torch.empty_like(described(x)), *args, dim=dim, **options)  # type: ignore[operator]
            parts = self.selections.valued(node, tensors, source.target, (x, *args), dim=dim, **options)
            return self.selections.valued(node, tensors[number], operator.getitem, (parts, number))

        sliced = value.sliced
        return None if sliced is None else value.derived(lambda: sliced(part, -1), masked=value.masked)

    def chosen_elements(self, node: Node, value: Chosen) -> Chosen:
        choice = value.space.choice
        assert choice is not None
        x, dim = first_operand(choice), _arguments(choice)["dim"]

        def make() -> Node:
            rank = described(x).dim()
            matrix = self.call(node, torch.ops.aten.movedim.int, x, dim % rank, value.matrix_dim(value.slot_dim))
            return self.call(node, at_places, self.marks_at(node, value), matrix)

        return value.derived(make, masked=True)

    # Permutations of slots

    def sorted(self, node: Node) -> Chosen | None:
        """Return the slots after a sort of the numbers of columns. Other sorts change the order in a way that is not known here."""
        value = self.values.get(first_operand(node))
        is_argsort = "argsort" in str(node.target)
        if value is None:
            return None
        if value.meaning == "slot" and is_argsort and value.sorting is not None:
            self.inverses[node] = value
            return None
        if value.meaning != "column" or _arguments(node)["dim"] % described(first_operand(node)).dim() != value.slot_dim:
            return None
        if not value.is_flat:
            return None if is_argsort else replace(value, order=node)
        if value.sorting is not None:
            return None
        return self.numbered(node, replace(value, sorting=node), "slot") if is_argsort else replace(value, sorting=node)

    def divided(self, node: Node) -> Chosen | None:
        """Return the rows of slots, which are the numbers of the slots divided by how many a row has; or else an operator on elements."""
        value, (_, divisor) = self.values.get(first_operand(node)), node.args[:2]
        rounds = fx_origin.short_name(node.target).startswith("floor_divide") or node.kwargs.get("rounding_mode") is not None
        if value is not None and value.meaning == "slot":
            return self.numbered(node, value, "row") if rounds and divisor == value.space.count else None
        return self.pointwise(node)

    def repeated(self, node: Node) -> Chosen | None:
        """Return rows that are repeated once for each slot of a row."""
        given = _arguments(node)
        x, count, dim = given["self"], given.get("repeats"), given.get("dim")
        if not isinstance(count, int) or not isinstance(dim, int) or x in self.values:
            return None
        return self.rows_of(node, x, dim % described(x).dim(), count)

    def rows_of(self, node: Node, x: Node, dim: int, count: int, value: Chosen | None = None) -> Chosen:
        """Return rows of x along a dimension, each as often as it has slots."""
        space = ChosenSpace(None, (described(x).shape[dim],), 1, count)
        value = Chosen(space, (dim,), True, lambda: x) if value is None else replace(value, dims=(dim,), is_flat=True)
        return value.derived(lambda: self.call(node, torch.ops.aten.unsqueeze.default, x, dim + 1))

    # Operators on all elements, and reshapes

    def lead(self, operands: Sequence[object]) -> Chosen | None:
        """Return the operand that says which places are chosen, if all operands with slots have them in one order."""
        values = [self.values[operand] for operand in operands if isinstance(operand, Node) and operand in self.values]
        if not values:
            return None
        lead = next((value for value in values if value.space.choice is not None), values[0])
        return lead if all(lead.is_beside(value) for value in values) else None

    def pointwise(self, node: Node) -> Chosen | None:
        name = fx_origin.short_name(node.target).rstrip("_")
        is_pointwise = isinstance(node.target, torch._ops.OpOverload) and torch.Tag.pointwise in node.target.tags
        operands, result = node.all_input_nodes, node.meta["val"]
        lead = self.lead(operands)
        if lead is None or not (is_pointwise or name in UNARY | {"to", "expand"}) or not isinstance(result, Tensor):
            self.counts_converted(node)
            return None
        leader = next(operand for operand in operands if self.values.get(operand) is lead)
        more = result.dim() - described(leader).dim()
        lead = replace(lead, dims=tuple(dim + more for dim in lead.dims), made=[])
        for operand in operands:
            value, offset = self.values.get(operand), result.dim() - described(operand).dim()
            if value is not None and tuple(dim + offset for dim in value.dims) != lead.dims:
                return None
            if value is not None and (value.meaning in ("slot", "one_hot") and name not in UNARY | {"to", "expand"}):
                return None
            if value is None and not self.is_equal_in_slots(described(operand), lead, offset):
                return None
        if name in UNARY | {"to", "expand"}:
            value = self.values[leader]
            return lead.derived(
                lambda: self.unary(node, leader, self.matrix(leader)),
                masked=value.masked,
                meaning=value.meaning,
                sliced=lambda part, dim: self.unary(node, leader, self.part_of(leader, dim - more, part)),
            )
        masked = [operand in self.values and self.values[operand].masked for operand in operands]
        keeps = name in _KEEPS_ZERO and not any(isinstance(arg, int | float) for arg in node.args[1:] if name in ("add", "sub"))
        keeps = keeps or (name == "clamp" and _clamps_zero_to_zero(node))
        is_masked = any(masked) if name == "mul" or keeps else name == "div" and masked[0]
        masks_rest = is_masked and keeps and not all(masked)

        def computed(taken: Callable[[Node], Node]) -> Node:
            matrices = {operand: self.operand(node, operand, lead, masks_rest, taken) for operand in operands}
            args, kwargs = torch.fx.map_arg((node.args, node.kwargs), matrices.__getitem__)
            return self.call(node, _not_in_place(node.target), *args, **kwargs)

        def sliced(part: Slice, dim: int) -> Node:
            def taken(operand: Node) -> Node:
                own = dim - result.dim() + described(operand).dim()
                is_whole = own < 0 or described(operand).shape[own] == 1
                return self.matrix_or_number(operand) if is_whole else self.part_of(operand, own, part)

            return computed(taken)

        return lead.derived(lambda: computed(self.matrix_or_number), masked=is_masked, sliced=sliced)

    def matrix_or_number(self, operand: Node) -> Node:
        return self.matrix(operand) if operand in self.values else operand

    def part_of(self, node: Node, dim: int, part: Slice) -> Node:
        """Return a part of a value along a dimension: of the matrix, if it has slots."""
        value = self.values.get(node)
        if value is None:
            return part(node, dim)
        if value.sliced is not None:
            return value.sliced(part, dim)
        inner = value.matrix_dim(dim)
        return part(self.widened(node, self.matrix(node), value.shape(tuple(described(node).shape)), [inner]), inner)

    def counts_converted(self, node: Node) -> None:
        """Note that a conversion of the numbers of chosen places has these numbers."""
        if fx_origin.short_name(node.target) in UNARY | {"to"}:
            operand = first_operand(node)
            for known in (self.counted, self.ends):
                if operand in known:
                    known[node] = known[operand]

    def unary(self, node: Node, operand: Node, matrix: Node) -> Node:
        more = described(node).dim() - described(operand).dim()
        if more:
            matrix = self.reshaped(node, matrix, [1] * more + list(described(matrix).shape))
        if described(node).dtype == described(matrix).dtype:
            return matrix
        return self.call(node, torch.ops.aten.to.dtype, matrix, described(node).dtype)

    def is_equal_in_slots(self, operand: Tensor, value: Chosen, offset: int) -> bool:
        """Return whether an operand without slots has one number for all slots of a row, or of all rows if the slots are one dimension."""
        dim = value.slot_dim - offset
        is_rows = value.is_flat and value.space.count == 1 and value.sorting is None
        return dim < 0 or operand.shape[dim] == 1 or is_rows

    def operand(self, node: Node, operand: Node, lead: Chosen, masks: bool, taken: Callable[[Node], Node]) -> Node:
        """Return the matrix of an operand of `node`, or of the part that `taken` takes, for the slots of `lead`."""
        offset = described(node).dim() - described(operand).dim()
        value, dim, matrix = self.values.get(operand), lead.slot_dim - offset, taken(operand)
        if value is None and lead.is_flat and dim >= 0:
            matrix = self.call(node, torch.ops.aten.unsqueeze.default, matrix, dim + 1)
        is_masked = not masks or (value is not None and value.masked)
        return matrix if is_masked else self.call(node, at_places, self.marks_at(node, lead), matrix)

    def reshape(self, node: Node) -> Chosen | None:
        operand = first_operand(node)
        value, shape, result = self.values.get(operand), tuple(described(operand).shape), tuple(described(node).shape)
        moved = None if value is None else value.moved(shape, result)
        if value is None or moved is None or value.meaning == "one_hot":
            return None
        if value.meaning == "slot":
            return self.numbered(node, moved, value.meaning) if moved.is_flat else None

        def make() -> Node:
            matrix, old, new = self.matrix(operand), value.shape(shape), list(moved.shape(result))
            extents = described(matrix).shape
            inner = {value.matrix_dim(dim) for dim in value.dims} | ({value.slot_dim} if value.is_flat else set())
            if any(extents[d] != old[d] for d in range(len(old)) if d not in inner):
                whole = [-1 if d in inner else n for d, n in enumerate(old)]
                matrix = self.call(node, torch.ops.aten.expand.default, matrix, whole)
            if extents[value.matrix_dim(value.slot_dim)] == 1:
                new[moved.matrix_dim(moved.slot_dim)] = 1
            if prod(extents[d] for d in inner) == extents[value.matrix_dim(value.slot_dim)]:  # one number for all rows
                for dim in (moved.slot_dim,) if moved.is_flat else moved.dims[:-1]:
                    new[dim] = 1
            return self.reshaped(node, matrix, new)

        def sliced(part: Slice, dim: int) -> Node:
            places = {(prod(shape[:d]), extent): d for d, extent in enumerate(shape)}
            own = places.get((prod(result[:dim]), result[dim]))
            simple = sum(n != 1 for n in shape) == sum(n != 1 for n in result)
            if own is None or not simple or value.is_flat != moved.is_flat:
                return part(self.matrix(node), moved.matrix_dim(dim))
            matrix = self.part_of(operand, own, part)
            inner = iter([n for d, n in enumerate(described(matrix).shape) if value.shape(shape)[d] != 1])
            return self.reshaped(node, matrix, [1 if n == 1 else next(inner) for n in moved.shape(result)])

        return moved.derived(make, masked=value.masked, meaning=value.meaning, sliced=sliced)

    def permuted(self, node: Node) -> Chosen | None:
        operand = first_operand(node)
        value, rank = self.values.get(operand), described(node).dim()
        numbers = torch.empty([2] * rank, device="meta").stride()
        order = [numbers.index(stride) for stride in _moved(node, torch.empty([2] * rank, device="meta")).stride()]
        if value is None or value.meaning not in ("", "column", "row"):
            return None
        moved = replace(value, dims=tuple(order.index(dim) for dim in value.dims), made=[])
        inner = [
            m for dim in order for m in ((dim, dim + 1) if value.is_flat and dim == value.slot_dim else (value.matrix_dim(dim),))
        ]
        make = lambda: self.call(node, torch.ops.aten.permute.default, self.matrix(operand), inner)  # noqa: E731
        return moved.derived(make, masked=value.masked, meaning=value.meaning)

    def along(self, node: Node) -> Chosen | None:
        """Return an operator along other dimensions than the one of the slots, or a softmax over them."""
        operand, name, given = first_operand(node), fx_origin.short_name(node.target), _arguments(node)
        value, rank = self.values.get(operand), described(first_operand(node)).dim()
        shape = given.get("normalized_shape", [0])
        dims = range(rank - len(shape), rank) if "dim" not in given else [given["dim"] % rank]
        if value is None or value.meaning or any(other in self.values for other in node.all_input_nodes[1:]):
            return None
        if not set(value.dims).isdisjoint(dims):
            return self.softmax(node, value) if name == "softmax" and not value.is_flat and value.slot_dim in dims else None

        is_part = name not in _KEEPS_SHAPE
        if is_part and name != "slice":
            return value.derived(
                lambda: self.matrix(operand), masked=value.masked, sliced=lambda part, _: self.part_of(operand, dims[0], part)
            )

        def part(x: Node, dim: int) -> Node:
            return self.call(node, node.target, x, dim, *node.args[2:])

        def make() -> Node:
            if is_part:
                return self.part_of(operand, dims[0], part)
            inner = [value.matrix_dim(dim) for dim in dims]
            matrix = self.widened(node, self.matrix(operand), value.shape(tuple(described(operand).shape)), inner)
            args = [value.matrix_dim(dims[0])] if "dim" in given else [shape]
            return self.call(node, node.target, matrix, *args, *node.args[2:], **node.kwargs)

        return value.derived(make, masked=value.masked and is_part)

    def softmax(self, node: Node, value: Chosen) -> Chosen:
        operand = first_operand(node)

        def make() -> Node:
            scores = self.call(node, instead_of, self.marks_at(node, value), self.matrix(operand), float("-inf"))
            return self.call(node, node.target, scores, *node.args[1:], **node.kwargs)

        return value.derived(make, masked=True)

    # Products

    def product(self, node: Node) -> Chosen | Node | None:
        equation, operands = _equation(node)
        result = self.multiplied(node, operands, equation) if equation else None
        bias = _arguments(node).get("bias")
        if not isinstance(bias, Node) or result is None:
            return result
        if isinstance(result, Node):
            return self.call(node, torch.ops.aten.add.Tensor, result, bias)

        def make() -> Node:
            added = self.call(node, at_places, self.marks_at(node, result), bias) if result.masked else bias
            return self.call(node, torch.ops.aten.add.Tensor, result.make(), added)

        return result.derived(make, masked=result.masked)

    def multiplied(self, node: Node, operands: tuple[Any, Any], equation: str) -> Chosen | Node | None:
        """Return a product, whose result has slots, or is a sum over slots."""
        lead = self.lead(operands)
        labels, result = equation.split("->")[0].split(","), equation.split("->")[1]
        values = [self.values.get(operand) for operand in operands]
        pairs = list(zip(operands, values, labels, strict=True))
        if lead is None or any(value is not None and value.meaning for value in values):
            return None
        names = next([names[d] for d in value.dims] for _, value, names in pairs if value is not None)
        slot = names[-1]
        for operand, value, own in pairs:
            if len(set(own)) != len(own) or (value is not None and [own[d] for d in value.dims] != names):
                return None
            is_rows = lead.is_flat and lead.space.count == 1 and lead.sorting is None
            if value is None and slot in own and not is_rows and described(operand).shape[own.index(slot)] != 1:
                return None
        column = next(letter for letter in string.ascii_letters if letter not in equation)

        def wide(text: str) -> str:
            return text.replace(slot, slot + column) if lead.is_flat else text

        leaves = slot not in result
        if leaves and lead.space.choice is None:
            return None

        def make(masks: bool, name: str = "", part: Slice | None = None) -> Node:
            tensors, texts = [], []
            chosen = next((n for n, value in enumerate(values) if value is not None and value.masked), None)
            if chosen is None and masks:
                sizes = [
                    described(operand).numel() if value is not None else math.inf
                    for operand, value in zip(operands, values, strict=True)
                ]
                chosen = sizes.index(min(sizes))
            for n, (operand, value, own) in enumerate(pairs):
                if part is not None and name in own:
                    matrix = self.part_of(operand, own.index(name), part)
                else:
                    matrix = operand if value is None else self.masked(operand) if n == chosen else self.matrix(operand)
                if value is None and lead.is_flat and slot in own:
                    matrix = self.call(node, torch.ops.aten.unsqueeze.default, matrix, own.index(slot) + 1)
                tensors.append(matrix)
                texts.append(wide(own))
            text = ",".join(texts) + "->" + wide(result)
            return self.call(node, labelled_product, *tensors, text)

        if leaves:
            return make(True)
        dims = tuple(result.index(name) for name in names)
        if any(name not in result for name in names):
            return None
        moved = replace(lead, dims=dims, made=[])
        is_masked = any(value is not None and value.masked for value in values)
        return moved.derived(lambda: make(False), masked=is_masked, sliced=lambda part, dim: make(False, result[dim], part))

    def grouped(self, node: Node) -> Chosen | None:
        """Return the products of groups of slots with the matrices of their columns."""
        args: tuple[Any, ...] = (*node.args, None)
        rows, weights, ends = args[:3]
        value, space = self.values.get(rows), self.ends.get(ends)
        if value is None or space is None or value.meaning or described(weights).dim() != 3 or described(rows).dim() != 2:
            return None
        if not value.is_flat or value.sorting is None or value.space is not space or value.dims != (0,):
            return None

        def product(weights: Node) -> Node:
            product = self.call(node, labelled_product, self.matrix(rows), weights, "tei,eij->tej")
            return product if value.masked else self.call(node, at_places, self.marks_at(node, value), product)

        return value.derived(lambda: product(weights), masked=True, sliced=lambda part, _: product(part(weights, 2)))

    # What takes elements by the numbers of slots

    def taken(self, node: Node) -> Chosen | None:
        """Return `x[index]`, `index_select(x, dim, index)`, `embedding(x, index)` or `gather(x, dim, index)`."""
        name = fx_origin.short_name(node.target)
        x, dim, index = _taken(node)
        if index is None or not described(x).dim():
            return None
        shape, value = described(x).shape, self.values.get(index)
        dim %= len(shape)
        if index in self.inverses and x in self.values and dim == 0 and name != "gather":
            return self.unsorted(node, x, self.inverses[index])
        if value is None:
            known = None if name == "gather" or x in self.values else self.selections.known(index)
            count = 0 if known is None else repeated_rows(known, shape[dim])
            return self.rows_of(node, x, dim, count) if count else None
        at = dim if name == "gather" else 0
        if name == "gather":
            others = zip(shape, described(index).shape, strict=True)
            if any(a != b for d, (a, b) in enumerate(others) if d not in (dim, value.slot_dim)):
                return None
            if value.meaning == "column" and not value.is_flat and dim == value.slot_dim and x not in self.values:
                rows = all(shape[d] == described(index).shape[d] for d in range(len(shape)) if d != dim)
                if not rows or shape[dim] != value.space.columns:
                    return None
                return value.derived(lambda: self.call(node, at_places, self.marks_at(node, value), x), masked=True)
            is_row = value.is_flat and value.space.count == 1 and value.sorting is None and described(index).shape[dim] == 1
            if (
                value.meaning == "column"
                and is_row
                and (value.slot_dim, dim, len(shape)) == (0, 1, 2)
                and shape[1] == value.space.columns
            ):
                return value.derived(lambda: self.call(node, torch.ops.aten.unsqueeze.default, x, 2))
        elif described(index).dim() != len(value.dims):
            return None
        if at != (value.slot_dim if value.is_flat else value.dims[0]):
            return None
        return self.taken_at(node, x, dim, index, value)

    def taken_at(self, node: Node, x: Node, dim: int, index: Node, value: Chosen) -> Chosen | None:
        shape, source = list(described(x).shape), self.values.get(x)
        dims = tuple(d - value.dims[0] + dim for d in value.dims)
        if value.meaning == "column" and source is None and shape[dim] == value.space.columns:
            rows = [1] if value.is_flat else [1] * (len(value.dims) - 1)
            if dims != tuple(range(dim, dim + len(dims))):
                return None
            wide = [*shape[:dim], *rows, *shape[dim:]]

            def sliced(part: Slice, place: int) -> Node:
                own = place if place < dim else place - len(dims) + 1
                taken = part(x, own)
                extents = described(taken).shape
                return self.reshaped(node, taken, [*extents[:dim], *rows, *extents[dim:]])

            return value.derived(lambda: self.reshaped(node, x, wide), dims=dims, sliced=sliced)
        if not value.is_flat:
            return None
        if value.meaning == "row" and source is None and shape[dim] == value.space.row_count:
            return value.derived(lambda: self.call(node, torch.ops.aten.unsqueeze.default, x, dim + 1), dims=dims)
        if source is None or not source.is_flat or source.slot_dim != dim or source.meaning == "slot":
            return None
        if value.meaning != "slot" or source.sorting is not None or not replace(value, sorting=None).is_beside(source):
            return None
        return value.derived(lambda: self.matrix(x), masked=source.masked, meaning=source.meaning, dims=dims)

    def unsorted(self, node: Node, source: Node, inverse: Chosen) -> Chosen | None:
        """Return a value whose slots were sorted in the order before."""
        value = self.values[source]
        if not value.is_flat or value.slot_dim != 0 or not value.is_beside(inverse) or value.meaning in ("slot", "one_hot"):
            return None
        return value.derived(lambda: self.matrix(source), masked=value.masked, meaning=value.meaning, sorting=None)

    # What leaves the slots

    def counts(self, node: Node) -> Node | None:
        """Return how many chosen places each column has, from `histc` or `bincount` of the numbers of the columns."""
        value = self.values.get(first_operand(node))
        if value is None or value.meaning != "column":
            return None
        columns, given = value.space.columns, _arguments(node)
        if "bins" in given:  # each number has a bin of its own
            is_one_each = given["bins"] == columns and given["min"] == 0 and columns - 1 <= given["max"] <= columns
            return self.column_sums(node, value) if is_one_each else None
        more = given["minlength"] - columns
        if given["weights"] is not None or more < 0:  # with less, the size of the result is data
            return None
        sums = self.column_sums(node, value)
        return self.call(node, torch.ops.aten.constant_pad_nd.default, sums, [0, more]) if more else sums

    def column_sums(self, node: Node, value: Chosen) -> Node:
        if described(node).shape[-1] == value.space.columns:
            self.counted[node] = value.space
        total = self.call(node, torch.ops.aten.sum.dim_IntList, self.marks_of(node, value.space), [0])
        return self.call(node, torch.ops.aten.to.dtype, total, described(node).dtype)

    def cumulated(self, node: Node) -> None:
        if first_operand(node) in self.counted:
            self.ends[node] = self.counted[first_operand(node)]

    def one_hot(self, node: Node) -> Chosen | Node | None:
        value = self.values.get(first_operand(node))
        if value is None or value.meaning != "column" or described(node).shape[-1] != value.space.columns:
            return None
        if value.space.count > 1 or not value.is_flat or described(node).dim() != 2:
            return self.numbered(node, value, "one_hot")
        return self.call(node, torch.ops.aten.to.dtype, self.marks_of(node, value.space), described(node).dtype)

    def reduced(self, node: Node) -> Chosen | Node | None:
        """Return a sum, a mean or an extreme, over the slots or over other dimensions."""
        operand, given, name = first_operand(node), _arguments(node), fx_origin.short_name(node.target)
        value, rank, dims = self.values.get(operand), described(operand).dim(), given.get("dim")
        if value is None or not isinstance(dims, list) or not dims:
            return None
        over = {dim % rank for dim in dims}
        if value.slot_dim in over:
            return self.over_slots(node, operand, value, over) if value.space.choice is not None else None
        if value.meaning or not over.isdisjoint(value.dims):
            return None
        kept = [dim for dim in range(rank) if given["keepdim"] or dim not in over]

        def make() -> Node:
            inner = [value.matrix_dim(dim) for dim in sorted(over)]
            matrix = self.widened(node, self.matrix(operand), value.shape(tuple(described(operand).shape)), inner)
            return self.call(node, node.target, matrix, inner, *node.args[2:], **node.kwargs)

        dims = tuple(kept.index(dim) for dim in value.dims)
        return value.derived(make, masked=value.masked and name in ("sum", "mean"), dims=dims)

    def over_slots(self, node: Node, operand: Node, value: Chosen, over: set[int]) -> Node | None:
        name, shape = fx_origin.short_name(node.target), tuple(described(operand).shape)
        if value.meaning == "one_hot":
            if name != "sum" or over != {value.slot_dim}:
                return None
            if value.is_flat:
                return self.column_sums(node, value) if described(operand).dim() == 2 else None
            marks = self.reshaped(node, self.marks_of(node, value.space), described(node).shape)
            is_in_order = value.dims == tuple(range(len(shape) - 1))
            return self.call(node, torch.ops.aten.to.dtype, marks, described(node).dtype) if is_in_order else None
        if value.meaning == "slot":
            return None
        slots = (value.slot_dim, value.slot_dim + 1) if value.is_flat else (value.slot_dim,)
        inner = [m for dim in sorted(over) for m in (slots if dim == value.slot_dim else (value.matrix_dim(dim),))]
        if name in ("amax", "amin"):
            absent = float("-inf") if name == "amax" else float("inf")
            matrix = self.call(node, instead_of, self.marks_at(node, value), self.matrix(operand), absent)
        else:
            matrix = self.masked(operand)
        matrix = self.widened(node, matrix, value.shape(shape), inner)
        if name == "mean":
            matrix = self.call(node, torch.ops.aten.sum.dim_IntList, matrix, inner)
            matrix = self.call(node, torch.ops.aten.mul.Tensor, matrix, 1 / prod(shape[dim] for dim in over))
        else:
            matrix = self.call(node, node.target, matrix, inner)
        return self.whole(node, matrix)

    def widened(self, node: Node, matrix: Node, shape: tuple[int, ...], dims: Sequence[int]) -> Node:
        """Return a matrix that has the extents of a shape in some dimensions."""
        extents = [shape[d] if d in dims else n for d, n in enumerate(described(matrix).shape)]
        return (
            self.call(node, torch.ops.aten.expand.default, matrix, extents)
            if extents != list(described(matrix).shape)
            else matrix
        )

    def whole(self, node: Node, value: Node) -> Node:
        """Return a value in the shape and the type that the result of a node has."""
        shape, dtype = list(described(node).shape), described(node).dtype
        if described(value).dtype != dtype:
            value = self.call(node, torch.ops.aten.to.dtype, value, dtype)
        if prod(shape) == described(value).numel():
            return self.reshaped(node, value, shape)
        return self.call(node, torch.ops.aten.expand.default, value, shape)

    def added(self, node: Node) -> Chosen | Node | None:
        """Return `base.index_add(dim, index, source)`, `scatter_add` or `index_put`, which add up the slots of each row or column."""
        given, name = _arguments(node), fx_origin.short_name(node.target).rstrip("_")
        base, dim = given["self"], given.get("dim", 0)
        index: Any = given.get("index")
        source: Any = given.get("source", given.get("src", given.get("values")))
        if name == "index_put":
            if len(given["indices"]) != 1 or given["indices"][0] is None:
                return None
            index = given["indices"][0]
            if not given["accumulate"]:
                return self.put(node, base, index, source)
        value, to = self.values.get(source), self.values.get(index)
        dim %= described(base).dim()
        if value is None or given.get("alpha", 1) != 1 or value.space.choice is None or value.meaning in ("slot", "one_hot"):
            return None
        at = dim if name == "scatter_add" else 0
        rows, columns = described(base).shape[dim] == value.space.row_count, described(base).shape[dim] == value.space.columns
        if to is None:
            known = self.selections.known(index)
            is_rows = value.is_flat and value.sorting is None and value.slot_dim == dim and rows
            if known is None or not is_rows or repeated_rows(known, value.space.row_count) != value.space.count:
                return None
            total = self.masked(source), dim + 1
        elif not to.is_beside(value) or to.slot_dim != at or value.slot_dim != dim:
            return None
        elif to.meaning == "row" and value.is_flat and rows:
            total = self.masked(source), dim + 1
        elif to.meaning == "column" and value.is_flat and columns:
            total = self.masked(source), dim
        elif to.meaning == "column" and name == "scatter_add" and columns and _same_beside(base, index, dim):
            added = self.masked(source)
            return self.whole(node, added if is_zero(base) else self.call(node, torch.ops.aten.add.Tensor, base, added))
        else:
            return None
        result = self.call(node, torch.ops.aten.sum.dim_IntList, total[0], [total[1]])
        return self.whole(node, result if is_zero(base) else self.call(node, torch.ops.aten.add.Tensor, base, result))

    def bags(self, node: Node) -> None:
        """Replace the sums or means of `embedding_bag` over the chosen rows of a table: a product of the weights of the rows with the
        table."""
        given = _arguments(node)
        value, table, weights, mode = (
            self.values.get(given["indices"]),
            given["weight"],
            given["per_sample_weights"],
            given["mode"],
        )
        starts = self.selections.known(given["offsets"])
        if value is None or value.meaning != "column" or not value.is_flat or value.sorting is not None or starts is None:
            return
        space, slots = value.space, described(given["indices"]).numel()
        is_bag_of_row = torch.equal(starts[: space.row_count], torch.arange(0, slots, space.count, dtype=starts.dtype))
        is_whole = len(starts) == space.row_count + given["include_last_offset"] and described(table).shape[0] == space.columns
        if not is_bag_of_row or not is_whole or mode not in (0, 1) or given.get("padding_idx") not in (None, -1):
            return
        if weights is not None and not (weights in self.values and self.values[weights].is_beside(value)):
            return
        total = self.call(node, torch.mm, self.marks_of(node, space) if weights is None else self.masked(weights), table)
        result = self.call(node, torch.mul, total, 1 / space.count) if mode == 1 else total
        for user in list(node.users):
            if user.target is operator.getitem and user.args[1] == 0:
                user.replace_all_uses_with(result)

    def put(self, node: Node, base: Node, index: Any, source: Any) -> Chosen | None:
        """Return what `base[index] = source` writes, if the numbers of all slots are the index: the slots in the order before a sort."""
        value = self.values.get(index)
        if value is None or value.meaning != "slot" or value.sorting is None or not isinstance(source, Node):
            return None
        slots = value.space.row_count * value.space.count
        if described(base).shape[0] != slots:
            return None
        known = self.selections.known(source)
        if known is not None and known.shape == (slots,) and torch.equal(known, torch.arange(slots, dtype=known.dtype)):
            self.inverses[node] = value
        return self.unsorted(node, source, value) if source in self.values else None

    def written(self, node: Node) -> Node | None:
        """Return `base.scatter(dim, index, source)` that writes to the chosen column of each row."""
        given = _arguments(node)
        base, dim, index = given["self"], given["dim"] % max(1, described(given["self"]).dim()), given["index"]
        source: Any = given.get("src", given.get("value"))
        value = self.values.get(index)
        if value is None or value.meaning != "column" or "reduce" in given or described(base).shape[dim] != value.space.columns:
            return None
        if value.is_flat or value.slot_dim != dim or not _same_beside(base, index, dim):
            return None
        if isinstance(source, Node):
            known = self.selections.known(source)
            if known is not None and known.numel() and bool((known == known.reshape(-1)[0]).all()):
                source = known.reshape(-1)[0].item()
            elif source not in self.values or not self.values[source].is_beside(value) or self.values[source].dims != value.dims:
                return None
            elif is_zero(
                base
            ):  # dimensions of sparse values are neither merged nor split, and a `keep` is simpler for the elements
                is_plain = source.target is operator.getitem and source.args[0] is value.space.choice
                return None if is_plain or _is_regrouped(node) else self.whole(node, self.masked(source))
            else:
                source = self.matrix(source)
        marks, dtype = self.marks_at(node, value), described(node).dtype
        start: Node | float = 0.0 if is_zero(base) and dtype.is_floating_point else base
        if is_zero(base) and _is_regrouped(node):
            start = self.selections.argument(named(node, "zeros"), torch.zeros(described(base).shape, dtype=dtype))
        elif is_zero(base) and source == 1:
            return self.whole(node, marks)
        number = source if isinstance(source, Node) else float(source) if dtype.is_floating_point else int(source)
        return self.whole(node, self.call(node, instead_of, marks, number, start))


def _arguments(node: Node) -> dict[str, Any]:
    """Return the arguments of an operator by their names."""
    return {argument.name: value for argument, value in schema_arguments(node)}


def _taken(node: Node) -> tuple[Node, int, Node | None]:
    """Return the tensor, the dimension and the positions of an operator that takes elements. Positions are None for those in several
    dimensions."""
    args: tuple[Any, ...] = node.args
    name = fx_origin.short_name(node.target)
    if name == "index":
        indices = {dim: index for dim, index in enumerate(args[1]) if index is not None}
        return args[0], min(indices), indices[min(indices)] if len(indices) == 1 else None
    return (args[0], 0, args[1]) if name == "embedding" else args[:3]


def _moved(node: Node, tensor: Tensor) -> Tensor:
    """Return a tensor whose dimensions an operator moves as it moves the ones of its operand."""
    target: Any = node.target
    result: Tensor = target(tensor, *node.args[1:], **node.kwargs)
    return result


def _same_beside(base: Node, index: Node, dim: int) -> bool:
    pairs = zip(described(base).shape, described(index).shape, strict=True)
    return all(a == b for d, (a, b) in enumerate(pairs) if d != dim)


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


def _clamps_zero_to_zero(node: Node) -> bool:
    _, low, high = (*node.args, None, None)[:3]
    return (low is None or (isinstance(low, int | float) and low <= 0)) and (
        high is None or (isinstance(high, int | float) and high >= 0)
    )


def _not_in_place(target: Any) -> Any:
    """Return the operator that computes what one that writes to its operand computes."""
    name = fx_origin.short_name(target)
    packet = getattr(torch.ops.aten, name.rstrip("_"), None) if name.endswith("_") else None
    return target if packet is None else getattr(packet, target._overloadname)


def _equation(node: Node) -> tuple[str, tuple[Node, Node]]:
    """Return the equation of a product of two tensors, as `torch.einsum` takes it, and the tensors. It is '' where there is none."""
    args: tuple[Any, ...] = node.args
    name = fx_origin.short_name(node.target)
    if name == "einsum":
        equation, operands = args[0].replace(" ", ""), tuple(args[1])
        return equation if len(operands) == 2 and "->" in equation and "." not in equation else "", operands
    left, right = described(args[0]).dim(), described(args[1]).dim()
    batch = string.ascii_letters[: max(left, right) - 2]
    if name == "linear":
        batch = string.ascii_letters[: left - 1]
        return f"{batch}y,zy->{batch}z", args[:2]
    first, second = batch[len(batch) - left + 2 :], batch[len(batch) - right + 2 :]
    return f"{first}xy,{second}yz->{batch}xz" if min(left, right) > 1 else "", args[:2]


_OPENING = frozenset({"topk", "max", "argmax", "repeat_interleave", "index", "index_select", "embedding"})
"""Operators whose result may have slots that no operand has."""
_RULES: dict[str, Callable[[_Choices, Node], Chosen | Node | None]] = {
    **dict.fromkeys(("topk", "max", "argmax"), _Choices.chosen),
    "getitem": _Choices.part,
    **dict.fromkeys(("sort", "argsort"), _Choices.sorted),
    **dict.fromkeys(("floor_divide", "div"), _Choices.divided),
    "repeat_interleave": _Choices.repeated,
    **dict.fromkeys(("index", "index_select", "embedding", "gather"), _Choices.taken),
    **dict.fromkeys((*RESHAPES, "flatten", "unflatten"), _Choices.reshape),
    **dict.fromkeys(("transpose", "permute", "t", "movedim", "swapaxes"), _Choices.permuted),
    **dict.fromkeys(_ALONG, _Choices.along),
    **dict.fromkeys(("mm", "bmm", "matmul", "linear", "einsum"), _Choices.product),
    "_grouped_mm": _Choices.grouped,
    **dict.fromkeys(("histc", "bincount"), _Choices.counts),
    "cumsum": _Choices.cumulated,
    "one_hot": _Choices.one_hot,
    **dict.fromkeys(("sum", "mean", "amax", "amin"), _Choices.reduced),
    **dict.fromkeys(("index_add", "scatter_add", "index_put"), _Choices.added),
    "scatter": _Choices.written,
    "embedding_bag": _Choices.bags,
}
"""The rule of each operator, by its name. Others are pointwise."""
