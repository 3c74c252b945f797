"""Graphs with features and labels as arrays, and functions that data sets share: adjacencies of edge lists, subgraphs and normalization."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse

Matrix: TypeAlias = sparse.csr_array | npt.NDArray[np.float32]
"""A matrix that is sparse or dense, as the data set is distributed."""
MOST_CLASSES = 1 << 20
"""The most classes that labels in a user's files may have: one line must not fill the memory."""


@dataclass(frozen=True, slots=True)
class GraphData:
    """A graph with features and labels. `edges` is an adjacency in f32, of zeros and ones unless weights are asked for, and symmetric
    unless the data set is directed. `features` is [nodes, features], `labels` is [nodes], and `classes` is the number of classes."""

    edges: sparse.csr_array
    features: Matrix
    labels: npt.NDArray[np.int64]
    classes: int

    @property
    def nodes(self) -> int:
        """The number of nodes."""
        return int(self.edges.shape[0])

    def first(self, nodes: int) -> GraphData:
        """Return the subgraph that the first nodes induce."""
        return GraphData(self.edges[:nodes, :nodes].tocsr(), self.features[:nodes], self.labels[:nodes], self.classes)


def undirected_adjacency(nodes: int, rows: npt.ArrayLike, columns: npt.ArrayLike) -> sparse.csr_array:
    """Return the symmetric 0/1 adjacency of a list of edges, without duplicates and self loops.

    >>> undirected_adjacency(3, [0, 0, 1], [1, 1, 1]).toarray().tolist()
    [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    """
    row, column = _without_loops(rows, columns)
    return _adjacency_of_keys(nodes, np.concatenate((row * nodes + column, column * nodes + row)))


def directed_adjacency(nodes: int, rows: npt.ArrayLike, columns: npt.ArrayLike) -> sparse.csr_array:
    """Return the 0/1 adjacency of a list of edges from row to column, without duplicates and self loops."""
    row, column = _without_loops(rows, columns)
    return _adjacency_of_keys(nodes, row * nodes + column)


def _without_loops(rows: npt.ArrayLike, columns: npt.ArrayLike) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    row, column = np.asarray(rows, dtype=np.int64), np.asarray(columns, dtype=np.int64)
    no_loop = row != column
    return row[no_loop], column[no_loop]


def _adjacency_of_keys(nodes: int, keys: npt.NDArray[np.int64]) -> sparse.csr_array:
    """Return the adjacency of edges, given as numbers row * nodes + column, `keys`."""
    unique_keys = np.unique(keys)
    row, column = unique_keys // max(nodes, 1), unique_keys % max(nodes, 1)
    return sparse.csr_array((np.ones(len(unique_keys), dtype=np.float32), (row, column)), shape=(nodes, nodes))


def normalize_adjacency(edges: sparse.csr_array) -> sparse.csr_array:
    """Return D^-1/2 (A + I) D^-1/2 in f32, where D is the row sums of A + I (Kipf and Welling, 2017)."""
    with_loops = (edges.astype(np.float64) + sparse.eye_array(edges.shape[0], format="csr")).tocoo()
    scale = 1.0 / np.sqrt(np.bincount(with_loops.row, weights=with_loops.data, minlength=edges.shape[0]))
    values = (scale[with_loops.row] * with_loops.data * scale[with_loops.col]).astype(np.float32)
    result = sparse.csr_array((values, (with_loops.row, with_loops.col)), shape=edges.shape)
    result.sort_indices()
    return result
