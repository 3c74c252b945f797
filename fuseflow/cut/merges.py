"""Merges the units of a program into regions, two at a time: those two that save the most cycles as one region.

Such regions need not be neighbours in program order: a gradient may stand beside its update, and the backward of a layer beside what
it shares with another one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from heapq import heapify, heappop, heappush
from math import inf

from fuseflow.cut.units import UnitGroup, UnitSequence
from fuseflow.directed_graphs import distances, topological_order
from fuseflow.einsum.nodes import Program

LEAST_GAIN = 1e-3
"""Two regions are not merged to save less than this share of the cycles that they take apart."""
FAR = 16
"""If two regions take more than this many times the cycles as one region, no larger regions that have them are tried as one. (On steps of
GCNs on Cora and karate, of a pruned MLP, and on twelve recorded steps, the cuts stay as they are.)"""


def unit_readers(program: Program, units: UnitSequence) -> tuple[frozenset[int], ...]:
    """Return for each unit the units that read its results."""
    home = {e: number for number, unit in enumerate(units.units) for e in unit.einsums}
    readers: list[set[int]] = [set() for _ in units.units]
    for einsum in program.einsums:
        for name in einsum.operands:
            if name in home and home[name] != home[einsum.name]:
                readers[home[name]].add(home[einsum.name])
    return tuple(map(frozenset, readers))


def unit_links(program: Program, units: UnitSequence) -> tuple[frozenset[int], ...]:
    """Return for each unit the units that read its results, compute what it reads, or read the same. A single number, which all
    updates of parameters may read, is no reason to run together."""
    home = {e: number for number, unit in enumerate(units.units) for e in unit.einsums}
    near: dict[str, set[int]] = {}
    for einsum in program.einsums:
        for name in {access.tensor for access in einsum.accesses if access.indices}:
            near.setdefault(name, {home[name]} if name in home else set()).add(home[einsum.name])
    links: list[set[int]] = [set() for _ in units.units]
    for together in near.values():
        for unit in together:
            links[unit] |= together - {unit}
    return tuple(map(frozenset, links))


def merged_units(
    start: Iterable[UnitGroup], readers: Sequence[Set[int]], links: Sequence[Set[int]], cost: Callable[[UnitGroup], float]
) -> tuple[float, tuple[UnitGroup, ...]]:
    """Return regions of units, in an order in which they can run, and the sum of their costs. A region that cannot be formed has
    an infinite cost.

    `start` has the regions that are merged, `readers` for each unit the units that read its results, and `links` those with which
    it may be in a region if nothing else joins them. The smaller of two regions is assumed to be free beside the larger one at
    best. Pairs are taken in the order of that gain until their cost as one region is known, so that few costs are asked for. Where one of
    them repeats the work of the other many times, it does so in larger regions, too, so that these are not looked at.

    >>> costs = {(0,): 4.0, (1,): 1.0, (2,): 4.0, (0, 2): 4.0, (0, 1): 9.0, (1, 2): 9.0, (0, 1, 2): 9.0}
    >>> merged_units([(0,), (1,), (2,)], [set(), {2}, set()], [{2}, {2}, {0, 1}], costs.__getitem__)
    (5.0, ((1,), (0, 2)))
    """
    costs = {group: cost(group) for group in start}
    home = dict(sorted((unit, group) for group in costs for unit in group))
    after = _groups_after(readers, home)
    far = list[tuple[frozenset[int], frozenset[int]]]()
    pairs = {(home[unit], home[other]) for unit, near in enumerate(links) for other in near}
    waiting = [_pair(costs, one, other) for one, other in pairs if one < other]
    heapify(waiting)
    while waiting:
        change, is_known, one, other = heappop(waiting)
        if not (one in costs and other in costs) or _lies_between(after, one, other):
            continue
        if any(_has_each(one, other, pair) for pair in far):
            continue
        apart, both = costs[one] + costs[other], tuple(sorted(one + other))
        if -change < LEAST_GAIN * apart:
            continue
        if not is_known:
            together = cost(both)
            far += [(frozenset(one), frozenset(other))] if FAR * apart < together < inf else []
            heappush(waiting, (together - apart, True, one, other))
            continue
        del costs[one], costs[other]
        costs[both] = apart + change
        for unit in both:
            home[unit] = both
        after = _groups_after(readers, home)
        for near in {home[unit] for member in both for unit in links[member]} - {both}:
            heappush(waiting, _pair(costs, *sorted((near, both))))
    return sum(costs.values()), tuple(topological_order(after, key=min))


def _has_each(one: UnitGroup, other: UnitGroup, pair: tuple[frozenset[int], frozenset[int]]) -> bool:
    """Return whether one of two regions has all units of the first group of a pair, and the other one those of the second."""
    first, second = pair
    return (first.issubset(one) and second.issubset(other)) or (first.issubset(other) and second.issubset(one))


def _pair(costs: Mapping[UnitGroup, float], one: UnitGroup, other: UnitGroup) -> tuple[float, bool, UnitGroup, UnitGroup]:
    """Return two regions with the change in cycles that is expected at best of them as one region, and that it is not known."""
    return -min(costs[one], costs[other]), False, one, other


def _groups_after(readers: Sequence[Set[int]], home: Mapping[int, UnitGroup]) -> dict[UnitGroup, set[UnitGroup]]:
    """Return for each region the regions that read its results."""
    after: dict[UnitGroup, set[UnitGroup]] = {group: set() for group in home.values()}
    for unit, group in home.items():
        after[group] |= {home[reader] for reader in readers[unit]} - {group}
    return after


def _lies_between(after: Mapping[UnitGroup, Set[UnitGroup]], one: UnitGroup, other: UnitGroup) -> bool:
    """Return whether a third region reads one of two regions and is needed, directly or through others, by the other one."""
    ways = ((one, other), (other, one))
    return any(end in distances({**after, start: after[start] - {end}}, start) for start, end in ways)
