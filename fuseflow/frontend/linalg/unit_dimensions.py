"""Removal and insertion of dimensions of extent 1, which programs do not have."""

from __future__ import annotations

from fuseflow.errors import TensorError
from fuseflow.tensors import Format
from fuseflow.tensors.blocks import Block, tile_shape
from fuseflow.tensors.levels import Compressed


def squeeze_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return a shape without its dimensions of extent 1."""
    return tuple(size for size in shape if size != 1)


def squeeze_format(format: Format, shape: tuple[int, ...]) -> Format:
    """Return the format of a tensor of this shape without the levels of dimensions of extent 1.

    >>> str(squeeze_format(Format.parse("(dense, dense, compressed)", 3), (1, 5, 7)))
    '(dense, compressed)'
    """
    kept = [d for d, size in enumerate(shape) if size != 1]
    remaining = [(level, kept.index(d)) for level, d in zip(format.levels, format.order, strict=True) if d in kept]
    levels, order = [level for level, _ in remaining], tuple(d for _, d in remaining)
    try:
        return Format(tuple(levels), order, format.complete and not all(level.full for level in levels))
    except TensorError:  # The levels that are left of a COO do not form one. They become compressed levels.
        coo = (level.follows or not level.unique for level in levels)
        return Format(tuple(Compressed() if part else level for part, level in zip(coo, levels, strict=True)), order)


def squeeze_block(block: Block, shape: tuple[int, ...]) -> Block:
    """Return a block without its sizes along dimensions of extent 1."""
    kept = tuple(b for b, size in zip(block, shape, strict=bool(block)) if size != 1)
    return kept if tile_shape(kept) else ()


def unsqueeze_format(format: Format, shape: tuple[int, ...]) -> Format:
    """Return a format with dense outermost levels for the dimensions of extent 1 of `shape`, which is the converse of `squeeze_format`."""
    units = [d for d, size in enumerate(shape) if size == 1]
    others = [d for d, size in enumerate(shape) if size != 1]
    return Format.of(*["dense"] * len(units), *format.words, order=(*units, *(others[d] for d in format.order)))
