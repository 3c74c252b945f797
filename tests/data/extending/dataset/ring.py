"""A ring: every node has an edge to the next one and a feature of its own."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from fuseflow.frontend.datasets.graph_data import GraphData, undirected_adjacency


def ring(nodes: int) -> GraphData:
    nodes_in_order = np.arange(nodes)
    features = sparse.eye_array(nodes, dtype=np.float32, format="csr")
    return GraphData(undirected_adjacency(nodes, nodes_in_order, (nodes_in_order + 1) % nodes), features, nodes_in_order % 2, classes=2)
