"""Stand-ins for graphs whose files are not available: generated graphs with the published counts and a power-law degree distribution.

A stand-in has the published numbers of nodes, entries, features and classes. Where it is published, it also has the sum of deg^2, because
the cost of full fusion is proportional to that sum. Elsewhere its largest degree is the square root of the number of entries.

That is the structural cut-off of Boguna, Pastor-Satorras and Vespignani, "Cut-offs and finite size effects in scale-free networks"
(European Physical Journal B 38, 2004): a random graph without repeated edges has no nodes of a larger degree, unless hubs avoid each other.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import sparse

from fuseflow.errors import DataError
from fuseflow.frontend.datasets.graph_data import GraphData, Matrix

Ints = npt.NDArray[np.int64]

DEGREE_EXPONENT = 2.5
"""The exponent of the power law P(degree) ~ (degree + shift)^-exponent, which is cut off at a largest degree. Shift and cut-off follow
from the counts."""
SQUARES_TOLERANCE = 0.01
"""The relative error that the sum of squared degrees may have."""
MAX_ROUNDS = 200
"""The number of times that the ends of loops and repeated edges are dealt again."""


@dataclass(frozen=True, slots=True)
class PublishedCounts:
    """The published counts of a graph.

    `entries` is the number of stored entries of the adjacency. `neighbours` is the mean degree of a neighbour, which is the sum of
    deg^2 divided by `entries`, or None if it is not published. `density` is the density of the features, or 1 if they are dense. The in
    and out degrees of a `directed` graph are independent of each other.
    """

    nodes: int
    entries: int
    neighbours: float | None
    features: int
    density: float
    classes: int
    directed: bool = False


PUBLISHED_COUNTS = {
    "cora": PublishedCounts(2_708, 10_556, 115_158 / 10_556, 1_433, 49_216 / (2_708 * 1_433), 7),
    "citeseer": PublishedCounts(3_327, 9_104, 62_940 / 9_104, 3_703, 105_165 / (3_327 * 3_703), 6),
    "cora_ml": PublishedCounts(2_995, 16_316, 17.9, 2_879, 0.0127, 7),
    "dblp": PublishedCounts(17_716, 105_734, 20.7, 1_639, 0.0127, 4),
    "collab": PublishedCounts(235_868, 2_358_104, None, 128, 1, 2),
    "mag": PublishedCounts(736_389, 5_416_271, None, 128, 1, 349, directed=True),
}
"""The counts of each graph. The counts of Cora and CiteSeer are counted from their files, and the others are published. For Cora_ML and
DBLP, `neighbours` follows from published cycle counts, and the density of the features, which is not published, is the one of Cora.

Nodes, edges, features and classes of OGB-Collab and OGB-MAG are from Hu et al., "Open Graph Benchmark: Datasets for Machine
Learning on Graphs" (NeurIPS 2020). That paper has no largest degree and no second moment of the degrees, so `neighbours` is None.
Clustering and diameter are unlike a random graph's, and no stand-in has them. The published cycles of full fusion on Collab say
nothing about its degrees: they are the square of the number of nodes."""


def generate_standin(name: str, seed: int, scale: float = 1.0) -> GraphData:
    """Return the stand-in for a data set. `scale` multiplies nodes and edges; degrees stay the same as far as the number of nodes allows.

    Raise `DataError` where the graph is too small for its degrees.
    """
    counts = PUBLISHED_COUNTS[name]
    nodes = max(2, round(counts.nodes * scale))
    step = 1 if counts.directed else 2
    entries = step * round(counts.entries * scale / step)
    rng = np.random.default_rng(seed)
    try:
        degrees = rng.permutation(_degrees(nodes, entries, counts.neighbours))
        rows, columns = _realize(degrees, counts.directed, rng)
    except _UnrealizableError:
        hint = "take a larger scale"
        raise DataError(f"data `synthetic:{name}`: {nodes} nodes are too few for its degrees", hint=hint) from None
    edges = sparse.csr_array((np.ones(len(rows), dtype=np.float32), (rows, columns)), shape=(nodes, nodes))
    edges.sort_indices()
    return GraphData(edges, _features(nodes, counts, rng), rng.integers(counts.classes, size=nodes), counts.classes)


def _features(nodes: int, counts: PublishedCounts, rng: np.random.Generator) -> Matrix:
    """Return features that are ones at random places, or normal numbers if the features are dense."""
    if counts.density == 1:
        return rng.standard_normal((nodes, counts.features), dtype=np.float32)
    flat = np.unique(rng.integers(nodes * counts.features, size=round(nodes * counts.features * counts.density)))
    ones = np.ones(len(flat), dtype=np.float32)
    return sparse.csr_array((ones, (flat // counts.features, flat % counts.features)), shape=(nodes, counts.features))


def _degrees(nodes: int, total: int, neighbours: float | None) -> Ints:
    """Return degrees of a power law, each 1 or more, whose sum is `total`. Their sum of squares is `total` times `neighbours`. If that is
    None, they are cut off at the square root of `total`. Raise `_UnrealizableError` if there are too few nodes for the sum of squares."""
    if neighbours is None:
        return _power_law(nodes, total, max(math.sqrt(total), total / nodes + 1))
    squares = round(total * neighbours)

    def excess(cut: float) -> float:
        return float((_power_law(nodes, total, cut) ** 2).sum()) - squares

    degrees = _with_squares(_power_law(nodes, total, _crossing(excess, total / nodes + 1, float(nodes))), squares)
    if abs(int((degrees**2).sum()) - squares) > SQUARES_TOLERANCE * squares:
        raise _UnrealizableError
    return degrees


def _power_law(nodes: int, total: int, cut: float) -> Ints:
    """Return degrees of a power law up to `cut`, each 1 or more, whose sum is `total`."""
    ranks = (np.arange(nodes) + 0.5) / nodes
    shift = _crossing(lambda shift: float(_quantiles(ranks, shift, cut).sum()) - total, 1e-6, 4.0 * total)
    return _with_sum(_quantiles(ranks, shift, cut), total)


def _quantiles(ranks: npt.NDArray[np.float64], shift: float, cut: float) -> npt.NDArray[np.float64]:
    """Return the quantiles, at `ranks` from 0 to 1, of the density (x - 1 + shift)^-exponent on 1..cut in descending order, by
    the inverse of its distribution function."""
    power = 1 - DEGREE_EXPONENT
    low, high = shift**power, (max(cut - 1, 0) + shift) ** power
    return np.asarray((high + ranks * (low - high)) ** (1 / power) - shift + 1)


def _crossing(rising: Callable[[float], float], low: float, high: float) -> float:
    """Return where a function that rises between `low` and `high` is 0, or else the end where it is nearest to 0."""
    if rising(low) >= 0:
        return low
    if rising(high) <= 0:
        return high
    from scipy.optimize import brentq  # loads half of scipy, and only stand-ins need it

    return math.exp(brentq(lambda x: rising(math.exp(x)), math.log(low), math.log(high), xtol=1e-6, rtol=1e-9))


def _with_sum(degrees: npt.NDArray[np.float64], total: int) -> Ints:
    """Round degrees to whole numbers with the sum `total`. The degrees with the largest remainders are rounded up."""
    rounded: Ints = np.floor(degrees).astype(np.int64)
    share, rest = divmod(total - int(rounded.sum()), len(rounded))
    rounded += share
    rounded[np.argsort(rounded - degrees, kind="stable")[:rest]] += 1
    return rounded


def _with_squares(degrees: Ints, squares: int) -> Ints:
    """Move single edges from one node to another while that brings the sum of squares nearer to `squares`."""
    adjusted = degrees.copy()
    for _ in range(1_000):
        error = squares - int((adjusted**2).sum())
        distance = error // 2 - 1  # one edge from degree d to degree d + distance changes the sum by 2 (distance + 1)
        fewest = np.where(adjusted > 0, adjusted, len(adjusted))
        if distance >= 0:
            giver = int(np.argmin(fewest))
            taker = int(np.argmin(np.abs(adjusted - (adjusted[giver] + distance))))
        else:
            taker = int(np.argmin(fewest))
            giver = int(np.argmin(np.abs(adjusted - (adjusted[taker] - distance))))
        change = 2 * int(adjusted[taker] - adjusted[giver] + 1)
        if taker == giver or abs(error - change) >= abs(error):
            break
        adjusted[taker] += 1
        adjusted[giver] -= 1
    return adjusted


class _UnrealizableError(Exception):
    """The degrees cannot be those of a graph without loops and repeated edges, or none was found."""


def _realize(degrees: Ints, directed: bool, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Return the entries of a graph with these degrees, without loops and repeated edges. The ends of edges are joined at random. In a
    directed graph these are the in degrees, and the out degrees are the same numbers dealt anew.

    The ends of bad edges are dealt again, together with the ends of up to four times as many random edges."""
    nodes = len(degrees)
    if degrees.min() < 0 or degrees.max() >= nodes:
        raise _UnrealizableError
    ends = rng.permutation(np.repeat(np.arange(nodes), degrees))
    if directed:
        rows, columns = np.repeat(np.arange(nodes), rng.permutation(degrees)), ends
    else:
        rows, columns = ends[0::2].copy(), ends[1::2].copy()
    for _ in range(MAX_ROUNDS):
        bad = _bad_edges(rows, columns, nodes, directed)
        if not len(bad):
            return (rows, columns) if directed else (np.concatenate((rows, columns)), np.concatenate((columns, rows)))
        dealt = np.union1d(bad, rng.integers(len(rows), size=4 * len(bad)))
        if directed:
            columns[dealt] = rng.permutation(columns[dealt])
        else:
            mixed = rng.permutation(np.concatenate((rows[dealt], columns[dealt])))
            rows[dealt], columns[dealt] = mixed[: len(dealt)], mixed[len(dealt) :]
    raise _UnrealizableError


def _bad_edges(rows: Ints, columns: Ints, nodes: int, directed: bool) -> Ints:
    """Return the positions of edges that are loops or repeat an earlier edge."""
    low, high = (rows, columns) if directed else (np.minimum(rows, columns), np.maximum(rows, columns))
    keys = low * nodes + high
    first = np.zeros(len(keys), dtype=bool)
    first[np.unique(keys, return_index=True)[1]] = True
    return np.flatnonzero(~first | (rows == columns))
