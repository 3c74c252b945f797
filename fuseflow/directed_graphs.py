"""Walks over directed graphs. A graph is a mapping from each of its nodes to the nodes that edges from it lead to."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from heapq import heapify, heappop, heappush
from typing import Any, TypeVar

T = TypeVar("T", bound=Hashable)


def topological_order(graph: Mapping[T, Iterable[T]], key: Callable[[T], Any] = lambda node: 0) -> Iterator[T]:
    """Yield every node behind all nodes that lead to it. Of the nodes that can be next, it is the one with the least key, and of those the
    first of the graph. Nodes of cycles, and those behind them, are left out.

    >>> "".join(topological_order({"c": "d", "d": "", "b": "d", "a": ""}, key=ord))
    'abcd'
    """
    waiting = dict.fromkeys(graph, 0)
    for node in graph:
        for after in graph[node]:
            waiting[after] += 1
    place = {node: n for n, node in enumerate(graph)}
    ready = [(key(node), place[node], node) for node in graph if not waiting[node]]
    heapify(ready)
    while ready:
        *_, node = heappop(ready)
        yield node
        for after in graph[node]:
            waiting[after] -= 1
            if not waiting[after]:
                heappush(ready, (key(after), place[after], after))


def distances(graph: Mapping[T, Iterable[T]], start: T) -> dict[T, int]:
    """Return the number of edges of a shortest way from a node to each node that it leads to, the nearest first.

    >>> distances({"a": "bc", "b": "d", "c": "d", "d": "a", "e": "a"}, "a")
    {'a': 0, 'b': 1, 'c': 1, 'd': 2}
    """
    found, reached = {start: 0}, [start]
    for node in reached:
        for after in graph[node]:
            if after not in found:
                found[after] = found[node] + 1
                reached.append(after)
    return found


def shortest_cycle(graph: Mapping[str, Iterable[str]]) -> list[str]:
    """Return the nodes of a shortest cycle, and of these the first by their names. It begins with the first name. Empty if there is none.

    >>> shortest_cycle({"a": "b", "b": "c", "c": "ad", "d": "c"})
    ['c', 'd']
    """
    before: Iterator[str] = topological_order(graph)
    behind = set(graph).difference(before)
    if not behind:
        return []
    rest = {node: [after for after in graph[node] if after in behind] for node in graph if node in behind}
    steps = {node: distances(rest, node) for node in rest}
    length = min(steps[after][node] + 1 for node in rest for after in rest[node] if node in steps[after])

    def closed(way: list[str]) -> Iterator[list[str]]:
        if len(way) == length and way[0] in rest[way[-1]]:
            yield way
        for after in rest[way[-1]]:
            if after > way[0] and steps[after].get(way[0]) == length - len(way):
                yield from closed([*way, after])

    return min((cycle for node in rest for cycle in closed([node])), key=sorted)
