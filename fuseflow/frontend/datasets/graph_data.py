"""A graph with features and labels as arrays, and what every data set needs: symmetric edges, the first nodes, normalization."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse

Matrix: TypeAlias = sparse.csr_array | npt.NDArray[np.float32]
"""Sparse or dense, as the data set is distributed."""


@dataclass(frozen=True, slots=True)
class GraphData:
    """A graph: `edges` is 0/1 in f32, symmetric unless the data set is directed, `features` is [nodes, features]."""

    edges: sparse.csr_array
    features: Matrix
    labels: npt.NDArray[np.int64]
    classes: int

    @property
    def nodes(self) -> int:
        return int(self.edges.shape[0])

    def first(self, nodes: int) -> GraphData:
        """The subgraph that the first nodes induce."""
        return GraphData(self.edges[:nodes, :nodes].tocsr(), self.features[:nodes], self.labels[:nodes], self.classes)


def undirected_adjacency(nodes: int, rows: npt.ArrayLike, columns: npt.ArrayLike) -> sparse.csr_array:
    """The symmetric 0/1 adjacency of a list of edges; duplicates and self loops are dropped.

    >>> undirected(3, [0, 0, 1], [1, 1, 1]).toarray().tolist()
    [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    """
    row, column = np.asarray(rows, dtype=np.int64), np.asarray(columns, dtype=np.int64)
    proper = row != column
    row, column = row[proper], column[proper]
    return _distinct(nodes, np.concatenate((row * nodes + column, column * nodes + row)))


def directed_adjacency(nodes: int, rows: npt.ArrayLike, columns: npt.ArrayLike) -> sparse.csr_array:
    """The 0/1 adjacency of a list of edges from row to column; duplicates are dropped."""
    return _distinct(nodes, np.asarray(rows, dtype=np.int64) * nodes + np.asarray(columns, dtype=np.int64))


def _distinct(nodes: int, keys: npt.NDArray[np.int64]) -> sparse.csr_array:
    """The adjacency of edges numbered row * nodes + column."""
    found = np.unique(keys)
    row, column = found // max(nodes, 1), found % max(nodes, 1)
    return sparse.csr_array((np.ones(len(found), dtype=np.float32), (row, column)), shape=(nodes, nodes))


def normalize_adjacency(edges: sparse.csr_array) -> sparse.csr_array:
    """D^-1/2 (A + I) D^-1/2 with D the row sums of A + I (Kipf and Welling, 2017), in f32."""
    looped = (edges.astype(np.float64) + sparse.eye_array(edges.shape[0], format="csr")).tocoo()
    scale = 1.0 / np.sqrt(np.bincount(looped.row, weights=looped.data, minlength=edges.shape[0]))
    values = (scale[looped.row] * looped.data * scale[looped.col]).astype(np.float32)
    result = sparse.csr_array((values, (looped.row, looped.col)), shape=edges.shape)
    result.sort_indices()
    return result
