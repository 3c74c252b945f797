"""Cora and CiteSeer in the Planetoid distribution (Yang, Cohen and Salakhutdinov, ICML 2016).

The raw files are Python 2 pickles. A pickle can run any code, so the unpickler here admits only the classes that such a file needs.
These are scipy's CSR matrix, NumPy arrays, lists and the dictionary of the graph.
"""

from __future__ import annotations

import os
import pickle
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from fuseflow.errors import DataError
from fuseflow.frontend.datasets.graph_data import GraphData, undirected_adjacency

TITLES = {"cora": "Cora", "citeseer": "CiteSeer"}
"""The graphs of this distribution, by the names that specs use."""
_PARTS = ("x", "tx", "allx", "y", "ty", "ally", "graph")


class _PickledMatrix:
    """A stand-in for scipy's CSR matrix during unpickling, which keeps the attributes that were saved."""

    state: dict[str, Any]

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.state = state

    def csr(self) -> sparse.csr_array:
        arrays = tuple(np.asarray(self.state[key]) for key in ("data", "indices", "indptr"))
        matrix = sparse.csr_array(arrays, shape=tuple(self.state["_shape"]))
        matrix.check_format(full_check=True)
        return matrix


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        match module, name:
            case ("scipy.sparse.csr" | "scipy.sparse._csr", "csr_matrix"):
                return _PickledMatrix
            case ("numpy.core.multiarray" | "numpy._core.multiarray", "_reconstruct"):
                return np._core.multiarray._reconstruct  # type: ignore[attr-defined]
            case "numpy", "ndarray" | "dtype":
                return getattr(np, name)
            case "collections", "defaultdict":
                return defaultdict
            case ("__builtin__" | "builtins", "list"):
                return list
        raise pickle.UnpicklingError(f"`{module}.{name}` is not a numpy or scipy array")


def read_planetoid(name: str, data_dir: Path | None) -> GraphData:
    """Read `cora` or `citeseer` from DIR/Cora/raw, DIR/raw or DIR itself. Without a directory, PyTorch Geometric downloads the files. Raise
    `DataError` for missing or damaged files."""
    folder = locate(name, data_dir) if data_dir is not None else _downloaded(name)
    parts = {part: _load(folder / f"ind.{name}.{part}") for part in _PARTS}
    try:
        return _assemble(parts, _test_index(folder / f"ind.{name}.test.index"))
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise DataError(f"the Planetoid files of {TITLES[name]} in {folder} do not fit together: {error}") from error


def _assemble(parts: dict[str, Any], test: np.ndarray[Any, np.dtype[np.int64]]) -> GraphData:
    """Return the graph of the parts. Training and validation nodes come first, then the test nodes at the places that the index file lists.

    A place that the index file leaves out is a node without features and neighbours. CiteSeer has 15 of them.
    """
    train_features, test_features = parts["allx"].csr(), parts["tx"].csr()
    nodes = max(train_features.shape[0], int(test.max()) + 1, max(parts["graph"]) + 1)
    onehot = np.zeros((nodes, parts["ally"].shape[1]), dtype=np.int64)
    onehot[: len(parts["ally"])] = parts["ally"]
    onehot[test] = parts["ty"]
    stacked = sparse.coo_array(sparse.vstack([train_features, test_features]))
    row_of = np.concatenate((np.arange(train_features.shape[0], dtype=np.int64), test))
    features = sparse.csr_array(
        (stacked.data.astype(np.float32), (row_of[stacked.row], stacked.col)), shape=(nodes, train_features.shape[1])
    )
    neighbours = parts["graph"]
    rows = np.repeat(list(neighbours), [len(adjacent) for adjacent in neighbours.values()])
    columns = np.concatenate([np.asarray(adjacent, dtype=np.int64) for adjacent in neighbours.values()])
    return GraphData(undirected_adjacency(nodes, rows, columns), features, onehot.argmax(axis=1), onehot.shape[1])


def _load(file: Path) -> Any:
    try:
        with file.open("rb") as stream:
            return _Unpickler(stream, encoding="latin1").load()
    except OSError as error:
        raise DataError(f"cannot read {file}: {error.strerror}") from error
    except Exception as error:  # a damaged pickle can fail in any way
        raise DataError(
            f"{file} is not a Planetoid file: {error}", hint="fetch it again from github.com/kimiyoung/planetoid"
        ) from error


def _test_index(file: Path) -> np.ndarray[Any, np.dtype[np.int64]]:
    try:
        return np.array(file.read_text().split(), dtype=np.int64)
    except OSError as error:
        raise DataError(f"cannot read {file}: {error.strerror}") from error
    except ValueError as error:
        raise DataError(f"{file} is not a list of node numbers: {error}") from error


def locate(name: str, data_dir: Path) -> Path:
    """Return the directory in `data_dir` that has the raw files of a graph. Raise `DataError` if there is none."""
    folders = [data_dir / TITLES[name] / "raw", data_dir / TITLES[name], data_dir / "raw", data_dir]
    for folder in folders:
        if (folder / f"ind.{name}.x").is_file():
            return folder
    raise DataError(
        f"no Planetoid files of {TITLES[name]} in {data_dir}",
        hint=f"put ind.{name}.x, .tx, .allx, .y, .ty, .ally, .graph and .test.index there or in {folders[0]}",
    )


def _downloaded(name: str) -> Path:
    """Return the folder of the raw files that PyTorch Geometric downloads into the user's cache directory. Raise `DataError` if it
    cannot."""
    try:
        from torch_geometric.datasets import Planetoid  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ImportError:
        raise DataError(
            f"data set `{name}` needs its raw files",
            hint="pass their directory with --data-dir, or install torch_geometric, which downloads them: pip install 'fuseflow[data]'",
        ) from None
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "fuseflow" / "planetoid"
    try:
        return Path(Planetoid(root=str(cache), name=TITLES[name]).raw_dir)
    except Exception as error:  # no network, no space, a changed server: the loader raises what it likes
        raise DataError(
            f"could not download {TITLES[name]}: {error}", hint="pass a directory with the raw files: --data-dir DIR"
        ) from error
