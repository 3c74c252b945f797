"""Zachary's karate club (Zachary, 1977), with 34 members and 78 ties. Its labels are the four communities that PyTorch Geometric uses."""

from __future__ import annotations

import networkx as nx
import numpy as np
from scipy import sparse

from fuseflow.frontend.datasets.graph_data import GraphData, undirected_adjacency

_LABELS = (1, 1, 1, 1, 3, 3, 3, 1, 0, 1, 3, 1, 1, 1, 0, 0, 3, 1, 0, 1, 0, 1, 0, 0, 2, 2, 0, 0, 2, 0, 0, 2, 0, 0)


def karate_club() -> GraphData:
    """Return the graph of the club with one-hot features. The first node of each class is its training split."""
    rows, columns = zip(*nx.karate_club_graph().edges, strict=True)
    nodes = len(_LABELS)
    features = sparse.csr_array(sparse.eye_array(nodes, dtype=np.float32, format="csr"))
    labels = np.array(_LABELS, dtype=np.int64)
    _, first = np.unique(labels, return_index=True)
    return GraphData(undirected_adjacency(nodes, rows, columns), features, labels, classes=4, training=np.sort(first))
