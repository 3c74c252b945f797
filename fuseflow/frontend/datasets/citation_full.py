"""Cora_ML and DBLP as CitationFull distributes them (Bojchevski and Günnemann, ICLR 2018), in one `.npz` file of CSR arrays each."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy import sparse

from fuseflow.errors import DataError, FileError
from fuseflow.frontend.datasets.files import RawFiles, find_folder, open_archive
from fuseflow.frontend.datasets.graph_data import GraphData, undirected_adjacency
from fuseflow.tensors.npy_files import read_named_csr

TITLES = {"cora_ml": "Cora_ML", "dblp": "DBLP"}
"""The graphs of this distribution, by the names that specs use."""
_MOST_CLASSES = 1 << 31
_SOURCE = "https://github.com/abojchevski/graph2gauss/tree/master/data"
_AGAIN = f"fetch it again from {_SOURCE}"


def read_citation(name: str, data_dir: Path | None) -> GraphData:
    """Read `cora_ml` or `dblp` as an undirected graph without self loops. Features that occur are 1, as in the common loaders. Raise
    `DataError`."""
    folder, file = find_folder(raw_files(name), data_dir), f"{name}.npz"
    with open_archive(folder / file) as arrays:
        try:
            edges, features = (read_named_csr(folder / file, arrays, part) for part in ("adj", "attr"))
            labels = arrays["labels"]
        except FileError as error:
            raise DataError(f"{folder / file} is not {TITLES[name]}: {error.message}", hint=_AGAIN) from error
    nodes = edges.shape[0]
    is_whole = edges.shape == (nodes, nodes) and features.shape[0] == nodes and labels.shape == (nodes,)
    if not is_whole or labels.dtype.kind not in "iu" or not 0 <= labels.min(initial=0) <= labels.max(initial=0) < _MOST_CLASSES:
        sizes = f"edges {list(edges.shape)}, features {list(features.shape)}, labels {list(labels.shape)} of type {labels.dtype}"
        raise DataError(f"{folder / file} is not {TITLES[name]}: the arrays do not fit together: {sizes}", hint=_AGAIN)
    present = sparse.csr_array(features > 0).astype(np.float32)
    classes = int(labels.max(initial=-1)) + 1
    return GraphData(undirected_adjacency(nodes, *edges.coords), present, labels.astype(np.int64), classes)


def raw_files(name: str) -> RawFiles:
    """Return what a graph of `TITLES` is read from."""
    places = (f"{TITLES[name]}/raw", TITLES[name], f"{name}/raw", name, "raw", ".")
    return RawFiles(TITLES[name], places, (f"{name}.npz",), _SOURCE)
