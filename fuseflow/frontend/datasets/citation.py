"""Cora_ML and DBLP as CitationFull distributes them (Bojchevski and Günnemann, ICLR 2018), in one `.npz` file of CSR arrays each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from fuseflow.errors import DataError
from fuseflow.frontend.datasets.files import find_folder, open_archive
from fuseflow.frontend.datasets.graph_data import GraphData, undirected_adjacency

TITLES = {"cora_ml": "Cora_ML", "dblp": "DBLP"}
"""The graphs of this distribution, by the names that specs use."""
_SOURCE = "https://github.com/abojchevski/graph2gauss/tree/master/data"


def read_citation(name: str, data_dir: Path | None) -> GraphData:
    """Read `cora_ml` or `dblp` as an undirected graph without self loops. Features that occur are 1, as in the common loaders. Raise
    `DataError`."""
    folder, file = locate(name, data_dir), f"{name}.npz"
    with open_archive(folder / file) as arrays:
        try:
            edges, features = _csr(arrays, "adj"), _csr(arrays, "attr")
            labels = np.asarray(arrays["labels"]).astype(np.int64)
        except (KeyError, TypeError, ValueError) as error:
            reason = f"it holds no array {error}" if isinstance(error, KeyError) else str(error)
            raise DataError(f"{folder / file} is not {TITLES[name]}: {reason}", hint=f"fetch it again from {_SOURCE}") from error
    nodes = edges.shape[0]
    if edges.shape != (nodes, nodes) or features.shape[0] != nodes or labels.shape != (nodes,) or labels.min(initial=0) < 0:
        sizes = f"edges {list(edges.shape)}, features {list(features.shape)}, labels {list(labels.shape)}"
        raise DataError(f"{folder / file}: the arrays do not fit together: {sizes}")
    entries = edges.tocoo()
    present = sparse.csr_array(features > 0).astype(np.float32)
    return GraphData(undirected_adjacency(nodes, entries.row, entries.col), present, labels, int(labels.max(initial=-1)) + 1)


def locate(name: str, data_dir: Path | None) -> Path:
    """Return the directory in `data_dir` that has the file of a graph. Raise `DataError` if there is none."""
    places = [f"{TITLES[name]}/raw", TITLES[name], f"{name}/raw", name, "raw", "."]
    return find_folder(TITLES[name], data_dir, places, [f"{name}.npz"], _SOURCE)


def _csr(arrays: Any, part: str) -> sparse.csr_array:
    shape = tuple(int(n) for n in arrays[f"{part}_shape"])
    if len(shape) != 2:
        raise ValueError(f"`{part}_shape` has {len(shape)} elements")
    matrix = sparse.csr_array((arrays[f"{part}_data"], arrays[f"{part}_indices"], arrays[f"{part}_indptr"]), shape=shape)
    matrix.check_format(full_check=True)
    return matrix
