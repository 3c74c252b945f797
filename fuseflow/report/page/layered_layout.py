"""A layered layout of an acyclic graph from top to bottom, with few crossings and short edges.

This is the method of Sugiyama, Tagawa and Toda (1981). A node stands below all it reads; an edge over several layers has a bend in each;
the nodes of a layer are sorted by the mean place of their neighbors, up and down a few times; then they move as near to these as the
order allows.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias, TypeVar

SWEEPS = 6
T = TypeVar("T", bound=Hashable)
Neighbors: TypeAlias = Mapping[T, Sequence[T]]


@dataclass(frozen=True, slots=True)
class LayeredLayout:
    """The places of nodes and edges. `at` has the middle of every node, in widths of a node, and its layer. `bends` has the same for the
    bends of every edge, layer by layer."""

    layers: int
    width: float
    at: Mapping[str, tuple[float, int]]
    bends: Mapping[tuple[str, str], tuple[tuple[float, int], ...]]


def layout_layers(nodes: Sequence[str], edges: Sequence[tuple[str, str]], bend: float = 0.25) -> LayeredLayout:
    """Return the layout of a graph whose `nodes` are in an order in which every edge leads forward. A bend is `bend` nodes wide."""
    if not nodes:
        return LayeredLayout(0, 0.0, {}, {})
    edges = list(dict.fromkeys(edges))
    layer = _layers(nodes, edges)
    layers = [layer[name] for name in nodes]  # of nodes and then of bends, by their numbers
    numbers = {name: k for k, name in enumerate(nodes)}
    chains: dict[tuple[str, str], list[int]] = {}
    steps: list[tuple[int, int]] = []
    for a, b in edges:
        between = range(layer[a] + 1, layer[b])
        chains[a, b] = list(range(len(layers), len(layers) + len(between)))
        layers += between
        steps += pairwise([numbers[a], *chains[a, b], numbers[b]])
    above, below = _neighbors(range(len(layers)), steps)
    rows: list[list[int]] = [[] for _ in range(max(layers) + 1)]
    for k, row in enumerate(layers):
        rows[row].append(k)
    _sort(rows, above, below)
    x = _spread(rows, above, below, [1.0 if k < len(nodes) else bend for k in range(len(layers))])
    left = min(x)
    at = {name: (x[k] - left + 0.5, layer[name]) for name, k in numbers.items()}
    bends = {edge: tuple((x[k] - left + 0.5, layers[k]) for k in chain) for edge, chain in chains.items()}
    return LayeredLayout(len(rows), max(x) - left + 1, at, bends)


def _neighbors(nodes: Iterable[T], edges: Iterable[tuple[T, T]]) -> tuple[Neighbors[T], Neighbors[T]]:
    """Return the neighbors of each node above it and below it."""
    above: dict[T, list[T]] = {node: [] for node in nodes}
    below: dict[T, list[T]] = {node: [] for node in above}
    for a, b in edges:
        above[b].append(a)
        below[a].append(b)
    return above, below


def _layers(nodes: Sequence[str], edges: Sequence[tuple[str, str]]) -> dict[str, int]:
    """Return the layer of each node: one below the lowest node that it reads, or right above its first reader if it reads nothing."""
    above, below = _neighbors(nodes, edges)
    layer: dict[str, int] = {}
    for name in nodes:
        layer[name] = max((layer[a] + 1 for a in above[name]), default=0)
    for name in reversed(nodes):
        if below[name] and not above[name]:
            layer[name] = min(layer[b] for b in below[name]) - 1
    return layer


def _sort(rows: list[list[int]], above: Neighbors[int], below: Neighbors[int]) -> None:
    """Sort every layer by the mean place of the neighbors in the layer before, down and up in turns."""
    place = [0.0] * len(above)

    def note(row: list[int]) -> None:
        for k, one in enumerate(row):
            place[one] = (k + 0.5) / len(row)

    for row in rows:
        note(row)
    for sweep in range(SWEEPS):
        near = below if sweep % 2 else above
        for row in reversed(rows) if sweep % 2 else rows:
            row.sort(key=lambda k: sum(place[n] for n in near[k]) / len(near[k]) if near[k] else place[k])
            note(row)


def _spread(rows: list[list[int]], above: Neighbors[int], below: Neighbors[int], widths: list[float]) -> list[float]:
    """Return the middle of every node, as near to the mean of its neighbors as the order of its layer and the widths allow."""
    x = [0.0] * len(widths)
    for row in rows:
        at = -sum(widths[k] for k in row) / 2
        for k in row:
            x[k] = at + widths[k] / 2
            at += widths[k]
    for sweep in range(SWEEPS):
        for row in reversed(rows) if sweep % 2 else rows:
            wanted = []
            for k in row:
                near = [*above[k], *below[k]]
                wanted.append(sum(x[n] for n in near) / len(near) if near else x[k])
            for k, middle in zip(row, separate(wanted, [widths[k] for k in row]), strict=True):
                x[k] = middle
    return x


def separate(wanted: Sequence[float], widths: Sequence[float]) -> list[float]:
    """Return the places nearest to `wanted` (by least squares) that have the same order and do not overlap. Blocks are pooled.

    >>> separate([0.0, 0.0, 9.0], [1, 1, 1])
    [-0.5, 0.5, 9.0]
    """
    offsets, at = list[float](), 0.0
    for k, width in enumerate(widths):
        at += (widths[k - 1] + width) / 2 if k else 0.0
        offsets.append(at)
    blocks: list[tuple[float, int]] = []  # sum, count
    for want, offset in zip(wanted, offsets, strict=True):
        total, count = want - offset, 1
        while blocks and blocks[-1][0] / blocks[-1][1] > total / count:
            before, many = blocks.pop()
            total, count = total + before, count + many
        blocks.append((total, count))
    means = [total / count for total, count in blocks for _ in range(count)]
    return [mean + offset for mean, offset in zip(means, offsets, strict=True)]
