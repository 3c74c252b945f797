"""Tensors as counts: of every level the distinct fibers, equal subtrees once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b

import numpy as np

from fuseflow.estimate.counted.distinct import append_empty_fiber, deduplicate_fibers, group_positions, select_fibers
from fuseflow.estimate.counted.nests import EMPTY, FiberLevel, FiberNest, Ints, full_level, normalize_labels, sum_by_group, take
from fuseflow.tensors import Format, Tensor
from fuseflow.tensors.levels import Level as Kind
from fuseflow.tensors.levels.base import Listed


@dataclass(frozen=True, eq=False)
class Pattern:
    """Where a tensor stores something. The root is fiber 0 of level 0; `below[p]` says of each element of level p which fiber of the next
    is below it, None: fiber 0."""

    levels: tuple[FiberLevel, ...]
    below: tuple[Ints | None, ...]

    @cached_property
    def fingerprint(self) -> str:
        """Equal for patterns with equal levels."""
        found = blake2b()
        for level, below in zip(self.levels, self.below, strict=True):
            for array in (level.pos, level.crd, below):
                found.update(repr((level.size, None if array is None else len(array))).encode())
                found.update(b"" if array is None else np.ascontiguousarray(array).data)
        return found.hexdigest()


def tensor_pattern(tensor: Tensor) -> Pattern:
    """Of a packed tensor; takes time in proportion to what it stores, but for dense levels that have nothing below them."""
    kinds = tensor.format.levels
    stored = _stored_levels(tensor.format)
    found = []
    refs: Ints | None = np.zeros(1, dtype=np.int64)  # None: all, in order
    for fibers in tensor.levels[:stored]:
        walk = fibers.walk()
        if isinstance(walk, Listed) and walk.pos is not None and (refs is None or walk.parents == 1):
            found.append(FiberLevel(walk.pos, walk.crds, fibers.size))
            refs = None
            continue
        refs = np.arange(len(found[-1].crd)) if refs is None else refs
        parents = len(refs)
        owner, crds, refs = fibers.expand(refs)
        found.append(FiberLevel(group_positions(owner, parents), crds, fibers.size))
    tail = [full_level(fibers.size) for fibers in tensor.levels[stored:]]
    below: list[Ints | None] = [np.arange(len(level.crd)) for level in found[:-1]] + [None] * min(1, stored)
    return _with_stored_coordinates(_deduplicated([*found, *tail], [*below, *[None] * len(tail)]), kinds)


def dense_pattern(sizes: Sequence[int]) -> Pattern:
    """Of a tensor that stores everything."""
    return Pattern(tuple(map(full_level, sizes)), (None,) * len(sizes))


def result_pattern(nest: FiberNest | None, format: Format, shape: Sequence[int]) -> Pattern:
    """Of a result whose innermost coordinates have this nest: as a reader of its format finds it."""
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
    return _with_stored_coordinates(_deduplicated([*levels, *tail], [*below, *[None] * len(tail)]), format.levels)


def view_pattern(pattern: Pattern, before: Format, format: Format, shape: Sequence[int]) -> Pattern:
    """Of the same stored tensor in other dimensions: dense levels come apart or together, between the others."""
    levels: list[FiberLevel] = []
    below: list[Ints | None] = []
    sizes = [(level.full, shape[d]) for level, d in zip(format.levels, format.order, strict=True)]
    for is_full, found, label in _runs(pattern, before):
        if not is_full:
            (_, _), *sizes = sizes
            levels, below = [*levels, found], [*below, label]
            continue
        parts = list[int]()
        while math.prod(parts) < found.size or (sizes and sizes[0][0] and sizes[0][1] == 1):
            parts.append(sizes.pop(0)[1])
        if label is None:
            levels, below = [*levels, *map(full_level, parts)], [*below, *[None] * len(parts)]
            continue
        fibers = found.fibers
        for k, size in enumerate(parts):
            levels.append(FiberLevel(np.arange(fibers + 1) * size, np.tile(np.arange(size), fibers), size))
            fibers *= size
            below.append(label if k == len(parts) - 1 else np.arange(fibers))
    levels += [full_level(size) for _, size in sizes]
    below += [None] * len(sizes)
    return _with_stored_coordinates(_deduplicated(levels, below), format.levels)


def _runs(pattern: Pattern, format: Format) -> list[tuple[bool, FiberLevel, Ints | None]]:
    """Levels with what is below them; dense ones next to each other as one."""
    runs: list[tuple[bool, FiberLevel, Ints | None]] = []
    for kind, level, below in zip(format.levels, pattern.levels, pattern.below, strict=True):
        if not (kind.full and runs and runs[-1][0]):
            runs.append((kind.full, level, below))
            continue
        _, outer, links = runs.pop()
        size = outer.size * level.size
        links = np.zeros(len(outer.crd), dtype=np.int64) if links is None else links
        if below is None:
            runs.append((True, full_level(size), None))
            continue
        _, at = level.expanded(links)
        runs.append(
            (True, FiberLevel(np.arange(outer.fibers + 1) * size, np.tile(np.arange(size), outer.fibers), size), below[at])
        )
    return runs


def _stored_levels(format: Format) -> int:
    """Levels that are not dense, with those around them: below, all fibers are alike."""
    return max((p + 1 for p, kind in enumerate(format.levels) if not kind.full), default=0)


def _deduplicated(levels: Sequence[FiberLevel], below: Sequence[Ints | None]) -> Pattern:
    """The same with equal subtrees once."""
    made: list[FiberLevel] = []
    links: list[Ints | None] = []
    which: Ints | None = None  # which fiber of the level below each fiber is now
    for level, label in zip(reversed(levels), reversed(below), strict=True):
        if label is not None and which is not None:
            label = take(which, label)
        level, label, which = deduplicate_fibers(level, normalize_labels(label))
        made.insert(0, level)
        links.insert(0, label)
    return Pattern(tuple(made), tuple(links))


def _with_stored_coordinates(pattern: Pattern, kinds: Sequence[Kind]) -> Pattern:
    """Where coordinates repeat, one is stored for every entry below."""
    levels = list(pattern.levels)
    entries: Ints | None = None  # of each fiber of the level below
    for p in reversed(range(len(levels))):
        level = levels[p]
        if entries is None:
            entries = level.lengths
        else:
            below = pattern.below[p]
            each = take(entries, np.zeros(len(level.crd), dtype=np.int64) if below is None else below, 0)
            entries = sum_by_group(level.owner, each, level.fibers)
        kind = kinds[p]
        if kind.follows or not kind.unique:
            levels[p] = replace(level, words=entries)
    return Pattern(tuple(levels), pattern.below)
