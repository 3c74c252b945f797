"""Patterns: the coordinates that tensors store, as the distinct fibers of every level, with equal subtrees held once; and the fibers of a
pattern that a scan goes through."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import TypeAlias

import numpy as np

from fuseflow.estimate.counted.deduplication import append_empty_fiber, deduplicate_fibers, group_positions, select_fibers
from fuseflow.estimate.counted.memo import CountMemo
from fuseflow.estimate.counted.stream_trie import (
    EMPTY,
    CountedStream,
    ElementNumbers,
    FiberLevel,
    FiberNest,
    Ints,
    PerFiber,
    below_links,
    by_element,
    distinct_elements,
    full_level,
    normalize_labels,
    sum_by_group,
    take,
)
from fuseflow.tensors import Format, Tensor
from fuseflow.tensors.levels import Level as Kind
from fuseflow.tensors.levels.base import Listed


@dataclass(frozen=True, eq=False)
class Pattern:
    """The coordinates that a tensor stores. Its root is fiber 0 of level 0, and fiber 0 of every level is below reference 0: a
    graph scans an inner level from the root where the levels above have one coordinate.

    `below[p]` has the fiber of the next level below each element of level p; None means fiber 0 for all. `words[p]` has the
    number of coordinates that a scan of each fiber of level p reads; None means the length of the fiber: each coordinate is
    stored once.
    """

    levels: tuple[FiberLevel, ...]
    below: tuple[Ints | None, ...]
    words: tuple[Ints | None, ...]

    @property
    def elements(self) -> int:
        """The number of elements of the innermost level."""
        counts = None
        for level, below in zip(reversed(self.levels), reversed(self.below), strict=True):
            if counts is None:
                counts = level.lengths
            else:
                first = counts[0] if len(counts) else 0
                counts = (
                    level.lengths * first if below is None else sum_by_group(level.owner, take(counts, below, 0), level.fibers)
                )
        return 1 if counts is None else int(counts[0])

    @cached_property
    def fingerprint(self) -> str:
        """A digest that is equal for patterns with equal levels."""
        digest = blake2b()
        for level, below in zip(self.levels, self.below, strict=True):
            for array in (level.pos, level.crd, below):
                digest.update(repr((level.size, None if array is None else len(array))).encode())
                digest.update(b"" if array is None else np.ascontiguousarray(array).data)
        return digest.hexdigest()


def outermost_part(pattern: Pattern, low: int, high: int) -> Pattern:
    """Return the pattern of the coordinates from `low` to `high` of the outermost level, numbered again from 0."""
    level, below = pattern.levels[0], pattern.below[0]
    first, last = np.searchsorted(level.crd[: level.pos[1]], [low, high])
    outer = FiberLevel(np.array([0, last - first]), level.crd[first:last] - low, high - low)
    links = None if below is None else below[first:last]
    return Pattern((outer, *pattern.levels[1:]), (links, *pattern.below[1:]), (None, *pattern.words[1:]))


def tensor_pattern(tensor: Tensor) -> Pattern:
    """Return the pattern of a packed tensor, in time proportional to its stored coordinates; inner dense levels take no time."""
    kinds = tensor.format.levels
    stored = _stored_levels(tensor.format)
    levels = []
    refs: Ints | None = np.zeros(1, dtype=np.int64)  # the references into the level; None: all, in order
    for fibers in tensor.levels[:stored]:
        walk = fibers.walk()
        if isinstance(walk, Listed) and walk.pos is not None and (refs is None or walk.parents == 1):
            levels.append(FiberLevel(walk.pos, walk.crds.astype(np.int64, copy=False), fibers.size))
            refs = None
            continue
        refs = np.arange(levels[-1].elements) if refs is None else refs
        parents = len(refs)
        owner, crds, refs = fibers.expand(refs)
        levels.append(FiberLevel(group_positions(owner, parents), crds, fibers.size))
    tail = [full_level(fibers.size) for fibers in tensor.levels[stored:]]
    below: list[Ints | None] = [np.arange(level.elements) for level in levels[:-1]] + [None] * min(1, stored)
    return _deduplicated([*levels, *tail], [*below, *[None] * len(tail)], kinds)


def dense_pattern(sizes: Sequence[int]) -> Pattern:
    """Return the pattern of a tensor that stores every coordinate."""
    return Pattern(tuple(map(full_level, sizes)), (None,) * len(sizes), (None,) * len(sizes))


def result_pattern(nest: FiberNest | None, format: Format, shape: Sequence[int]) -> Pattern:
    """Return the pattern of a result, in its format, given the nest of its innermost coordinates."""
    stored = _stored_levels(format)
    chain = nest.chain if nest else ()
    levels = [n.level for n in chain[:stored]]
    below: list[Ints | None] = [n.link for n in chain[1:stored]] + [None] * min(1, stored)
    for p, links in enumerate(below):  # an empty fiber has a reference, unlike an `N`
        if links is not None and (links == EMPTY).any():
            below[p] = np.where(links == EMPTY, levels[p + 1].fibers, links)
            levels[p + 1] = append_empty_fiber(levels[p + 1])
    if stored:
        root = int(chain[0].link[0])
        levels[0], below[0] = select_fibers(append_empty_fiber(levels[0]), np.array([root]), below[0])
    tail = [full_level(shape[d]) for d in format.order[stored:]]
    return _deduplicated([*levels, *tail], [*below, *[None] * len(tail)], format.levels)


def view_pattern(pattern: Pattern, source_format: Format, format: Format, shape: Sequence[int]) -> Pattern:
    """Return the pattern of a view of a stored tensor in other dimensions: dense levels next to each other are joined or split."""
    levels: list[FiberLevel] = []
    below: list[Ints | None] = []
    sizes = [(level.full, shape[d]) for level, d in zip(format.levels, format.order, strict=True)]
    for is_full, level, links in _runs(pattern, source_format):
        if not is_full:
            (_, _), *sizes = sizes
            levels, below = [*levels, level], [*below, links]
            continue
        parts = list[int]()
        while math.prod(parts) < level.size or (sizes and sizes[0][0] and sizes[0][1] == 1):
            parts.append(sizes.pop(0)[1])
        if links is None:
            levels, below = [*levels, *map(full_level, parts)], [*below, *[None] * len(parts)]
            continue
        fibers = level.fibers
        for k, size in enumerate(parts):
            levels.append(FiberLevel(np.arange(fibers + 1) * size, np.tile(np.arange(size), fibers), size))
            fibers *= size
            below.append(links if k == len(parts) - 1 else np.arange(fibers))
    levels += [full_level(size) for _, size in sizes]
    below += [None] * len(sizes)
    return _deduplicated(levels, below, format.levels)


def _runs(pattern: Pattern, format: Format) -> list[tuple[bool, FiberLevel, Ints | None]]:
    """Return the levels, dense ones next to each other as one, each with whether it is dense and with the links below it."""
    runs: list[tuple[bool, FiberLevel, Ints | None]] = []
    for kind, level, below in zip(format.levels, pattern.levels, pattern.below, strict=True):
        if not (kind.full and runs and runs[-1][0]):
            runs.append((kind.full, level, below))
            continue
        _, outer, links = runs.pop()
        size = outer.size * level.size
        links = np.zeros(outer.elements, dtype=np.int64) if links is None else links
        if below is None:
            runs.append((True, full_level(size), None))
            continue
        _, at = level.expanded(links)
        runs.append(
            (True, FiberLevel(np.arange(outer.fibers + 1) * size, np.tile(np.arange(size), outer.fibers), size), below[at])
        )
    return runs


def _stored_levels(format: Format) -> int:
    """Return the number of levels down to the last that is not dense. All fibers of the levels below are equal."""
    return max((p + 1 for p, kind in enumerate(format.levels) if not kind.full), default=0)


def _deduplicated(levels: Sequence[FiberLevel], below: Sequence[Ints | None], kinds: Sequence[Kind]) -> Pattern:
    """Return the pattern of these levels, stored as `kinds` say, with equal subtrees held once."""
    distinct_levels: list[FiberLevel] = []
    links: list[Ints | None] = []
    which: Ints | None = None  # which fiber of the level below each fiber is now
    for level, level_links in zip(reversed(levels), reversed(below), strict=True):
        if level_links is not None and which is not None:
            level_links = take(which, level_links)
        level, level_links, which = deduplicate_fibers(level, normalize_labels(level_links))
        distinct_levels.insert(0, level)
        links.insert(0, level_links)
    _begin_with_first(distinct_levels, links)
    return Pattern(tuple(distinct_levels), tuple(links), _stored_coordinates(distinct_levels, links, kinds))


def _begin_with_first(levels: list[FiberLevel], below: list[Ints | None]) -> None:
    """Exchange fibers, in place, so that fiber 0 of every level is the one below the first element of the level above."""
    for p, links in enumerate(below[:-1]):
        if links is not None and len(links) and (first := int(links[0])) > 0:
            numbers = np.arange(levels[p + 1].fibers)
            numbers[[0, first]] = numbers[[first, 0]]
            levels[p + 1], below[p + 1] = select_fibers(levels[p + 1], numbers, below[p + 1])
            below[p] = normalize_labels(take(numbers, links))


def _stored_coordinates(
    levels: Sequence[FiberLevel], below: Sequence[Ints | None], kinds: Sequence[Kind]
) -> tuple[Ints | None, ...]:
    """Return how many coordinates each fiber of every level stores, as `Pattern.words` has them.

    A level stores one coordinate for each entry of the level below if that one follows it. It stores every coordinate once otherwise.
    """
    words: list[Ints | None] = []
    entries: Ints | None = None  # of each fiber of the level below, if that level follows this one
    for level, links, kind in zip(reversed(levels), reversed(below), reversed(kinds), strict=True):
        if entries is None:
            entries = level.lengths
        else:
            entries_below = take(entries, np.zeros(level.elements, dtype=np.int64) if links is None else links, 0)
            entries = sum_by_group(level.owner, entries_below, level.fibers)
        words.insert(0, None if kind.unique and not kind.follows else entries)
        if not kind.follows:
            entries = None
    return tuple(words)


Piece: TypeAlias = tuple[int, int]
"""A range of the coordinates of the outermost loops: the first of them, and the one behind the last."""


@dataclass(frozen=True, eq=False)
class ScannedFibers:
    """The fibers of a level that a scan goes through. `labels` has the fiber that each reference leads to. `below` and `words`
    are as in `Pattern`."""

    level: FiberLevel
    labels: ElementNumbers | None
    below: Ints | None
    words: Ints | None


def scanned_fibers(memo: CountMemo, ref: CountedStream, pattern: Pattern, level: int, piece: Piece | None) -> ScannedFibers:
    """Return the fibers of a level of a tensor that the references of the stream `ref` lead to; without a `piece`, all fibers of
    the level."""
    whole = ScannedFibers(pattern.levels[level], ref.labels, pattern.below[level], pattern.words[level])
    if piece is None:
        return whole
    if ref.nest is None:
        return memo.once(("outermost", level), (pattern,), lambda: _outermost(whole, piece))
    return memo.once(("named", level), (pattern, ref.nest, ref.labels), lambda: _named(whole, ref))


def outermost_level(level: FiberLevel, piece: Piece | None) -> FiberLevel:
    """Return the coordinates of an outermost level (one fiber) that are in a piece; all if there is no piece."""
    if piece is None:
        return level
    kept = _inside(level, piece)
    return FiberLevel(np.array([0, int(kept.sum())]), level.crd[kept], level.size)


def _inside(level: FiberLevel, piece: Piece) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    first, end = piece
    inside: np.ndarray[tuple[int], np.dtype[np.bool_]] = (level.crd >= first) & (level.crd < end)
    return inside


def _outermost(whole: ScannedFibers, piece: Piece) -> ScannedFibers:
    """Return the coordinates of an outermost level that are in a piece. All words of the fiber count in its first piece."""
    level, words = outermost_level(whole.level, piece), whole.words
    if words is not None and piece[0] > 0:
        words = np.zeros_like(words)
    return ScannedFibers(level, whole.labels, None if whole.below is None else whole.below[_inside(whole.level, piece)], words)


def _named(whole: ScannedFibers, ref: CountedStream) -> ScannedFibers:
    """Return the fibers that some reference of the stream `ref` leads to, numbered anew."""
    label = np.zeros(distinct_elements(ref.nest), dtype=np.int64) if ref.label is None else ref.label
    fibers = np.unique(label[label >= 0])
    numbers = np.full(whole.level.fibers, EMPTY)
    numbers[fibers] = np.arange(len(fibers))
    level, below = select_fibers(whole.level, fibers, whole.below)
    return ScannedFibers(level, take(numbers, label), below, None if whole.words is None else whole.words[fibers])


def without_empty_lists(nest: FiberNest, depths: Collection[int]) -> FiberNest:
    """Return a nest without the elements of these depths, counted from 0, that have an empty list below."""
    chain = nest.chain
    levels, links = [part.level for part in chain], [part.links for part in chain]
    for p in sorted(depths, reverse=True):
        level, lengths = levels[p], below_links(levels[p + 1].lengths, links[p + 1])
        if isinstance(lengths, PerFiber) and (lengths.numbers > 0).all():
            continue
        filled = by_element(lengths) > 0
        if not filled.all():
            levels[p] = FiberLevel(group_positions(level.owner[filled], level.fibers), level.crd[filled], level.size)
            links[p + 1] = by_element(links[p + 1])[filled]
    above: FiberNest | None = None
    for original, level, link in zip(chain, levels, links, strict=True):
        unchanged = above is original.above and level is original.level and link is original.links
        above = original if unchanged else FiberNest(above, link, level)
    assert above is not None
    return above


def written_nest(levels: Sequence[FiberNest | None]) -> FiberNest | None:
    """Return the nest of a result, whose levels are written from streams with these nests, outermost first. None for a scalar.

    A stream of inner coordinates can have a list for an outer coordinate that was dropped since that list is empty: public
    primitives drop from one pair of streams after the other, and the innermost stream passes only the first of these. Such lists
    store nothing.
    """
    if not levels or levels[-1] is None:
        return None
    chain = levels[-1].chain
    dropped = [p for p, (nest, part) in enumerate(zip(levels, chain, strict=True)) if nest and nest.elements < part.elements]
    return without_empty_lists(levels[-1], dropped) if dropped else levels[-1]
