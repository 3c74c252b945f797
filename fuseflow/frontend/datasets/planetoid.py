"""Cora, CiteSeer and PubMed in the Planetoid distribution (Yang, Cohen and Salakhutdinov, ICML 2016).

The raw files are Python 2 pickles of scipy's CSR matrices, NumPy arrays, and the dictionary of the graph. A pickle can run any code, so
`array_pickles` reads these.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from fuseflow.errors import DataError, FileError
from fuseflow.filesystem import read_bytes, read_text
from fuseflow.frontend.datasets.array_pickles import array_of, read_pickle
from fuseflow.frontend.datasets.files import RawFiles
from fuseflow.frontend.datasets.graph_data import GraphData, undirected_adjacency
from fuseflow.requirements import install_command

TITLES = {"cora": "Cora", "citeseer": "CiteSeer", "pubmed": "PubMed"}
"""The graphs of this distribution, by the names that specs use."""
_LABELLED = 20
"""The nodes of each class in the training split, which come first (Yang, Cohen and Salakhutdinov, 2016)."""
_MOST_NODES = 10
"""A graph may have this many times the nodes that have features: numbers that its files leave out are nodes, too."""
_PARTS = ("x", "tx", "allx", "y", "ty", "ally", "graph")


def read_planetoid(name: str, data_dir: Path | None) -> GraphData:
    """Read a graph of `TITLES` from DIR/Cora/raw, DIR/raw or DIR itself. Without a directory, PyTorch Geometric downloads the files. Raise
    `DataError` for missing or damaged files."""
    folder = locate(name, data_dir) if data_dir is not None else _downloaded(name)
    parts = {part: _load(folder / f"ind.{name}.{part}") for part in _PARTS}
    try:
        return _assemble(parts, _test_index(folder / f"ind.{name}.test.index"))
    except (AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError) as error:
        raise DataError(f"the Planetoid files of {TITLES[name]} in {folder} do not fit together: {error}") from error


def _assemble(parts: dict[str, Any], test: np.ndarray[Any, np.dtype[np.int64]]) -> GraphData:
    """Return the graph that the files hold. `parts` has their contents, and `test` the numbers of the test nodes. Training and
    validation nodes come first, then the test nodes at the places that the index file lists.

    A place that the index file leaves out is a node without features and neighbours. CiteSeer has 15 of them.
    """
    train_features, test_features = parts["allx"].csr(), parts["tx"].csr()
    neighbours = _neighbours(parts["graph"])
    nodes = max(train_features.shape[0], int(test.max()) + 1, max(neighbours) + 1)
    stored = train_features.shape[0] + test_features.shape[0]
    if nodes > _MOST_NODES * (stored + 1) or min(int(test.min()), *neighbours) < 0:
        raise ValueError(f"a node has the number {nodes - 1}, and {stored} have features")
    known, tested = array_of(parts["ally"], 2), array_of(parts["ty"], 2)
    onehot = np.zeros((nodes, known.shape[1]), dtype=np.int64)
    onehot[: len(known)] = known
    onehot[test] = tested
    stacked = sparse.coo_array(sparse.vstack([train_features, test_features]))
    row_of = np.concatenate((np.arange(train_features.shape[0], dtype=np.int64), test))
    entries = stacked.data.astype(np.float32), (row_of[stacked.row], stacked.col)
    features = sparse.csr_array(entries, shape=(nodes, train_features.shape[1]))
    rows = np.repeat(list(neighbours), [len(adjacent) for adjacent in neighbours.values()])
    columns = np.concatenate([np.asarray(adjacent, dtype=np.int64) for adjacent in neighbours.values()])
    labels, classes = onehot.argmax(axis=1), onehot.shape[1]
    training = np.arange(min(_LABELLED * classes, len(known)))
    return GraphData(undirected_adjacency(nodes, rows, columns), features, labels, classes, training)


def _neighbours(graph: Any) -> dict[int, list[int]]:
    """Return the neighbours of each node. Raise `ValueError` for a value that is no dictionary of lists of numbers."""
    whole = isinstance(graph, dict) and all(
        type(node) is int and isinstance(adjacent, list) and set(map(type, adjacent)) <= {int} for node, adjacent in graph.items()
    )
    if not whole or not graph:
        raise ValueError("the graph is no dictionary of lists of nodes")
    neighbours: dict[int, list[int]] = graph
    return neighbours


def _load(file: Path) -> Any:
    try:
        return read_pickle(read_bytes(file))
    except FileError as error:
        raise DataError(error.message) from error
    except Exception as error:  # a damaged pickle can fail in any way
        hint = "fetch it again from github.com/kimiyoung/planetoid"
        raise DataError(f"{file} is not a Planetoid file: {error}", hint=hint) from error


def _test_index(file: Path) -> np.ndarray[Any, np.dtype[np.int64]]:
    try:
        return np.array(read_text(file).split(), dtype=np.int64)
    except FileError as error:
        raise DataError(error.message) from error
    except (ValueError, OverflowError) as error:
        raise DataError(f"{file} is not a list of node numbers: {error}") from error


def raw_files(name: str) -> RawFiles:
    """Return what a graph of `TITLES` is read from."""
    files = tuple(f"ind.{name}.{part}" for part in (*_PARTS, "test.index"))
    return RawFiles(
        TITLES[name], (f"{TITLES[name]}/raw", TITLES[name], "raw", "."), files, "https://github.com/kimiyoung/planetoid"
    )


def download_folder() -> Path:
    """Return the folder into which PyTorch Geometric downloads graphs of this distribution."""
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "fuseflow" / "planetoid"


def locate(name: str, data_dir: Path) -> Path:
    """Return the directory in `data_dir` that has the raw files of a graph. Raise `DataError` if there is none."""
    folders = [data_dir / place for place in raw_files(name).places]
    for folder in folders:
        if (folder / f"ind.{name}.x").is_file():
            return folder
    hint = f"put ind.{name}.x, .tx, .allx, .y, .ty, .ally, .graph and .test.index there or in {folders[0]}"
    raise DataError(f"no Planetoid files of {TITLES[name]} in {data_dir}", hint=hint)


def _downloaded(name: str) -> Path:
    """Return the folder of the raw files that PyTorch Geometric downloads to the user's cache. Raise `DataError` if it cannot."""
    try:
        from torch_geometric.datasets import Planetoid  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ImportError:
        how = install_command("torch-geometric")
        hint = f"pass their directory with --data-dir, or install PyTorch Geometric, which downloads them: {how}"
        raise DataError(f"data set `{name}` needs its raw files", hint=hint) from None
    try:
        return Path(Planetoid(root=str(download_folder()), name=TITLES[name]).raw_dir)
    except Exception as error:  # no network, no space, a changed server: the loader raises anything
        hint = "pass a directory with the raw files: --data-dir DIR"
        raise DataError(f"could not download {TITLES[name]}: {error}", hint=hint) from error
