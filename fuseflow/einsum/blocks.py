"""Blocks carried through a program: dimensions that one index runs over are in blocks of one size, wherever they appear.

    block A: 16x16    T[k, j] = sum(f) X[k, f] * W[f, j]        X: 16x1, T: 16x1
                      Y[i, j] = sum(k) A[i, k] * T[k, j]        Y: 16x1

A dimension that a view sees as two, `h*64 + d`, is in the blocks of its inner one.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from fuseflow.einsum.dimensions import Dimensions, Place
from fuseflow.einsum.nodes import Access, Program, Split, TensorType, accesses
from fuseflow.errors import ProgramError
from fuseflow.tensors.blocks import Block, block_text, check_block, tile_dimensions


def with_blocks(program: Program, asked: Mapping[str, Block] | None = None) -> Program:
    """The program with every tensor in the blocks that follow from those that are `asked` for, by tensor, and those that are declared.

    Every tensor must be declared (`formats.infer`). Raises `ProgramError` if two sizes meet in one dimension, for a tensor that would have
    blocks in more than two, and for a block that does not divide the inner part of a dimension which comes apart.
    """
    wishes = {t.name: t.block for t in program.tensors if t.block} | dict(asked or {})
    if not any(wishes.values()):
        return program
    found = _Blocks(program)
    for name, block in wishes.items():
        for position, size in enumerate(block):
            found.ask(name, position, size)
    return replace(program, tensors=tuple(found.typed(t) for t in program.tensors))


def with_vectors(program: Program, width: int) -> Program:
    """The program with dense dimensions in blocks of `width`, or of their extent where that is less: its values are vectors.

    Those that are innermost in most tensors come first. A dimension that some tensor stores sparse, and one that shares a tensor with
    blocks, stays in single elements.
    """
    found, innermost, extent = _Blocks(program), Counter[Place](), dict[Place, int]()
    taken: set[Place] = set()
    for tensor in program.tensors:
        assert tensor.format is not None, "formats are inferred"
        places = found.places(tensor)
        innermost.update(places[position] for position in tensor.format.order[-1:])
        extent |= {place: min(size, extent.get(place, size)) for place, size in zip(places, tensor.shape, strict=True)}
        sparse = (places[p] for level, p in zip(tensor.format.levels, tensor.format.order, strict=True) if not level.full)
        taken.update(places if tensor.block else sparse)
    for place, _ in innermost.most_common():
        size = math.gcd(*found.parts.get(place, ()), min(width, extent[place]))
        if size > 1 and place not in taken:
            found.sizes[place] = size, place
            taken.update(p for t in program.tensors if place in found.places(t) for p in found.places(t))
    return replace(program, tensors=tuple(t if t.block else found.typed(t) for t in program.tensors))


def same_blocks(types: Iterable[tuple[TensorType, tuple[str, ...]]]) -> dict[str, int]:
    """By index, the size of its blocks where that is more than one element, from tensors that are read or written at some indices."""
    return {v: size for t, indices in types for v, size in zip(indices, t.block, strict=bool(t.block)) if size > 1}


@dataclass(slots=True)
class _Blocks:
    """`sizes` has the blocks of every dimension, by its representative, with the place that first had them; `parts` the extents of the
    inner parts in which it is seen."""

    program: Program
    dims: Dimensions = field(default_factory=Dimensions)
    sizes: dict[Place, tuple[int, Place]] = field(default_factory=dict)
    parts: dict[Place, tuple[int, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        splits = []
        for einsum in self.program.einsums:
            for access in (Access(einsum.name, einsum.indices), *accesses(einsum.body)):
                for position, index in enumerate(access.indices):
                    place = access.tensor, position
                    if isinstance(index, Split):
                        splits.append((place, index.size))
                    self.dims.join(place, (einsum.name, index.inner if isinstance(index, Split) else index))
        for place, size in splits:
            root = self.dims.find(place)
            self.parts[root] = (*self.parts.get(root, ()), size)

    def places(self, tensor: TensorType) -> tuple[Place, ...]:
        return tuple(self.dims.find((tensor.name, position)) for position in range(len(tensor.shape)))

    def ask(self, name: str, position: int, size: int) -> None:
        root = self.dims.find((name, position))
        known, (first, at) = self.sizes.setdefault(root, (size, (name, position)))
        if size != known:
            what = f"dimension {position} of `{name}` cannot be in blocks of {size}: it is in blocks of {known}"
            same = f"as dimension {at} of `{first}` is, and one index runs over both"
            raise ProgramError(f"{what}, {same}", hint=f"give both the same size, {known} or {size}")
        crossed = next((part for part in self.parts.get(root, ()) if part % size), None)
        if crossed is not None:
            raise ProgramError(
                f"blocks of {size} along dimension {position} of `{name}` cross the parts of {crossed} in which it is seen",
                hint=f"choose a size that divides {crossed}",
            )

    def size(self, place: Place) -> int:
        return self.sizes[place][0] if place in self.sizes else 1

    def typed(self, tensor: TensorType) -> TensorType:
        block = tuple(map(self.size, self.places(tensor)))
        if sum(size > 1 for size in block) > 2:
            raise ProgramError(
                f"`{tensor.name}` would be in blocks of {block_text(block)}: a tile has two dimensions at most",
                hint="leave one of its dimensions in single elements",
                span=tensor.span,
            )
        return replace(tensor, block=check_block(block, len(block)) if block else ())


def tile_indices(indices: tuple[str, ...], block: Block) -> tuple[str, str]:
    """What the rows and the columns of a tensor's tiles run over, '' for a single one."""
    row, column = tile_dimensions(block)
    return "" if row is None else indices[row], "" if column is None else indices[column]
