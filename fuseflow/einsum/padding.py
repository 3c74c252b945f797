"""The padding of blocks: no reduction takes it for data.

A block that reaches over the edge of its dimension has padding there: the fill of an operand, or values computed from it. A
reduction over that dimension must not count it. Mostly it has no effect: the product with a stored zero is zero, and so is
exp(-inf). Where the padding is not known to be the identity of the reduction, the identity replaces it:

    m[i] = max(j) S[i, j]     ->     m[i] = max(j) where(inside.100_16[j], S[i, j], -inf)

The vector `inside.100_16` is 1 at the 100 coordinates of the dimension, and 0 in the padding of the last block of 16.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias, assert_never

import numpy as np

from fuseflow.einsum.blocks import index_block_sizes
from fuseflow.einsum.nodes import (
    Access,
    Apply,
    Const,
    Einsum,
    Expr,
    Index,
    Keep,
    Program,
    Reduce,
    Split,
    TensorType,
    accesses,
    free_indices,
    index_names,
    stored_index,
)
from fuseflow.einsum.verify import extents
from fuseflow.ops import operator, reducer
from fuseflow.tensors import Format, Tensor, pack
from fuseflow.tensors.blocks import to_blocks

PaddingValue: TypeAlias = float | None
"""The value of an expression in the padding of an index, or None if it may be anything."""


def guard_padding(program: Program) -> Program:
    """Return the program with guarded reductions, and with the vectors that guard them among its inputs (`guard_data` is their data). Every
    tensor must be declared, with its blocks.
    """
    if not any(t.block for t in program.tensors):
        return program
    guard = _Guard(program.declared, extents(program))
    einsums = tuple(map(guard.einsum, program.einsums))
    return replace(program, tensors=(*program.tensors, *guard.vectors.values()), einsums=einsums)


def guard_data(vector: TensorType) -> Tensor:
    """Return the data of a guarding vector. Its implicit value is 1, so that it has no effect where nothing is stored; its padding is 0."""
    ones = pack(np.ones(vector.shape, dtype=np.int32), Format.dense(1))
    return replace(to_blocks(ones, vector.block), fill=1.0)


@dataclass(slots=True)
class _Guard:
    """The guards of a program. `padding` is the value of every tensor in the padding of each of its dimensions, as far as that is known;
    `vectors` holds the guarding vectors, by size and block.
    """

    declared: Mapping[str, TensorType]
    sizes: Mapping[str, Mapping[str, int]]
    padding: dict[tuple[str, int], PaddingValue] = field(default_factory=dict)
    vectors: dict[tuple[int, int], TensorType] = field(default_factory=dict)

    def einsum(self, einsum: Einsum) -> Einsum:
        """Return the Einsum with its reductions guarded, and note the values in the padding of its result."""
        statement = _Statement(self, einsum)
        body = statement.guarded(einsum.body)
        for v in statement.missing(index_names(einsum.indices), body):
            body = statement.inside(v, body, 0.0)
        tensor = self.declared[einsum.name]
        fill = None if tensor.format is None or tensor.format.all_dense else tensor.fill
        for position, index in enumerate(einsum.indices):
            padded = isinstance(index, str) and statement.is_padded(index)
            value = statement.outside(body, str(index)) if padded else None
            self.padding[einsum.name, position] = value if fill in (None, value) else None
        return replace(einsum, body=body)

    def vector(self, size: int, block: int) -> TensorType:
        if (size, block) not in self.vectors:
            name = f"inside.{size}_{block}"
            while name in self.declared:
                name += "_"
            self.vectors[size, block] = TensorType(name, (size,), Format.dense(1), "i32", 1.0, block=(block,))
        return self.vectors[size, block]


@dataclass(slots=True)
class _Statement:
    """One Einsum that is to be guarded; `blocks` gives the sizes of the indices that run over blocks."""

    guard: _Guard
    einsum: Einsum
    blocks: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        tensor_accesses = (Access(self.einsum.name, self.einsum.indices), *accesses(self.einsum.body))
        indexed_types = ((self.guard.declared[a.tensor], tuple(_inner(i) for i in a.indices)) for a in tensor_accesses)
        self.blocks = index_block_sizes(indexed_types)

    def guarded(self, node: Expr) -> Expr:
        match node:
            case Apply():
                return replace(node, args=tuple(map(self.guarded, node.args)))
            case Reduce():
                body, identity = self.guarded(node.body), reducer(node.op).identity
                for v in node.over:
                    if self.is_padded(v) and self.outside(body, v) != identity:
                        body = self.masked(body, v, identity)
                for v in self.missing(node.over, body):
                    body = self.inside(v, body, identity)
                return replace(node, body=body)
            case Keep():
                return replace(node, body=self.guarded(node.body))
            case Access() | Const():
                return node
            case unknown:
                assert_never(unknown)

    def is_padded(self, v: str) -> bool:
        return v in self.blocks and self.guard.sizes[self.einsum.name][v] % self.blocks[v] != 0

    def missing(self, indices: tuple[str, ...], body: Expr) -> tuple[str, ...]:
        """Return the indices over blocks that an expression does not have: its value is no tile along them."""
        return tuple(v for v in indices if v in self.blocks and v not in free_indices(body))

    def masked(self, body: Expr, v: str, identity: float) -> Expr:
        """Return an expression with the identity of its reduction in the padding of the index `v`. In a product that is added up,
        it is enough to mask one factor."""
        factors = {"mul": 2, "div": 1}.get(body.op, 0) if isinstance(body, Apply) and identity == 0 else 0
        if isinstance(body, Apply):
            for position, factor in enumerate(body.args[:factors]):
                if v in free_indices(factor):
                    args = (*body.args[:position], self.masked(factor, v, identity), *body.args[position + 1 :])
                    return replace(body, args=args)
        return self.inside(v, body, identity)

    def inside(self, v: str, body: Expr, otherwise: float) -> Expr:
        vector = self.guard.vector(self.guard.sizes[self.einsum.name][v], self.blocks[v])
        return Apply("where", (Access(vector.name, (v,)), body, Const(otherwise)))

    def outside(self, node: Expr, v: str) -> PaddingValue:
        """Return the value of an expression in the padding of the index `v`, or None if it may be anything."""
        match node:
            case Const():
                return node.value
            case Access():
                return self.read(node, v)
            case Reduce():
                folded = self.outside(node.body, v)
                count = int(np.prod([self.guard.sizes[self.einsum.name][w] for w in node.over]))
                return None if folded is None else reducer(node.op).repeated(folded, count)
            case Apply():
                return self.computed(node, v)
            case Keep():
                return None
            case unknown:
                assert_never(unknown)

    def read(self, access: Access, v: str) -> PaddingValue:
        if v not in access.names:
            return None
        if any(access.tensor == vector.name for vector in self.guard.vectors.values()):
            return 0.0
        position = [_inner(i) for i in access.indices].index(v)
        return self.guard.padding.get((access.tensor, position), self.guard.declared[access.tensor].fill)

    def computed(self, node: Apply, v: str) -> PaddingValue:
        row, values = operator(node.op), [self.outside(arg, v) for arg in node.args]
        if node.op == "where" and values[0] is not None:
            return values[1] if values[0] != 0 else values[2]
        constants = [arg.value if isinstance(arg, Const) else None for arg in node.args]
        for position, value in enumerate(values):
            fixed = None if value is None else row.annihilated(position, value, constants)
            if fixed is not None:
                return fixed
        known_values = [value for value in values if value is not None]
        return row.scalar(*known_values) if len(known_values) == len(values) else None


def _inner(index: Index) -> str:
    stored = stored_index(index)
    return stored.inner if isinstance(stored, Split) else stored
