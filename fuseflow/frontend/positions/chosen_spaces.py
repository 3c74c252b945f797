"""Which dimensions of a traced model count chosen elements, and what the numbers there mean.

For example, `weights, experts = gate.topk(2)` chooses two experts for each token. Both results have a dimension of two *slots*, and the
slots of all tokens may be one dimension: `experts.view(-1)`. Every value with slots is a matrix, too, tokens by experts, of which only
the chosen places count. In it, the number of the expert is the number of the column, and a sum over the slots is a sum over the row. The
order of the slots does not matter to such a sum, nor does a permutation of all slots that sorts them by expert.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import prod
from typing import Literal, TypeAlias

import torch
from torch import Tensor
from torch.fx import Node

from fuseflow.frontend.positions.selections import described

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
