"""The padding of blocks: no reduction takes it for data.

A block that reaches over the edge of its dimension holds something there: what an operand was packed with, or what was computed from it. A
reduction over that dimension must not count it. Mostly it cannot: the product with a stored zero is zero, and exp(-inf) is. Where it is not
known to be the identity of the reduction, it is replaced by that:

    m[i] = max(j) S[i, j]     ->     m[i] = max(j) where(inside.100_16[j], S[i, j], -inf)

with a vector that is 1 at the 100 coordinates that there are and 0 in the padding of the last block of 16.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias, assert_never

import numpy as np

from fuseflow.einsum.blocks import same_blocks
from fuseflow.einsum.nodes import (
    Access,
    Apply,
    Const,
    Einsum,
    Expr,
    Index,
    Program,
    Reduce,
    Split,
    TensorType,
    accesses,
    free_indices,
    index_names,
)
from fuseflow.einsum.verify import extents
from fuseflow.ops import operator, reducer
from fuseflow.tensors import Format, Tensor, pack
from fuseflow.tensors.blocks import to_blocks

Known: TypeAlias = float | None
"""The value of an expression in the padding of an index; None if it may be anything."""


def guarded(program: Program) -> Program:
    """The program with guarded reductions, and with the vectors that guard them among its inputs (`inside` is their data). Every tensor
    must be declared, with its blocks."""
    if not any(t.block for t in program.tensors):
        return program
    guard = _Guard(program.declared, extents(program))
    einsums = tuple(map(guard.einsum, program.einsums))
    return replace(program, tensors=(*program.tensors, *guard.made.values()), einsums=einsums)


def inside(vector: TensorType) -> Tensor:
    """The data of a guard: its implicit value is 1, so that it decides nothing where nothing is stored; its padding is 0."""
    ones = pack(np.ones(vector.shape, dtype=np.int32), Format.dense(1))
    return replace(to_blocks(ones, vector.block), fill=1.0)


@dataclass(slots=True)
class _Guard:
    """`padding` is the value of every tensor in the padding of each of its dimensions, as far as that is known; `made` the vectors."""

    declared: Mapping[str, TensorType]
    sizes: Mapping[str, Mapping[str, int]]
    padding: dict[tuple[str, int], Known] = field(default_factory=dict)
    made: dict[tuple[int, int], TensorType] = field(default_factory=dict)

    def einsum(self, einsum: Einsum) -> Einsum:
        """With its reductions guarded; notes what its own padding holds."""
        statement = _Statement(self, einsum)
        body = statement.guarded(einsum.body)
        for v in statement.missing(index_names(einsum.indices), body):
            body = statement.inside(v, body, 0.0)
        tensor = self.declared[einsum.name]
        absent = None if tensor.format is None or tensor.format.all_dense else tensor.fill
        for position, index in enumerate(einsum.indices):
            padded = isinstance(index, str) and statement.is_padded(index)
            known = statement.outside(body, str(index)) if padded else None
            self.padding[einsum.name, position] = known if absent in (None, known) else None
        return replace(einsum, body=body)

    def vector(self, size: int, block: int) -> TensorType:
        if (size, block) not in self.made:
            name = f"inside.{size}_{block}"
            while name in self.declared:
                name += "_"
            self.made[size, block] = TensorType(name, (size,), Format.dense(1), "i32", 1.0, block=(block,))
        return self.made[size, block]


@dataclass(slots=True)
class _Statement:
    """One Einsum: `blocks` are its indices that run over blocks, with their sizes."""

    guard: _Guard
    einsum: Einsum
    blocks: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        reads = (Access(self.einsum.name, self.einsum.indices), *accesses(self.einsum.body))
        whole = ((self.guard.declared[a.tensor], tuple(_inner(i) for i in a.indices)) for a in reads)
        self.blocks = same_blocks(whole)

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
            case Access() | Const():
                return node
            case unknown:
                assert_never(unknown)

    def is_padded(self, v: str) -> bool:
        return v in self.blocks and self.guard.sizes[self.einsum.name][v] % self.blocks[v] != 0

    def missing(self, indices: tuple[str, ...], body: Expr) -> tuple[str, ...]:
        """Indices over blocks that an expression does not have: its value is no tile along them."""
        return tuple(v for v in indices if v in self.blocks and v not in free_indices(body))

    def masked(self, body: Expr, v: str, identity: float) -> Expr:
        """An expression with the identity of its reduction in the padding of `v`; of a product that is added up, one factor is enough."""
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

    def outside(self, node: Expr, v: str) -> Known:
        """The value of an expression in the padding of `v`."""
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
            case unknown:
                assert_never(unknown)

    def read(self, access: Access, v: str) -> Known:
        if v not in access.names:
            return None
        if any(access.tensor == vector.name for vector in self.guard.made.values()):
            return 0.0
        position = [_inner(i) for i in access.indices].index(v)
        return self.guard.padding.get((access.tensor, position), self.guard.declared[access.tensor].fill)

    def computed(self, node: Apply, v: str) -> Known:
        row, values = operator(node.op), [self.outside(arg, v) for arg in node.args]
        if node.op == "where" and values[0] is not None:
            return values[1] if values[0] != 0 else values[2]
        constants = [arg.value if isinstance(arg, Const) else None for arg in node.args]
        for position, value in enumerate(values):
            fixed = None if value is None else row.annihilated(position, value, constants)
            if fixed is not None:
                return fixed
        known = [value for value in values if value is not None]
        return row.scalar(*known) if len(known) == len(values) else None


def _inner(index: Index) -> str:
    return index.inner if isinstance(index, Split) else index
