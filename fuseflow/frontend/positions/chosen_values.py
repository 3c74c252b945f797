"""The values with slots of a traced model, and the matrices that are added for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor
from torch.fx import Node

from fuseflow.frontend.positions.selections import Call, Selections, described, first_operand
from fuseflow.frontend.trace.dependence import Memories, schema_arguments
from fuseflow.frontend.trace.fx_origin import named
from fuseflow.keep_rules import Largest

Meaning: TypeAlias = Literal["", "column", "row", "slot", "one_hot"]
"""The meaning of the numbers of a value with slots.

- `column`: the column that was chosen, such as the number of an expert.
- `row`: the row that it was chosen for, such as the number of a token.
- `slot`: the number of the slot before the slots were sorted.
- `one_hot`: a one in the last dimension at the column that was chosen.
- '': any other number.
"""

Slice: TypeAlias = Callable[[Node, int], Node]
"""Adds a part of a tensor along a dimension."""


@dataclass(frozen=True, slots=True, eq=False)
class SlotSpace:
    """The places that one operator chooses: `count` of the `columns` of each row. `rows` are the extents of the dimensions that count rows.

    Rows that are repeated `count` times, without any choice, have as many slots. They belong to a space without `choice`.
    """

    choice: Node | None
    rows: tuple[int, ...]
    columns: int
    count: int

    @property
    def row_count(self) -> int:
        return prod(self.rows)


@dataclass(frozen=True, slots=True, eq=False)
class SlotValue:
    """A value with slots as a matrix of rows and columns. `make` adds the matrix to the graph.

    The slots are one dimension of the value behind the ones of the rows, at `dims`, or with `is_flat` one dimension for all rows, the only
    one in `dims`. `order` is the operator that decides the order of the slots of a row, and `sorting` the one that permuted the slots
    of all rows. A `masked` matrix is zero at places that are not chosen. Any dimension of a matrix may have extent 1 in place of its own.
    `sliced` adds the matrix of a part of the value along a dimension, computed with a part of the weights. It is None for other values.
    """

    space: SlotSpace
    dims: tuple[int, ...]
    is_flat: bool
    make: Callable[[], Node]
    order: Node | None = None
    sorting: Node | None = None
    masked: bool = False
    meaning: Meaning = ""
    sliced: Callable[[Slice, int], Node] | None = None
    made: list[Node] = field(default_factory=list)

    @property
    def slot_dim(self) -> int:
        return self.dims[-1]

    @property
    def is_one_a_row(self) -> bool:
        """Whether the slots are the rows."""
        return self.is_flat and self.space.count == 1 and self.sorting is None

    def derived(self, make: Callable[[], Node], *, masked: bool = False, meaning: Meaning = "", **changes: object) -> SlotValue:
        """Return another value with the same slots, which may have them in other dimensions."""
        return replace(self, make=make, masked=masked, meaning=meaning, made=[], **{"sliced": None, **changes})  # type: ignore[arg-type]

    def shape(self, value: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of the matrix of a value of this shape."""
        slot, columns = self.slot_dim, self.space.columns
        inner = (self.space.row_count, columns) if self.is_flat else (columns,)
        return (*value[:slot], *inner, *value[slot + 1 :])

    def matrix_dim(self, dim: int) -> int:
        """Return the dimension of the matrix for a dimension of the value, of the columns for the slots."""
        return dim + 1 if self.is_flat and dim >= self.slot_dim else dim

    def moved(self, shape: tuple[int, ...], result: tuple[int, ...]) -> SlotValue | None:
        """Return where the slots are after a reshape of a value, or None if they are no dimension of their own then. `make` is left."""
        places = {(prod(result[:dim]), extent): dim for dim, extent in enumerate(result)}
        whole = [places.get((prod(shape[:dim]), shape[dim])) for dim in self.dims]
        if None not in whole:
            dims = tuple(dim for dim in whole if dim is not None)
            return replace(self, dims=dims, made=[]) if len(set(dims)) == len(dims) else None
        start, count = prod(shape[: self.dims[0]]), self.space.count
        if self.is_flat:
            for extents in ((*self.space.rows, count), (self.space.row_count, count)):
                for first in range(len(result)):
                    end = first + len(extents)
                    if prod(result[:first]) == start and result[first:end] == extents and self.sorting is None:
                        return replace(self, dims=tuple(range(first, end)), is_flat=False, made=[])
            return None
        flat = places.get((start, self.space.row_count * count))
        is_adjacent = self.dims == tuple(range(self.dims[0], self.dims[0] + len(self.dims)))
        return replace(self, dims=(flat,), is_flat=True, made=[]) if flat is not None and is_adjacent else None

    def is_beside(self, other: SlotValue) -> bool:
        """Return whether two values have the same slots, in the same order. Repeated rows have no order."""
        known = self.space.choice is not None and other.space.choice is not None
        if (self.space.row_count, self.space.count) != (other.space.row_count, other.space.count):
            return False
        if self.is_flat != other.is_flat or self.sorting is not other.sorting:
            return False
        return not known or (self.space is other.space and self.order is other.order)


def opened(choice: Node, x: Node, dim: int, count: int) -> SlotValue:
    """Return the slots of an operator that chooses `count` elements of x along a dimension."""
    shape = tuple(described(x).shape)
    dim %= len(shape)
    others = [d for d in range(len(shape)) if d != dim]
    rows = [d for d in others if shape[d] != 1] or others[-1:]
    space = SlotSpace(choice, tuple(shape[d] for d in rows), shape[dim], count)
    return SlotValue(space, (*rows, dim), False, lambda: x, order=choice)


def repeated_rows(positions: Tensor, rows: int) -> int:
    """Return how often each row is repeated by known positions, row by row, or 0 if they are in another order."""
    count = positions.numel() // rows if rows and positions.dim() == 1 and positions.dtype == torch.int64 else 0
    return count if count and torch.equal(positions, torch.arange(rows).repeat_interleave(count)) else 0


@dataclass(slots=True)
class Choices:
    """The values with slots of a traced model. `marks` has the matrix of ones of each space. `counted` has the values that are the
    number of chosen places in each column, and `ends` the sums of these numbers so far. `inverses` has the values that undo a
    permutation of slots. `positions` orders the nodes."""

    selections: Selections
    memories: Memories
    values: dict[Node, SlotValue] = field(default_factory=dict)
    marks: dict[SlotSpace, Node] = field(default_factory=dict)
    counted: dict[Node, SlotSpace] = field(default_factory=dict)
    ends: dict[Node, SlotSpace] = field(default_factory=dict)
    inverses: dict[Node, SlotValue] = field(default_factory=dict)
    positions: dict[Node, int] = field(default_factory=dict)

    def call(self, node: Node, target: Any, *args: Any, **kwargs: Any) -> Node:
        return self.selections.computed(node, target, args, **kwargs)

    def reshaped(self, node: Node, value: Node, shape: Sequence[int]) -> Node:
        if tuple(described(value).shape) == tuple(shape):
            return value
        return self.call(node, torch.ops.aten.reshape.default, value, list(shape))

    def unsqueezed(self, node: Node, value: Node, dim: int) -> Node:
        return self.call(node, torch.ops.aten.unsqueeze.default, value, dim)

    def summed(self, node: Node, value: Node, dims: Sequence[int]) -> Node:
        return self.call(node, torch.ops.aten.sum.dim_IntList, value, list(dims))

    def at_places(self, node: Node, value: SlotValue, matrix: Node) -> Node:
        """Return a matrix in the dimensions of a value with slots, with zeros at places that are not chosen."""
        return self.call(node, at_places, self.marks_at(node, value), matrix)

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
                value.made.append(self.at_places(node, value, matrix))
        return value.made[1]

    def marks_at(self, node: Node, value: SlotValue) -> Node:
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

    def marks_of(self, node: Node, space: SlotSpace) -> Node:
        choice = space.choice
        assert choice is not None
        if space not in self.marks:
            with node.graph.inserting_before(choice):
                x = first_operand(choice)
                dims = opened(choice, x, arguments(choice)["dim"], space.count).dims
                rule = Largest(space.count, by="greatest")
                marks = Call(self.selections, choice).kept(x, rule, (dims[-1],), marks=True)
                rest = [d for d in range(described(x).dim()) if d not in dims]
                marks = self.call(choice, torch.ops.aten.permute.default, marks, [*rest, *dims])
                self.marks[space] = self.reshaped(choice, marks, (space.row_count, space.columns))
        return self.marks[space]

    def numbered(self, node: Node, value: SlotValue, meaning: Meaning) -> SlotValue:
        """Return a value with slots whose numbers have a meaning. Its matrix has the numbers of the columns, or of the rows."""

        def make() -> Node:
            assert meaning in ("column", "row"), f"{meaning} has no matrix"
            is_row = meaning == "row"
            extent = value.space.row_count if is_row else value.space.columns
            dim = value.slot_dim if is_row else value.matrix_dim(value.slot_dim)
            counted = self.selections.counted(extent, torch.int64, named(node, "places"))
            return self.reshaped(node, counted, [extent if d == dim else 1 for d in range(described(node).dim() + value.is_flat)])

        return value.derived(make, meaning=meaning)

    def lead(self, operands: Sequence[object]) -> SlotValue | None:
        """Return the operand that says which places are chosen, if all operands with slots have them in one order."""
        values = [self.values[operand] for operand in operands if isinstance(operand, Node) and operand in self.values]
        if not values:
            return None
        lead = next((value for value in values if value.space.choice is not None), values[0])
        return lead if all(lead.is_beside(value) for value in values) else None

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
        return part(self.widened(node, self.matrix(node), [inner]), inner)

    def widened(self, operand: Node, matrix: Node, dims: Sequence[int]) -> Node:
        """Return the matrix of an operand, with the extents of the places that count in some dimensions."""
        shape, extents = self.values[operand].shape(tuple(described(operand).shape)), list(described(matrix).shape)
        wide = [shape[d] if d in dims else n for d, n in enumerate(extents)]
        return matrix if wide == extents else self.call(operand, torch.ops.aten.expand.default, matrix, wide)

    def typed(self, node: Node, value: Node) -> Node:
        dtype = described(node).dtype
        return value if described(value).dtype == dtype else self.call(node, torch.ops.aten.to.dtype, value, dtype)

    def whole(self, node: Node, value: Node) -> Node:
        """Return a value in the shape and the type that the result of a node has."""
        shape, value = list(described(node).shape), self.typed(node, value)
        if prod(shape) == described(value).numel():
            return self.reshaped(node, value, shape)
        return self.call(node, torch.ops.aten.expand.default, value, shape)


def at_places(marks: Tensor, x: Tensor) -> Tensor:
    """Return x at the places that are marked, and zero elsewhere."""
    return marks.to(x.dtype) * x


def instead_of(marks: Tensor, x: Tensor | float, base: Tensor | float) -> Tensor:
    """Return x at the places that are marked, and `base` elsewhere."""
    return torch.where(marks == 0, base, x)


def arguments(node: Node) -> dict[str, Any]:
    """Return the arguments of an operator by their names."""
    return {argument.name: value for argument, value in schema_arguments(node)}
