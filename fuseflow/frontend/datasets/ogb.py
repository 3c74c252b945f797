"""Graphs from the raw files of the Open Graph Benchmark (Hu et al., NeurIPS 2020).

In `edge.csv.gz` each edge stands once. The edges of OGB-Collab (its training edges; repeated ones count once) and of
ogbn-products are read in both directions, as OGB's own loader does. Citations (ogbn-arxiv and ogbl-citation2) keep their
direction. The split files of a data set are not read, because a forward pass does not need them. From `ogbn-mag` come the papers
and the directed citations between them; other kinds of nodes are left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from fuseflow.errors import DataError
from fuseflow.frontend.datasets.files import RawFiles, find_folder, read_csv
from fuseflow.frontend.datasets.graph_data import MOST_CLASSES, GraphData, adjacency_of

_CITES = "relations/paper___cites___paper/edge.csv.gz"
_PAPERS = "node-feat/paper/node-feat.csv.gz"
_VENUES = "node-label/paper/node-label.csv.gz"
_EDGES, _FEATURES, _LABELS = "edge.csv.gz", "node-feat.csv.gz", "node-label.csv.gz"


@dataclass(frozen=True, slots=True)
class _Distribution:
    """Where a graph is: the folder as OGB calls it, the files in its `raw`, and the address of its archive. `mirrored` says whether an edge
    is read in both directions."""

    title: str
    folder: str
    files: tuple[str, ...]
    source: str
    mirrored: bool = False


_NODES, _LINKS = "http://snap.stanford.edu/ogb/data/nodeproppred", "http://snap.stanford.edu/ogb/data/linkproppred"
_DISTRIBUTIONS = {
    "collab": _Distribution("OGB-Collab", "ogbl_collab", (_EDGES, _FEATURES), f"{_LINKS}/collab.zip", True),
    "mag": _Distribution("OGB-MAG", "ogbn_mag", (_CITES, _PAPERS, _VENUES), f"{_NODES}/mag.zip"),
    "ogbn-arxiv": _Distribution("ogbn-arxiv", "ogbn_arxiv", (_EDGES, _FEATURES, _LABELS), f"{_NODES}/arxiv.zip"),
    "ogbn-products": _Distribution(
        "ogbn-products", "ogbn_products", (_EDGES, _FEATURES, _LABELS), f"{_NODES}/products.zip", True
    ),
    "ogbl-citation2": _Distribution("ogbl-citation2", "ogbl_citation2", (_EDGES, _FEATURES), f"{_LINKS}/citation-v2.zip"),
}
TITLES = {name: distribution.title for name, distribution in _DISTRIBUTIONS.items()}
"""The graphs of this distribution, by the names that specs use."""


def read_ogb(name: str, data_dir: Path | None) -> GraphData:
    """Read a graph of `TITLES`. Raise `DataError` for missing or damaged files."""
    folder, distribution = find_folder(raw_files(name), data_dir), _DISTRIBUTIONS[name]
    edge_file, feature_file, *label_files = distribution.files
    features = read_csv(folder / feature_file, None, np.float32)
    nodes = len(features)
    labels, classes = _labels(folder / label_files[0], nodes) if label_files else (np.zeros(nodes, dtype=np.int64), 2)
    edges = adjacency_of(nodes, *_edges(folder / edge_file, nodes), mirrored=distribution.mirrored)
    return GraphData(edges, features, labels, classes)


def raw_files(name: str) -> RawFiles:
    """Return what a graph of `TITLES` is read from."""
    distribution = _DISTRIBUTIONS[name]
    folder = distribution.folder
    short = name.partition("-")[2] or name
    places = (f"{folder}/raw", f"{folder.replace('_', '-')}/raw", f"{short}/raw", "raw", ".")
    return RawFiles(distribution.title, places, distribution.files, distribution.source)


def _labels(file: Path, nodes: int) -> tuple[npt.NDArray[np.int64], int]:
    """Return the label of each node, and how many classes there are."""
    labels = read_csv(file, 1, np.int64)[:, 0]
    if len(labels) != nodes:
        raise DataError(f"{file}: {nodes} nodes have features, {len(labels)} a label")
    if (wrong := (labels < 0) | (labels >= MOST_CLASSES)).any():
        row = int(np.argmax(wrong))
        raise DataError(f"{file}, line {row + 1}: a label is a whole number from 0 to {MOST_CLASSES - 1:,}, not {labels[row]}")
    return labels, int(labels.max(initial=-1)) + 1


def _edges(file: Path, nodes: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    edges = read_csv(file, 2, np.int64)
    outside = (edges < 0) | (edges >= nodes)
    if outside.any():
        line = int(np.argmax(outside.any(axis=1))) + 1
        raise DataError(f"{file}, line {line}: node {edges[outside][0]} is not one of the {nodes} nodes")
    return edges[:, 0], edges[:, 1]
