"""Zachary's karate club (Zachary, 1977), with 34 members and 78 ties. Its labels are the four communities that PyTorch Geometric uses."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from fuseflow.frontend.datasets.graph_data import GraphData, undirected_adjacency

# Each line is a member and the members with a higher number that he met outside the club.
_TIES = """\
0: 1 2 3 4 5 6 7 8 10 11 12 13 17 19 21 31
1: 2 3 7 13 17 19 21 30
2: 3 7 8 9 13 27 28 32
3: 7 12 13
4: 6 10
5: 6 10 16
6: 16
8: 30 32 33
9: 33
13: 33
14: 32 33
15: 32 33
18: 32 33
19: 33
20: 32 33
22: 32 33
23: 25 27 29 32 33
24: 25 27 31
25: 31
26: 29 33
27: 33
28: 31 33
29: 32 33
30: 32 33
31: 32 33
32: 33
"""

_LABELS = (1, 1, 1, 1, 3, 3, 3, 1, 0, 1, 3, 1, 1, 1, 0, 0, 3, 1, 0, 1, 0, 1, 0, 0, 2, 2, 0, 0, 2, 0, 0, 2, 0, 0)


def karate_club() -> GraphData:
    """Return the graph of the club with one-hot features."""
    lines = (line.split(":") for line in _TIES.splitlines())
    rows, columns = zip(*((int(n), int(m)) for n, members in lines for m in members.split()), strict=True)
    nodes = len(_LABELS)
    features = sparse.csr_array(sparse.eye_array(nodes, dtype=np.float32, format="csr"))
    return GraphData(undirected_adjacency(nodes, rows, columns), features, np.array(_LABELS, dtype=np.int64), classes=4)
