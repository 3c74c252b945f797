"""OGB-Collab and OGB-MAG from the raw files of the Open Graph Benchmark (Hu et al., NeurIPS 2020).

In `ogbl-collab`, the file `edge.csv.gz` has each training edge once. Edges are read in both directions, and repeated collaborations
count once. The split files of the data set are pickles of validation and test edges. They are not read, because a forward pass does
not need them. From `ogbn-mag` come the papers and the directed citations between them; other kinds of nodes are left out.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from fuseflow.errors import DataError
from fuseflow.frontend.datasets.files import find_folder, read_csv
from fuseflow.frontend.datasets.graph_data import GraphData, directed_adjacency, undirected_adjacency

TITLES = {"collab": "OGB-Collab", "mag": "OGB-MAG"}
"""The graphs of this distribution, by the names that specs use."""
_CITES = "relations/paper___cites___paper/edge.csv.gz"
_PAPERS = "node-feat/paper/node-feat.csv.gz"
_VENUES = "node-label/paper/node-label.csv.gz"
_PLACES = {
    "collab": ("ogbl_collab/raw", "ogbl-collab/raw", "collab/raw", "raw", "."),
    "mag": ("ogbn_mag/raw", "ogbn-mag/raw", "mag/raw", "raw", "."),
}
_FILES = {"collab": ("edge.csv.gz", "node-feat.csv.gz"), "mag": (_CITES, _PAPERS, _VENUES)}
_SOURCES = {
    "collab": "http://snap.stanford.edu/ogb/data/linkproppred/collab.zip",
    "mag": "http://snap.stanford.edu/ogb/data/nodeproppred/mag.zip",
}


def read_ogb(name: str, data_dir: Path | None) -> GraphData:
    """Read `collab` or `mag`. Raise `DataError` for missing or damaged files."""
    return _collab(data_dir) if name == "collab" else _mag(data_dir)


def locate(name: str, data_dir: Path | None) -> Path:
    """Return the directory in `data_dir` that has the raw files of a graph. Raise `DataError` if there is none."""
    return find_folder(TITLES[name], data_dir, _PLACES[name], _FILES[name], _SOURCES[name])


def _collab(data_dir: Path | None) -> GraphData:
    folder = locate("collab", data_dir)
    features = read_csv(folder / "node-feat.csv.gz", None, np.float32)
    edges = _edges(folder / "edge.csv.gz", len(features))
    return GraphData(undirected_adjacency(len(features), *edges), features, np.zeros(len(features), dtype=np.int64), classes=2)


def _mag(data_dir: Path | None) -> GraphData:
    folder = locate("mag", data_dir)
    features = read_csv(folder / _PAPERS, None, np.float32)
    labels = read_csv(folder / _VENUES, 1, np.int64)[:, 0]
    if len(labels) != len(features):
        raise DataError(f"{folder}: {len(features)} papers have features, {len(labels)} a label")
    if labels.min(initial=0) < 0:
        raise DataError(f"{folder / _VENUES}: a label is negative")
    edges = _edges(folder / _CITES, len(features))
    return GraphData(directed_adjacency(len(features), *edges), features, labels, int(labels.max(initial=-1)) + 1)


def _edges(file: Path, nodes: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    edges = read_csv(file, 2, np.int64)
    outside = (edges < 0) | (edges >= nodes)
    if outside.any():
        raise DataError(f"{file}: node {edges[outside][0]} is not one of the {nodes} nodes")
    return edges[:, 0], edges[:, 1]
