"""Blocks carried through a program: dimensions that one index runs over are in blocks of one size, wherever they appear.

    block A: 16x16    T[k, j] = sum(f) X[k, f] * W[f, j]        X: 16x1, T: 16x1
                      Y[i, j] = sum(k) A[i, k] * T[k, j]        Y: 16x1

A dimension that a view sees as two, `h*64 + d`, has the blocks of its inner one. Its outer one stays in single elements: blocks along it
would not be blocks of the whole.

A block that reaches over the edge of its dimension has padding there: the fill of an operand, or values computed from it. A
reduction over that dimension must not count it. Mostly it has no effect: the product with a stored zero is zero, and so is
exp(-inf). Where the padding is not known to be the identity of the reduction, the identity replaces it:

    m[i] = max(j) S[i, j]     ->     m[i] = max(j) where(inside.100_16[j], S[i, j], -inf)

The vector `inside.100_16` is 1 at the 100 coordinates of the dimension, and 0 in the padding of the last block of 16.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias, assert_never

import numpy as np

from fuseflow.einsum.dimension_unification import Axis, Dimensions, axes_of
from fuseflow.einsum.index_names import underscored_name
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
    free_indices,
    index_names,
    map_children,
    stored_index,
)
from fuseflow.einsum.verify import extents
from fuseflow.errors import OverfullError, ProgramError
from fuseflow.ops import operator, reducer
from fuseflow.tensors import Format, Tensor, pack
from fuseflow.tensors.blocks import Block, block_text, check_block, from_blocks, tile_dimensions, to_blocks

PaddingValue: TypeAlias = float | None
"""The value of an expression in the padding of an index, or None if it may be anything."""


def propagate_blocks(program: Program, requests: Mapping[str, Block] | None = None) -> Program:
    """Return the program with every tensor in the blocks that follow from the `requests`, by tensor, and from the declarations.

    Every tensor must be declared (`format_inference.infer`). Raises `ProgramError` if two sizes meet in one dimension, if a tensor would
    have blocks in more than two dimensions, and if a block does not divide the inner part of a split dimension.
    """
    block_by_tensor = {t.name: t.block for t in program.tensors if t.block} | dict(requests or {})
    if not any(block_by_tensor.values()):
        return program
    blocks = _Blocks(program)
    for name, block in block_by_tensor.items():
        for position, size in enumerate(block):
            blocks.ask(name, position, size)
    return replace(program, tensors=tuple(blocks.typed(t) for t in program.tensors))


def vectorize(program: Program, width: int) -> Program:
    """Return the program with its dense dimensions in blocks of `width`, or of their extent where that is less: its values are vectors.

    Dimensions that are innermost in most tensors come first. A dimension stays in single elements if some tensor stores it sparse, if it
    shares a tensor with blocks, or if it is the outer part of another one.
    """
    blocks, innermost, extent = _Blocks(program), Counter[Axis](), dict[Axis, int]()
    excluded = set(blocks.outer)
    for tensor in program.tensors:
        assert tensor.format is not None, "formats are inferred"
        axes = blocks.axes(tensor)
        innermost.update(axes[position] for position in tensor.format.order[-1:])
        extent |= {axis: min(size, extent.get(axis, size)) for axis, size in zip(axes, tensor.shape, strict=True)}
        sparse = (axes[p] for level, p in zip(tensor.format.levels, tensor.format.order, strict=True) if not level.full)
        excluded.update(axes if tensor.block else sparse)
    for axis, _ in innermost.most_common():
        size = math.gcd(*blocks.parts.get(axis, ()), min(width, extent[axis]))
        if size > 1 and axis not in excluded:
            blocks.sizes[axis] = size, axis
            excluded.update(p for t in program.tensors if axis in blocks.axes(t) for p in blocks.axes(t))
    return replace(program, tensors=tuple(t if t.block else blocks.typed(t) for t in program.tensors))


@dataclass(frozen=True, slots=True)
class BlockAxis:
    """Dimensions of inputs that are in blocks of one size, since one index runs over all of them, as tensor and position.

    `extent` is the extent of the smallest dimension, or of the largest part that divides all their parts.
    """

    dimensions: tuple[tuple[str, int], ...]
    extent: int


def block_axes(program: Program) -> tuple[BlockAxis, ...]:
    """Return the dimensions of the inputs that may be in blocks, together where they are in blocks of one size."""
    blocks, dimensions = _Blocks(program), dict[Axis, list[tuple[str, int]]]()
    for tensor in program.inputs:
        for position, root in enumerate(blocks.axes(tensor)):
            dimensions.setdefault(root, []).append((tensor.name, position))
    declared = program.declared
    return tuple(
        BlockAxis(tuple(axes), math.gcd(*blocks.parts.get(root, ())) or min(declared[n].shape[at] for n, at in axes))
        for root, axes in dimensions.items()
        if root not in blocks.outer
    )


def index_block_sizes(types: Iterable[tuple[TensorType, tuple[str, ...]]]) -> dict[str, int]:
    """Return the block size of each index that runs over blocks of more than one element. `types` pairs tensors with the indices at which
    they are read or written.
    """
    return {v: size for t, indices in types for v, size in zip(indices, t.block, strict=bool(t.block)) if size > 1}


@dataclass(slots=True)
class _Blocks:
    """The blocks of every dimension of a program. `sizes` gives the block size of a dimension, by its representative, with the
    axis that requested it first. `parts` gives the extents of the inner parts into which it is split. If it is the outer part of
    a dimension, `outer` gives the tensor that has that dimension whole."""

    program: Program
    dims: Dimensions = field(default_factory=Dimensions)
    sizes: dict[Axis, tuple[int, Axis]] = field(default_factory=dict)
    parts: dict[Axis, tuple[int, ...]] = field(default_factory=dict)
    outer: dict[Axis, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        splits = []
        for tensor in self.program.tensors:
            for position in range(len(tensor.shape) if tensor.like else 0):
                self.dims.join((tensor.name, position), (tensor.like, position))
        for einsum in self.program.einsums:
            for axis, any_index in axes_of(einsum):
                index = stored_index(any_index)
                if isinstance(index, Split):
                    splits.append((axis, (einsum.name, index.outer), index.size))
                self.dims.join(axis, (einsum.name, index.inner if isinstance(index, Split) else index))
        for axis, outer, size in splits:
            root = self.dims.find(axis)
            self.parts[root] = (*self.parts.get(root, ()), size)
            self.outer.setdefault(self.dims.find(outer), axis[0])

    def axes(self, tensor: TensorType) -> tuple[Axis, ...]:
        return tuple(self.dims.find((tensor.name, position)) for position in range(len(tensor.shape)))

    def ask(self, name: str, position: int, size: int) -> None:
        root = self.dims.find((name, position))
        present, (first_tensor, first_position) = self.sizes.setdefault(root, (size, (name, position)))
        if size != present:
            problem = f"dimension {position} of `{name}` cannot be in blocks of {size}: it is in blocks of {present}"
            reason = f"as dimension {first_position} of `{first_tensor}` is, and one index runs over both"
            raise ProgramError(f"{problem}, {reason}", hint=f"give both the same size, {present} or {size}")
        if size > 1 and root in self.outer:
            raise ProgramError(
                f"dimension {position} of `{name}` cannot be in blocks of {size}: it is the outer part of a dimension that "
                f"`{self.outer[root]}` has whole",
                hint="leave it in single elements, or give blocks to the inner part",
            )
        crossed_part = next((part for part in self.parts.get(root, ()) if part % size), None)
        if crossed_part is not None:
            raise ProgramError(
                f"blocks of {size} along dimension {position} of `{name}` cross the parts of {crossed_part} in which it is seen",
                hint=f"choose a size that divides {crossed_part}",
            )

    def size(self, axis: Axis) -> int:
        return self.sizes[axis][0] if axis in self.sizes else 1

    def typed(self, tensor: TensorType) -> TensorType:
        block = tuple(map(self.size, self.axes(tensor)))
        if sum(size > 1 for size in block) > 2:
            raise ProgramError(
                f"`{tensor.name}` would be in blocks of {block_text(block)}: a tile has two dimensions at most",
                hint="leave one of its dimensions in single elements",
                span=tensor.span,
            )
        return replace(tensor, block=check_block(block, len(block)) if block else ())


def tile_indices(indices: tuple[str, ...], block: Block) -> tuple[str, str]:
    """Return the indices that the rows and the columns of a tensor's tiles run over. An index is '' where the tile has a single row or
    column.
    """
    row, column = tile_dimensions(block)
    return "" if row is None else indices[row], "" if column is None else indices[column]


def tensors_to_blocks(types: Mapping[str, TensorType], tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return tensors of single elements in the blocks in which they are stored."""

    def blocked(name: str, tensor: Tensor) -> Tensor:
        with OverfullError.naming(name):
            return to_blocks(tensor, types[name].block) if name in types else tensor

    return {name: blocked(name, tensor) for name, tensor in tensors.items()}


def tensors_to_elements(types: Mapping[str, TensorType], tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return tensors that are stored in blocks as tensors of single elements. The padding of blocks is left out."""
    return {
        name: from_blocks(tensor, types[name].shape, types[name].block) if name in types and types[name].block else tensor
        for name, tensor in tensors.items()
    }


# The padding of blocks ---------------------------------------------------------------------------------------------------------


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
            name = underscored_name(f"inside.{size}_{block}", self.declared)
            self.vectors[size, block] = TensorType(name, (size,), Format.dense(1), "i32", 1.0, block=(block,))
        return self.vectors[size, block]


@dataclass(slots=True)
class _Statement:
    """One Einsum that is to be guarded; `blocks` gives the sizes of the indices that run over blocks."""

    guard: _Guard
    einsum: Einsum
    blocks: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        einsum_accesses = (Access(self.einsum.name, self.einsum.indices), *self.einsum.accesses)
        indexed_types = ((self.guard.declared[a.tensor], tuple(_inner(i) for i in a.indices)) for a in einsum_accesses)
        self.blocks = index_block_sizes(indexed_types)

    def guarded(self, node: Expr) -> Expr:
        if not isinstance(node, Reduce):
            return map_children(self.guarded, node)
        body, identity = self.guarded(node.body), reducer(node.op).identity
        for v in node.over:
            if self.is_padded(v) and self.outside(body, v) != identity:
                body = self.masked(body, v, identity)
        for v in self.missing(node.over, body):
            body = self.inside(v, body, identity)
        return replace(node, body=body)

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
