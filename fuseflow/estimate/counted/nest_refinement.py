"""Common refinements: one nest that distinguishes whatever any of several nests of the same lists distinguishes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np

from fuseflow.estimate.counted.deduplication import distinct_tuples
from fuseflow.estimate.counted.memo import CountMemo
from fuseflow.estimate.counted.stream_trie import EMPTY, ElementNumbers, FiberLevel, FiberNest, Ints, PerFiber, by_element, take


@dataclass(frozen=True, eq=False)
class FiberMap:
    """A map from the elements of a level to those of a coarser one: fiber f goes to fiber `fibers[f]`, which is as long.

    A fiber that never occurs may have another length. It is mapped to some element then, which nothing reads.
    """

    level: FiberLevel
    coarse: FiberLevel
    fibers: Ints

    @cached_property
    def each(self) -> Ints:
        """The element to which each element is mapped."""
        level, coarse = self.level, self.coarse
        if not coarse.fibers:
            return np.zeros(level.elements, dtype=np.int64)
        offsets = coarse.pos[:-1][np.maximum(self.fibers, 0)] - level.pos[:-1]
        return np.minimum(np.arange(level.elements) + offsets[level.owner], max(0, coarse.elements - 1))


ElementMap: TypeAlias = Ints | FiberMap | None
"""A map from the elements of a refined nest to the elements of the nest that it refines. None is the identity."""


def apply_map(values: Ints, map: ElementMap) -> Ints:
    """Return the values of the elements of a refined nest, given the values in the nest that it refines."""
    if map is None:
        return values
    if not len(values):  # of elements that never occur
        return np.zeros(map.level.elements if isinstance(map, FiberMap) else len(map), dtype=np.int64)
    return values[map.each if isinstance(map, FiberMap) else map]


def map_numbers(numbers: ElementNumbers, map: ElementMap) -> ElementNumbers:
    """Return the numbers of the elements of a refined nest as `apply_map` does, but one for each fiber where that is enough."""
    if map is None or not isinstance(numbers, PerFiber):
        return numbers if map is None else apply_map(by_element(numbers), map)
    if isinstance(map, FiberMap):
        return PerFiber(map.level, take(numbers.numbers, np.maximum(map.fibers, 0), 0))
    return apply_map(numbers.each, map)


@dataclass(frozen=True)
class NumberColumns:
    """Several numbers for each element of a level, column by column; with a `level`, for each of its fibers that is not empty."""

    columns: tuple[Ints, ...]
    level: FiberLevel | None

    @classmethod
    def of(cls, numbers: Sequence[ElementNumbers]) -> NumberColumns:
        """Put numbers of the same elements side by side."""
        levels = {numbers_.level if isinstance(numbers_, PerFiber) else None for numbers_ in numbers}
        level = levels.pop()
        if levels or level is None or not level.elements:
            return cls(tuple(map(by_element, numbers)), None)
        columns = [numbers_.numbers for numbers_ in numbers if isinstance(numbers_, PerFiber)]
        if not (filled := level.lengths > 0).all():
            some = int(np.argmax(filled))  # an empty fiber has no numbers: it takes the numbers of another
            columns = [np.where(filled, column, column[some]) for column in columns]
        return cls(tuple(columns), level)

    def numbers(self, values: Ints) -> ElementNumbers:
        """Return `values`, computed row by row from the columns, as numbers of the elements."""
        return values if self.level is None else PerFiber(self.level, values)


def common_refinement(memo: CountMemo, nests: Sequence[FiberNest | None]) -> tuple[FiberNest | None, tuple[ElementMap, ...]]:
    """Return one nest that refines several nests of the same lists and coordinates, and for each of these the map from the
    elements of the refined nest."""
    distinct_nests = list(dict.fromkeys(nests))
    if len(distinct_nests) == 1:
        return nests[0], (None,) * len(nests)
    refined, maps = memo.once(
        "together", distinct_nests, lambda: _refine(memo, [nest for nest in distinct_nests if nest is not None])
    )
    return refined, tuple(maps[distinct_nests.index(nest)] for nest in nests)


def _refine(memo: CountMemo, nests: Sequence[FiberNest]) -> tuple[FiberNest, tuple[ElementMap, ...]]:
    above, maps = common_refinement(memo, [nest.above for nest in nests])
    links = NumberColumns.of([map_numbers(nest.links, map) for nest, map in zip(nests, maps, strict=True)])
    finest = max(range(len(nests)), key=lambda k: nests[k].level.fibers)
    if (counterparts := _counterparts(links.columns, finest, nests[finest].level.fibers)) is not None:
        nest = nests[finest]
        if above is not nest.above or maps[finest] is not None:
            nest = FiberNest(above, links.numbers(links.columns[finest]), nest.level)
        return nest, tuple(
            None if k == finest else FiberMap(nest.level, nests[k].level, fibers) for k, fibers in enumerate(counterparts)
        )
    rows, which = distinct_tuples(links.columns)
    lengths = [take(nest.level.lengths, row, 0) for nest, row in zip(nests, rows, strict=True)]
    if above is not None and not all(np.array_equal(lengths[0], own) for own in lengths[1:]):
        # Nests differ below elements that never occur, as in other lanes. These have no fibers here.
        occurs = above.times > 0 if links.level else above.element_times > 0
        rows, which = distinct_tuples([np.where(occurs, column, EMPTY) for column in links.columns])
    memo.afford(int(take(nests[0].level.lengths, rows[0], 0).sum()))
    level = nests[0].level.copies(rows[0])
    maps = tuple(FiberMap(level, nest.level, row) for nest, row in zip(nests, rows, strict=True))
    return FiberNest(above, links.numbers(which), level), maps


def _counterparts(fibers: Sequence[Ints], finest: int, count: int) -> list[Ints] | None:
    """Return for each nest which of its fibers each fiber of the finest one refines, None if there are several for one."""
    finest_fibers = fibers[finest]
    nonempty = finest_fibers >= 0
    finest_fibers = finest_fibers if nonempty.all() else finest_fibers[nonempty]
    counterparts = []
    for column in fibers:
        column = column if nonempty.all() else column[nonempty]
        counterpart = np.zeros(count, dtype=np.int64)
        counterpart[finest_fibers] = column
        if not (counterpart[finest_fibers] == column).all():
            return None
        counterparts.append(counterpart)
    return counterparts
