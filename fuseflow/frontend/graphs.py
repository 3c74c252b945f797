"""A graph with features and labels as scipy arrays, and what every data set needs: symmetric edges, the first nodes, normalization."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import sparse


@dataclass(frozen=True, slots=True)
class Graph:
    """An undirected graph without self loops: `edges` is symmetric with ones, `features` is [nodes, features]."""

    edges: sparse.csr_array
    features: sparse.csr_array
    labels: npt.NDArray[np.int64]
    classes: int

    @property
    def nodes(self) -> int:
        return int(self.edges.shape[0])

    def first(self, nodes: int) -> Graph:
        """The subgraph that the first nodes induce."""
        return Graph(self.edges[:nodes, :nodes].tocsr(), self.features[:nodes].tocsr(), self.labels[:nodes], self.classes)


def undirected(nodes: int, rows: npt.ArrayLike, columns: npt.ArrayLike) -> sparse.csr_array:
    """The symmetric 0/1 adjacency of a list of edges; duplicates and self loops are dropped.

    >>> undirected(3, [0, 0, 1], [1, 1, 1]).toarray().tolist()
    [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    """
    row, column = np.asarray(rows, dtype=np.int64), np.asarray(columns, dtype=np.int64)
    proper = row != column
    row, column = row[proper], column[proper]
    keys = np.unique(np.concatenate((row * nodes + column, column * nodes + row)))
    row, column = keys // max(nodes, 1), keys % max(nodes, 1)
    return sparse.csr_array((np.ones(len(keys), dtype=np.float32), (row, column)), shape=(nodes, nodes))


def normalized(edges: sparse.csr_array) -> sparse.csr_array:
    """D^-1/2 (A + I) D^-1/2 with D the degrees of A + I (Kipf and Welling, 2017), in f32."""
    looped = (edges.astype(np.float64) + sparse.eye_array(edges.shape[0], format="csr")).tocoo()
    scale = 1.0 / np.sqrt(np.bincount(looped.row, weights=looped.data, minlength=edges.shape[0]))
    values = (scale[looped.row] * looped.data * scale[looped.col]).astype(np.float32)
    result = sparse.csr_array((values, (looped.row, looped.col)), shape=edges.shape)
    result.sort_indices()
    return result
