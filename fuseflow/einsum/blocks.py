"""Blocks carried through a program: dimensions that one index runs over are in blocks of one size, wherever they appear.

    block A: 16x16    T[k, j] = sum(f) X[k, f] * W[f, j]        X: 16x1, T: 16x1
                      Y[i, j] = sum(k) A[i, k] * T[k, j]        Y: 16x1

A dimension that a view sees as two, `h*64 + d`, has the blocks of its inner one. Its outer one stays in single elements: blocks along it
would not be blocks of the whole.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from fuseflow.einsum.dimensions import Axis, Dimensions
from fuseflow.einsum.nodes import Access, Program, Split, TensorType, accesses, stored_index
from fuseflow.errors import ProgramError
from fuseflow.tensors.blocks import Block, block_text, check_block, tile_dimensions


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
        for einsum in self.program.einsums:
            for access in (Access(einsum.name, einsum.indices), *accesses(einsum.body)):
                for position, index in enumerate(map(stored_index, access.indices)):
                    axis = access.tensor, position
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
