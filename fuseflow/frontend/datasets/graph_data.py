"""Graphs with features and labels as arrays, and functions that data sets share: adjacencies of edge lists, normalization, and PyTorch's
tensors of matrices."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse

if TYPE_CHECKING:
    import torch

Matrix: TypeAlias = sparse.csr_array | npt.NDArray[np.float32]
"""A matrix that is sparse or dense, as the data set is distributed."""
MOST_CLASSES = 1 << 20
"""The most classes that labels in a user's files may have: one line must not fill the memory."""


@dataclass(frozen=True, slots=True)
class GraphData:
    """A graph with features and labels. `edges` is an adjacency in f32, of zeros and ones unless weights are asked for, and symmetric
    unless the data set is directed. `features` is [nodes, features], `labels` is [nodes], and `classes` is the number of classes.
    `training` are the nodes of the training split, or None for a data set without one."""

    edges: sparse.csr_array
    features: Matrix
    labels: npt.NDArray[np.int64]
    classes: int
    training: npt.NDArray[np.int64] | None = None

    @property
    def nodes(self) -> int:
        """The number of nodes."""
        return int(self.edges.shape[0])

    def first(self, nodes: int) -> GraphData:
        """Return the subgraph that the first nodes induce."""
        training = None if self.training is None else self.training[self.training < nodes]
        return GraphData(self.edges[:nodes, :nodes].tocsr(), self.features[:nodes], self.labels[:nodes], self.classes, training)


def undirected_adjacency(nodes: int, rows: npt.ArrayLike, columns: npt.ArrayLike) -> sparse.csr_array:
    """Return the symmetric 0/1 adjacency of a list of edges, without duplicates and self loops.

    >>> undirected_adjacency(3, [0, 0, 1], [1, 1, 1]).toarray().tolist()
    [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    """
    return adjacency_of(nodes, rows, columns, mirrored=True)


def adjacency_of(nodes: int, rows: npt.ArrayLike, columns: npt.ArrayLike, *, mirrored: bool) -> sparse.csr_array:
    """Return the 0/1 adjacency of a list of edges from row to column, and if it is `mirrored`, also from column to row, without duplicates
    and self loops."""
    row, column = np.asarray(rows, dtype=np.int64), np.asarray(columns, dtype=np.int64)
    no_loop = row != column
    row, column = row[no_loop], column[no_loop]
    keys = row * nodes + column
    keys = np.unique(np.concatenate((keys, column * nodes + row)) if mirrored else keys)
    row, column = keys // max(nodes, 1), keys % max(nodes, 1)
    return sparse.csr_array((np.ones(len(keys), dtype=np.float32), (row, column)), shape=(nodes, nodes))


def normalize_adjacency(edges: sparse.csr_array) -> sparse.csr_array:
    """Return D^-1/2 (A + I) D^-1/2 in f32, where D is the row sums of A + I (Kipf and Welling, 2017)."""
    with_loops = (edges.astype(np.float64) + sparse.eye_array(edges.shape[0], format="csr")).tocoo()
    scale = 1.0 / np.sqrt(np.bincount(with_loops.row, weights=with_loops.data, minlength=edges.shape[0]))
    values = (scale[with_loops.row] * with_loops.data * scale[with_loops.col]).astype(np.float32)
    result = sparse.csr_array((values, (with_loops.row, with_loops.col)), shape=edges.shape)
    result.sort_indices()
    return result


def torch_matrix(matrix: Matrix) -> torch.Tensor:
    """Return a matrix as a PyTorch tensor in f32, in CSR layout or dense as the matrix is."""
    import torch

    if not isinstance(matrix, sparse.csr_array):
        return torch.from_numpy(np.ascontiguousarray(matrix, dtype=np.float32))

    starts, columns = (torch.from_numpy(part.astype(np.int64)) for part in (matrix.indptr, matrix.indices))
    values, shape = torch.from_numpy(matrix.data), matrix.shape
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # PyTorch warns that its support of CSR is in beta state.
        return torch.sparse_csr_tensor(starts, columns, values, size=shape, dtype=torch.float32, check_invariants=False)
