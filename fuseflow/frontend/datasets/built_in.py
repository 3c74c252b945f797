"""Data that need no files: random graphs and images, whose places and values are drawn uniformly; Zachary's karate club; and the attention
mask of BigBird (Zaheer et al., NeurIPS 2020), a window, global blocks and random blocks of a blocked matrix."""

from __future__ import annotations

import networkx as nx
import numpy as np
import numpy.typing as npt
from scipy import sparse

from fuseflow.errors import DataError
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


_LABELS = (1, 1, 1, 1, 3, 3, 3, 1, 0, 1, 3, 1, 1, 1, 0, 0, 3, 1, 0, 1, 0, 1, 0, 0, 2, 2, 0, 0, 2, 0, 0, 2, 0, 0)


def karate_club() -> GraphData:
    """Return the graph of the club with one-hot features. The first node of each class is its training split."""
    rows, columns = zip(*nx.karate_club_graph().edges, strict=True)
    nodes = len(_LABELS)
    features = sparse.csr_array(sparse.eye_array(nodes, dtype=np.float32, format="csr"))
    labels = np.array(_LABELS, dtype=np.int64)
    _, first = np.unique(labels, return_index=True)
    return GraphData(undirected_adjacency(nodes, rows, columns), features, labels, classes=4, training=np.sort(first))


RANDOM_BLOCKS = 2
"""The number of random blocks in each row of blocks. It is also the number of global rows and of global columns of blocks."""


def bigbird_blocks(length: int, block: int, seed: int = 0) -> npt.NDArray[np.bool_]:
    """Return which blocks of a `length` x `length` mask are set, as an array of truth values with one element for each block.

    By the published recipe these are two random blocks in each row of blocks, the blocks on the diagonal and beside it, and the first
    two rows and columns of blocks. NumPy's legacy generator draws the random blocks row by row, so that a seed gives the same mask as
    in other implementations. Raise `DataError` where whole blocks do not fill the mask.

    >>> [int(bigbird_blocks(1024, block).sum()) for block in (16, 32, 64)]
    [549, 268, 118]
    """
    if block < 1 or length < 1 or length % block:
        hint = "take a block size that divides the length"
        raise DataError(f"a mask of {length} positions has no blocks of {block}", hint=hint)
    count = length // block
    if count < RANDOM_BLOCKS:
        hint = f"take blocks of {length // RANDOM_BLOCKS}"
        raise DataError(f"a mask of {count} block needs {RANDOM_BLOCKS} random ones in a row", hint=hint)
    random = np.random.RandomState(seed)
    random_columns = np.stack([random.choice(count, RANDOM_BLOCKS, replace=False) for _ in range(count)])
    numbers = np.arange(count)
    blocks: npt.NDArray[np.bool_] = np.abs(numbers[:, None] - numbers) <= 1
    blocks[numbers[:, None], random_columns] = True
    blocks[:RANDOM_BLOCKS] = blocks[:, :RANDOM_BLOCKS] = True
    return blocks


def bigbird_mask(length: int, block: int, seed: int = 0) -> sparse.csr_array:
    """Return the attention mask as a 0/1 matrix [length, length] in f32.

    >>> [bigbird_mask(1024, block).nnz for block in (16, 32, 64)]
    [140544, 274432, 483328]
    """
    rows, columns = bigbird_blocks(length, block, seed).nonzero()
    within = np.arange(block)
    row = (rows[:, None, None] * block + within[:, None]).repeat(block, axis=2).ravel()
    column = (columns[:, None, None] * block + within).repeat(block, axis=1).ravel()
    mask = sparse.csr_array((np.ones(len(row), dtype=np.float32), (row, column)), shape=(length, length))
    mask.sort_indices()
    return mask


IMAGE_SIDES = {"imagenet": 224, "nih": 1024, "luna16": 512}
"""The side of the square images of ImageNet, NIH ChestX-ray14 and LUNA16, in pixels."""
DEFAULT_COUNT = 5
"""The number of images unless a spec names another."""
DEFAULT_DENSITY = 0.5
"""The density of images unless a spec names another."""


def sample_images(images: int, side: int, density: float, seed: int) -> sparse.csr_array:
    """Return random images as a matrix [images, side^2] in f32. A pixel is nonzero with the probability `density`, and then uniform in
    (0, 1]."""
    return random_features(images, side * side, density, np.random.default_rng(seed))
