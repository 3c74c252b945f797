"""Random graphs, whose edges and sparse features are drawn uniformly."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from fuseflow.frontend.datasets.graph_data import GraphData, undirected_adjacency

_CHUNK = 1 << 22


def random_graph(nodes: int, degree: float, features: int, density: float, classes: int, seed: int) -> GraphData:
    """Return a graph with `nodes * degree / 2` distinct undirected edges, or fewer if the graph is complete before. A feature is
    nonzero with the probability `density`, and then uniform in (0, 1]."""
    rng = np.random.default_rng(seed)
    pairs = _distinct_pairs(nodes, min(round(nodes * degree / 2), nodes * (nodes - 1) // 2), rng)
    rows = pairs // max(nodes, 1)
    edges = undirected_adjacency(nodes, rows, pairs % max(nodes, 1))
    return GraphData(edges, random_features(nodes, features, density, rng), rng.integers(classes, size=nodes), classes)


def _distinct_pairs(nodes: int, count: int, rng: np.random.Generator) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return `count` distinct pairs of nodes low < high, each as the number low * nodes + high."""
    if 4 * count > nodes * (nodes - 1) // 2:  # Where many of all pairs are wanted, choose among all.
        low, high = np.triu_indices(nodes, k=1)
        return rng.permutation(low * nodes + high)[:count]
    pairs = np.zeros(0, dtype=np.int64)
    while len(pairs) < count:
        ends = np.sort(rng.integers(nodes, size=(2, 2 * (count - len(pairs)) + 8)), axis=0)
        new_pairs = (ends[0] * nodes + ends[1])[ends[0] != ends[1]]
        merged = np.concatenate((pairs, new_pairs))
        pairs = merged[
            np.sort(np.unique(merged, return_index=True)[1])
        ]  # Pairs stay in the order of drawing, so that cutting is unbiased.
    return pairs[:count]


def random_features(nodes: int, features: int, density: float, rng: np.random.Generator) -> sparse.csr_array:
    """Return random features [nodes, features] in CSR. They are drawn some rows at a time: neither the dense matrix nor the 64-bit
    numbers of all places ever exist as a whole."""
    step = max(1, _CHUNK // max(features, 1))
    index = np.int32 if nodes * features < 1 << 31 else np.int64  # as scipy has them
    counts, columns = [np.zeros(1, dtype=np.int64)], [np.zeros(0, dtype=index)]
    for start in range(0, nodes, step):
        hits = rng.random((min(step, nodes - start), features)) < density
        counts.append(np.count_nonzero(hits, axis=1))
        columns.append(np.nonzero(hits)[1].astype(index))
    places = np.concatenate(columns)
    del columns
    values = np.empty(len(places), dtype=np.float32)
    for start in range(0, len(values), _CHUNK):
        part = values[start : start + _CHUNK]
        part[:] = 1.0 - rng.random(len(part))
    return sparse.csr_array((values, places, np.cumsum(np.concatenate(counts)).astype(index)), shape=(nodes, features))
