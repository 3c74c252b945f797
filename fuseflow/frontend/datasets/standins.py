"""Stand-ins for graphs whose files are not there: generated graphs with the published counts and a power-law degree distribution.

Beside nodes, entries, features and classes a stand-in has the published sum of deg^2: what full fusion costs is proportional to it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.optimize import brentq

from fuseflow.errors import DataError
from fuseflow.frontend.datasets.graph_data import GraphData, Matrix

Ints = npt.NDArray[np.int64]

DEGREE_EXPONENT = 2.5
"""Of the power law P(degree) ~ (degree + shift)^-EXPONENT, cut off at a largest degree; shift and cut-off follow from the counts."""
SQUARES_TOLERANCE = 0.01
"""How far the sum of squares may be from the published one, as a share."""
MAX_ROUNDS = 200
"""Times that the ends of loops and repeated edges are dealt again."""


@dataclass(frozen=True, slots=True)
class PublishedCounts:
    """The counts of a graph. `entries` counts stored entries of A; `neighbours` is the mean degree of a neighbour, sum of deg^2 over
    `entries` (in times out degree if the graph is directed); `density` that of the features, 1 where they are stored dense."""

    nodes: int
    entries: int
    neighbours: float
    features: int
    density: float
    classes: int
    directed: bool = False


PUBLISHED_COUNTS = {
    "cora": PublishedCounts(2_708, 10_556, 115_158 / 10_556, 1_433, 49_216 / (2_708 * 1_433), 7),
    "citeseer": PublishedCounts(3_327, 9_104, 62_940 / 9_104, 3_703, 105_165 / (3_327 * 3_703), 6),
    "cora_ml": PublishedCounts(2_995, 16_316, 17.9, 2_879, 0.0127, 7),
    "dblp": PublishedCounts(17_716, 105_734, 20.7, 1_639, 0.0127, 4),
    "collab": PublishedCounts(235_868, 2_358_104, 184, 128, 1, 2),
    "mag": PublishedCounts(736_389, 5_416_271, 268, 128, 1, 349, directed=True),
}
"""Cora and CiteSeer as counted from their files; the others as published, `neighbours` as published cycle counts imply it. The feature
densities of Cora_ML and DBLP are not published: that of Cora."""


def generate_standin(name: str, seed: int, scale: float = 1.0) -> GraphData:
    """The stand-in for a data set. `scale` multiplies nodes and edges; degrees stay as they are, as far as the nodes allow.

    Raises `DataError` where the graph is too small for its degrees.
    """
    known = PUBLISHED_COUNTS[name]
    nodes = max(2, round(known.nodes * scale))
    step = 1 if known.directed else 2
    entries = step * round(known.entries * scale / step)
    rng = np.random.default_rng(seed)
    squares = round(entries * known.neighbours)
    degrees = rng.permutation(_degrees(nodes, entries, squares))
    try:
        if abs(int((degrees**2).sum()) - squares) > SQUARES_TOLERANCE * squares:
            raise _Stuck
        rows, columns = _realize(degrees, known.directed, rng)
    except _Stuck:
        raise DataError(
            f"data `synthetic:{name}`: {nodes} nodes are too few for its degrees", hint="take a larger scale"
        ) from None
    edges = sparse.csr_array((np.ones(len(rows), dtype=np.float32), (rows, columns)), shape=(nodes, nodes))
    edges.sort_indices()
    return GraphData(edges, _features(nodes, known, rng), rng.integers(known.classes, size=nodes), known.classes)


def _features(nodes: int, known: PublishedCounts, rng: np.random.Generator) -> Matrix:
    """Words that occur, 1, or dense normal numbers."""
    if known.density == 1:
        return rng.standard_normal((nodes, known.features), dtype=np.float32)
    flat = np.unique(rng.integers(nodes * known.features, size=round(nodes * known.features * known.density)))
    ones = np.ones(len(flat), dtype=np.float32)
    return sparse.csr_array((ones, (flat // known.features, flat % known.features)), shape=(nodes, known.features))


def _degrees(nodes: int, total: int, squares: int) -> Ints:
    """Degrees of a power law, 1 or more, with the sum `total` and, as near as it goes, the sum of squares `squares`."""
    ranks = (np.arange(nodes) + 0.5) / nodes

    def degrees(cut: float) -> Ints:
        shift = _crossing(lambda shift: float(_quantiles(ranks, shift, cut).sum()) - total, 1e-6, 4.0 * total)
        return _with_sum(_quantiles(ranks, shift, cut), total)

    cut = _crossing(lambda cut: float((degrees(cut) ** 2).sum()) - squares, total / nodes + 1, float(nodes))
    return _with_squares(degrees(cut), squares)


def _quantiles(ranks: npt.NDArray[np.float64], shift: float, cut: float) -> npt.NDArray[np.float64]:
    """Of the density (x - 1 + shift)^-EXPONENT on 1..cut, descending: the inverse of its distribution function."""
    power = 1 - DEGREE_EXPONENT
    low, high = shift**power, (max(cut - 1, 0) + shift) ** power
    return np.asarray((high + ranks * (low - high)) ** (1 / power) - shift + 1)


def _crossing(rising: Callable[[float], float], low: float, high: float) -> float:
    """Where a function that rises from `low` to `high` is 0, else the end where it is nearest to it."""
    if rising(low) >= 0:
        return low
    if rising(high) <= 0:
        return high
    return math.exp(brentq(lambda x: rising(math.exp(x)), math.log(low), math.log(high), xtol=1e-6, rtol=1e-9))


def _with_sum(degrees: npt.NDArray[np.float64], total: int) -> Ints:
    """Whole numbers near the degrees with the sum `total`: the largest remainders are rounded up."""
    found: Ints = np.floor(degrees).astype(np.int64)
    each, more = divmod(total - int(found.sum()), len(found))
    found += each
    found[np.argsort(found - degrees, kind="stable")[:more]] += 1
    return found


def _with_squares(degrees: Ints, squares: int) -> Ints:
    """Move single edges from one node to another while that brings the sum of squares nearer to `squares`."""
    found = degrees.copy()
    for _ in range(1_000):
        error = squares - int((found**2).sum())
        apart = error // 2 - 1  # one edge from degree d to degree d + apart changes the sum by 2 (apart + 1)
        fewest = np.where(found > 0, found, len(found))
        if apart >= 0:
            giver = int(np.argmin(fewest))
            taker = int(np.argmin(np.abs(found - (found[giver] + apart))))
        else:
            taker = int(np.argmin(fewest))
            giver = int(np.argmin(np.abs(found - (found[taker] - apart))))
        change = 2 * int(found[taker] - found[giver] + 1)
        if taker == giver or abs(error - change) >= abs(error):
            break
        found[taker] += 1
        found[giver] -= 1
    return found


class _Stuck(Exception):
    """No way was found to join the ends of edges without loops and repeats."""


def _realize(degrees: Ints, directed: bool, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """The entries of a graph with these degrees, without loops and repeats: the ends of edges are joined at random, those of bad
    edges dealt again together with those of as many good ones."""
    nodes = len(degrees)
    if degrees.min() < 0 or degrees.max() >= nodes:
        raise _Stuck
    ends = rng.permutation(np.repeat(np.arange(nodes), degrees))
    if directed:
        rows, columns = np.repeat(np.arange(nodes), degrees), ends
    else:
        rows, columns = ends[0::2].copy(), ends[1::2].copy()
    for _ in range(MAX_ROUNDS):
        bad = _bad(rows, columns, nodes, directed)
        if not len(bad):
            return (rows, columns) if directed else (np.concatenate((rows, columns)), np.concatenate((columns, rows)))
        dealt = np.union1d(bad, rng.integers(len(rows), size=4 * len(bad)))
        if directed:
            columns[dealt] = rng.permutation(columns[dealt])
        else:
            mixed = rng.permutation(np.concatenate((rows[dealt], columns[dealt])))
            rows[dealt], columns[dealt] = mixed[: len(dealt)], mixed[len(dealt) :]
    raise _Stuck


def _bad(rows: Ints, columns: Ints, nodes: int, directed: bool) -> Ints:
    """Edges that are loops or repeat an earlier one."""
    low, high = (rows, columns) if directed else (np.minimum(rows, columns), np.maximum(rows, columns))
    keys = low * nodes + high
    first = np.zeros(len(keys), dtype=bool)
    first[np.unique(keys, return_index=True)[1]] = True
    return np.flatnonzero(~first | (rows == columns))
