"""Counted streams: the lists of a stream, with each distinct list stored once.

A stream is a nested list. In a fused graph most of its lists are equal, because results that are computed again are equal. So
each depth holds distinct fibers only, and each element says which fiber is below it: a trie with shared subtrees. Its size
follows the stored entries of the tensors, not the iteration space. How often each fiber occurs is a sum from the root down.

A value that is repeated over a list tells equal lists apart: if rows of a matrix are repeated over all features, each row has a
list of features for itself. Such fibers are copies (`FiberCopies`), and all elements of one have the same number (`PerFiber`).
Neither is written out before single elements are needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]

EMPTY = -1
"""The number in place of a fiber where the list is empty, and in place of a label where the element is `N`."""


@dataclass(frozen=True, eq=False)
class FiberCopies:
    """The coordinates of fibers that are copies of fibers of `level`: `sources` has the fiber that each copies, or `EMPTY`."""

    level: FiberLevel
    sources: Ints


@dataclass(frozen=True, eq=False)
class FiberLevel:
    """The distinct fibers at one depth. Fiber f has the coordinates `crd[pos[f]:pos[f+1]]` of a dimension of `size`."""

    pos: Ints
    coordinates: Ints | FiberCopies
    size: int

    @cached_property
    def crd(self) -> Ints:
        """The coordinate of each element."""
        copied = self.coordinates
        return copied.level.crd[copied.level.elements_of(copied.sources)] if isinstance(copied, FiberCopies) else copied

    @property
    def fibers(self) -> int:
        """The number of distinct fibers."""
        return len(self.pos) - 1

    @property
    def elements(self) -> int:
        """The number of elements of all distinct fibers."""
        return int(self.pos[-1])

    @cached_property
    def lengths(self) -> Ints:
        """The number of elements of each fiber."""
        return np.diff(self.pos)

    @cached_property
    def owner(self) -> Ints:
        """The fiber of each element."""
        return np.repeat(np.arange(self.fibers), self.lengths)

    @cached_property
    def keys(self) -> Ints:
        """One key for each element, made of its fiber and its coordinate; the keys ascend."""
        return self.owner * self.size + self.crd

    @cached_property
    def complete(self) -> bool:
        """Whether every fiber has all coordinates."""
        return self.elements == self.fibers * self.size

    def copies(self, fibers: Ints) -> FiberLevel:
        """Return a level of copies of these fibers, in this order. A copy of `EMPTY` is empty."""
        lengths = take(self.lengths, fibers, 0)
        if isinstance(copied := self.coordinates, FiberCopies):
            return FiberLevel(positions(lengths), FiberCopies(copied.level, take(copied.sources, fibers)), self.size)
        return FiberLevel(positions(lengths), FiberCopies(self, fibers), self.size)

    def expanded(self, fibers: Ints) -> tuple[Ints, Ints]:
        """Return, for the elements of these fibers one fiber after the other, the position in `fibers` and the element. `EMPTY`
        has none."""
        lengths = take(self.lengths, fibers, 0)
        return np.repeat(np.arange(len(fibers)), lengths), self.elements_of(fibers)

    def elements_of(self, fibers: Ints) -> Ints:
        """Return the elements of these fibers, one fiber after the other. `EMPTY` has none."""
        lengths = take(self.lengths, fibers, 0)
        ends = np.cumsum(lengths)
        at = np.arange(ends[-1] if len(ends) else 0)
        at += np.repeat(take(self.pos[:-1], fibers) - (ends - lengths), lengths)
        return at

    def sums(self, counts: ElementNumbers) -> Ints:
        """Return the sum of the counts of the elements of each fiber."""
        if isinstance(counts, PerFiber):
            return counts.numbers * self.lengths
        total = np.zeros(len(counts) + 1, dtype=np.int64)
        np.cumsum(counts, out=total[1:])
        return total[self.pos[1:]] - total[self.pos[:-1]]

    def find(self, fibers: Ints, crds: Ints) -> Ints:
        """Return the elements with these coordinates in these fibers, pair by pair; `EMPTY` where there is none."""
        if not self.elements:
            return np.full(len(crds), EMPTY)
        if self.complete:
            return np.where(fibers >= 0, self.pos[fibers] + crds, EMPTY)
        if self.fibers * self.size <= max(1 << 20, 4 * len(crds)):
            return take(self._table, np.where(fibers >= 0, fibers * self.size + crds, EMPTY))
        wanted = fibers * self.size + crds
        at = np.minimum(np.searchsorted(self.keys, wanted), len(self.crd) - 1)
        return np.where((fibers >= 0) & (self.keys[at] == wanted), at, EMPTY)

    @cached_property
    def _table(self) -> Ints:
        table = np.full(self.fibers * self.size, EMPTY)
        table[self.keys] = np.arange(len(self.crd))
        return table


@dataclass(frozen=True, eq=False)
class PerFiber:
    """A number for each element of a level, where all elements of a fiber have the same one: `numbers` has it for each fiber."""

    level: FiberLevel
    numbers: Ints

    @cached_property
    def each(self) -> Ints:
        """The number of each element."""
        return np.repeat(self.numbers, self.level.lengths)


ElementNumbers: TypeAlias = Ints | PerFiber
"""A number for each element of a level."""
Numbers = TypeVar("Numbers", bound=ElementNumbers)


def by_element(numbers: ElementNumbers) -> Ints:
    """Return the number of each element."""
    return numbers.each if isinstance(numbers, PerFiber) else numbers


def _fewest(numbers: ElementNumbers) -> Ints:
    """Return one number for each fiber where that is enough, or else the number of each element."""
    return numbers.numbers if isinstance(numbers, PerFiber) else numbers


@dataclass(frozen=True, eq=False)
class FiberNest:
    """The lists of a stream, depth by depth. `links` has the fiber of `level` below each element of the nest above, or below the
    one root.

    A link is `EMPTY` where the list is empty. A level without fibers has such links only, also below elements that never occur.
    """

    above: FiberNest | None
    links: ElementNumbers
    level: FiberLevel

    def __post_init__(self) -> None:
        if not self.level.fibers:
            object.__setattr__(self, "links", below_links(np.zeros(0, dtype=np.int64), self.links, EMPTY))

    @property
    def link(self) -> Ints:
        """The links of all elements, as one array."""
        return by_element(self.links)

    @property
    def depth(self) -> int:
        return 1 + len(self._around)

    @property
    def list_lengths(self) -> ElementNumbers:
        """The number of elements of the list below each element of the nest above."""
        return below_links(self.level.lengths, self.links)

    @property
    def chain(self) -> tuple[FiberNest, ...]:
        """The nests of all depths, from the outermost to this one."""
        return (*self._around, self)

    @cached_property
    def _around(self) -> tuple[FiberNest, ...]:
        """The nests around this one. A nest that keeps itself would only be freed by the garbage collector."""
        return self.above.chain if self.above else ()

    @cached_property
    def times(self) -> Ints:
        """How often each fiber occurs in the stream."""
        if self.above is None:
            link, outer = self.link, np.ones(1, dtype=np.int64)
        elif isinstance(self.links, PerFiber):
            link, outer = self.links.numbers, self.above.times * self.above.level.lengths
        else:
            link, outer = self.links, self.above.element_times
        nonempty = link >= 0
        if nonempty.all():
            return sum_by_group(link, outer, self.level.fibers)
        return sum_by_group(link[nonempty], outer[nonempty], self.level.fibers)

    @cached_property
    def element_times(self) -> Ints:
        """How often each element occurs in the stream."""
        return np.repeat(self.times, self.level.lengths)

    @cached_property
    def elements(self) -> int:
        """The number of innermost elements of the stream."""
        return int(self.times @ self.level.lengths)

    @property
    def lists(self) -> int:
        """The number of innermost lists of the stream."""
        return 1 if self.above is None else self.above.elements

    @cached_property
    def filled(self) -> int:
        """The number of innermost lists that are not empty."""
        return int(self.times[self.level.lengths > 0].sum())

    def total(self, numbers: ElementNumbers) -> int:
        """Return the sum of a number for each innermost distinct element, each as often as it occurs in the stream."""
        if isinstance(numbers, PerFiber):
            return int((self.times * self.level.lengths) @ numbers.numbers)
        return int(self.element_times @ numbers)


@dataclass(frozen=True, eq=False)
class CountedStream:
    """A counted stream: its nest, which is None at depth 0, and `labels`, one for each element of the innermost distinct fibers.

    The label of a reference is the fiber below it in its tensor. The label of a repeated coordinate is its value, where anything
    needs it. The label `EMPTY` marks an `N`. If `labels` is None, all labels are 0.
    """

    nest: FiberNest | None = None
    labels: ElementNumbers | None = None

    @property
    def label(self) -> Ints | None:
        """The label of each element of the stream, as one array, or None if all are 0."""
        return None if self.labels is None else by_element(self.labels)

    @property
    def depth(self) -> int:
        return self.nest.depth if self.nest else 0

    @cached_property
    def absent(self) -> int:
        """The number of elements that are `N`."""
        absent = None if self.labels is None else absent_elements(self.labels)
        return 0 if absent is None else ElementCounts(self.nest, absent).total


@dataclass(frozen=True, eq=False)
class ElementCounts:
    """A count for each element of the innermost distinct fibers of a nest, for example the comparisons below it."""

    nest: FiberNest | None
    counts: ElementNumbers

    @cached_property
    def total(self) -> int:
        """The sum over all elements of the stream, each as often as it occurs."""
        return int(by_element(self.counts).sum()) if self.nest is None else self.nest.total(self.counts)

    def summed(self, depth: int) -> Ints:
        """Return the sum of the counts below each element of the first `depth` levels."""
        return by_element(self._summed(depth))

    def summed_alike(self, depth: int) -> Ints:
        """Return what `summed` returns, or if all its numbers are equal, an array of one of them."""
        sums = self._summed(depth)
        numbers = sums.numbers[sums.level.lengths > 0] if isinstance(sums, PerFiber) else sums
        if len(numbers) and (numbers == numbers[0]).all():
            return numbers[:1].copy()
        return by_element(sums)

    def _summed(self, depth: int) -> ElementNumbers:
        counts = self.counts
        for nest in reversed(self.nest.chain[depth:] if self.nest else ()):
            counts = below_links(nest.level.sums(counts), nest.links)
        return counts


def absent_elements(labels: ElementNumbers) -> ElementNumbers | None:
    """Return 1 for each element that is `N`, and 0 for the others. None if no element is `N`."""
    absent = _fewest(labels) < 0
    if not absent.any():
        return None
    ones: Ints = absent.astype(np.int64)
    return PerFiber(labels.level, ones) if isinstance(labels, PerFiber) else ones


def below_links(numbers: Ints, links: ElementNumbers, otherwise: int = 0) -> ElementNumbers:
    """Return for each element the number of the fiber below it, and `otherwise` where there is none. `numbers` has one for each
    fiber."""
    if isinstance(links, PerFiber):
        return PerFiber(links.level, take(numbers, links.numbers, otherwise))
    return take(numbers, links, otherwise)


def sum_by_group(groups: Ints, weights: Ints, count: int) -> Ints:
    """Return the sum of the weights of each group, exact below 2^53. Groups from `count` on are left out: their elements never
    occur."""
    return np.bincount(groups, weights=weights, minlength=count)[:count].astype(np.int64)


def take(values: Ints, at: Ints, otherwise: int = EMPTY) -> Ints:
    """Return the values at these positions, and `otherwise` where a position is `EMPTY`."""
    if not len(values):
        return np.full(len(at), otherwise)
    if at.min(initial=0) >= 0:
        return values[at]
    return np.where(at >= 0, values[np.maximum(at, 0)], otherwise)


def positions(lengths: Ints) -> Ints:
    """Return the positions at which fibers of these lengths begin, and the position behind the last."""
    return np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(lengths)))


def normalize_labels(labels: Numbers | None) -> Numbers | None:
    """Return the labels, or None if all of them are 0."""
    return None if labels is None or not _fewest(labels).any() else labels


def distinct_elements(nest: FiberNest | None) -> int:
    """Return the number of elements of the innermost distinct fibers; it is 1 for a stream of depth 0."""
    return 1 if nest is None else nest.level.elements


@lru_cache(maxsize=256)
def full_level(size: int) -> FiberLevel:
    """Return a level of one fiber with all coordinates of a dimension of `size`."""
    return FiberLevel(np.array([0, size]), np.arange(size), size)
