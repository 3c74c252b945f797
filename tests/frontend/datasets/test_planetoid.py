"""Planetoid files: the published graphs, a small one made here, and files that are not what they claim."""

import os
import pickle
import sys
from collections import defaultdict
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from fuseflow.errors import DataError
from fuseflow.frontend.data import load_data

PUBLISHED = Path(__file__).parents[4] / "shared" / "data" / "planetoid"


@pytest.mark.skipif(not PUBLISHED.is_dir(), reason="needs the Planetoid raw files in ../shared/data/planetoid")
@pytest.mark.parametrize(
    ("name", "nodes", "edges", "features", "stored", "classes"),
    [("cora", 2708, 5278, 1433, 49216, 7), ("citeseer", 3327, 4552, 3703, 105165, 6)],
)
def test_published_graphs(name: str, nodes: int, edges: int, features: int, stored: int, classes: int) -> None:
    data = load_data(name, PUBLISHED)
    assert (data.nodes, data.classes) == (nodes, classes)
    assert data.adjacency._nnz() == 2 * edges + nodes
    assert tuple(data.features.shape) == (nodes, features)
    assert data.features._nnz() == stored
    assert set(data.features.values().tolist()) == {1.0}


def write_raw(folder: Path, name: str = "cora") -> None:
    """Five nodes: 0, 1, 2 known; test nodes 3 and 5; 4 is left out."""
    folder.mkdir(parents=True, exist_ok=True)
    known, test = np.array([[1, 0], [0, 1], [1, 1]]), np.array([[0, 1], [1, 0]])
    graph = defaultdict(list, {0: [1, 1, 0], 1: [0, 2], 2: [1, 5], 3: [], 5: [2]})
    parts: dict[str, Any] = {
        "x": sparse.csr_matrix(known[:2]),
        "tx": sparse.csr_matrix(test),
        "allx": sparse.csr_matrix(known),
        "y": np.eye(3, dtype=np.int32)[[0, 1]],
        "ty": np.eye(3, dtype=np.int32)[[2, 1]],
        "ally": np.eye(3, dtype=np.int32)[[0, 1, 2]],
        "graph": graph,
    }
    for part, value in parts.items():
        (folder / f"ind.{name}.{part}").write_bytes(pickle.dumps(value, protocol=4))
    (folder / f"ind.{name}.test.index").write_text("5\n3\n")


@pytest.mark.parametrize("place", ["", "raw", "Cora", "Cora/raw"])
def test_layouts_and_isolated_nodes(tmp_path: Path, place: str) -> None:
    write_raw(tmp_path / place)
    data = load_data("cora", tmp_path)
    assert data.nodes == 6
    assert data.features.to_dense().tolist() == [[1, 0], [0, 1], [1, 1], [1, 0], [0, 0], [0, 1]]
    assert data.labels.tolist() == [0, 1, 2, 1, 0, 2]
    pattern = data.adjacency.to_dense() != 0
    assert {(i, j) for i, j in pattern.nonzero().tolist() if i < j} == {(0, 1), (1, 2), (2, 5)}
    assert load_data("cora:nodes=2", tmp_path).nodes == 2


def test_pubmed_is_read_as_cora_is(tmp_path: Path) -> None:
    write_raw(tmp_path / "PubMed" / "raw", "pubmed")
    write_raw(tmp_path / "Cora" / "raw")
    data, cora = load_data("pubmed", tmp_path), load_data("cora", tmp_path)
    assert (data.edges != cora.edges).nnz == 0 and (data.inputs != cora.inputs).nnz == 0 and (data.labels == cora.labels).all()


class Evil:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, ("echo should never run",)


@pytest.mark.parametrize("value", [Evil(), Path("x"), b"".__class__, sparse.coo_matrix(np.eye(2))])
def test_only_arrays_are_admitted(tmp_path: Path, value: object, capfd: pytest.CaptureFixture[str]) -> None:
    write_raw(tmp_path)
    (tmp_path / "ind.cora.allx").write_bytes(pickle.dumps(value))
    with pytest.raises(DataError, match=r"is not a Planetoid file.*is not a numpy or scipy array"):
        load_data("cora", tmp_path)
    assert capfd.readouterr().out == ""


def test_damaged_and_missing_files(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no Planetoid files of Cora in"):
        load_data("cora", tmp_path)
    write_raw(tmp_path)
    (tmp_path / "ind.cora.graph").write_bytes(b"\x80\x02nonsense")
    with pytest.raises(DataError, match=r"ind\.cora\.graph is not a Planetoid file"):
        load_data("cora", tmp_path)
    write_raw(tmp_path)
    (tmp_path / "ind.cora.ally").write_bytes(pickle.dumps(np.zeros((9, 3)), protocol=4))
    with pytest.raises(DataError, match="do not fit together"):
        load_data("cora", tmp_path)
    (tmp_path / "ind.cora.tx").unlink()
    with pytest.raises(DataError, match=r"cannot read .*ind\.cora\.tx`: No such file"):
        load_data("cora", tmp_path)


def test_without_directory_the_loader_downloads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Planetoid:
        """Stands for the loader of PyTorch Geometric: leaves the raw files in `raw_dir`."""

        def __init__(self, root: str, name: str) -> None:
            self.raw_dir = str(Path(root) / name / "raw")
            write_raw(Path(self.raw_dir))

    def offline(root: str, name: str) -> None:
        raise OSError("no route to host")

    loader = ModuleType("torch_geometric.datasets")
    monkeypatch.setitem(sys.modules, "torch_geometric", ModuleType("torch_geometric"))
    monkeypatch.setitem(sys.modules, "torch_geometric.datasets", loader)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(loader, "Planetoid", Planetoid, raising=False)
    assert load_data("cora").nodes == 6
    assert (tmp_path / "fuseflow" / "planetoid" / "Cora" / "raw").is_dir()
    monkeypatch.setattr(loader, "Planetoid", offline)
    with pytest.raises(DataError, match=r"could not download Cora: no route to host"):
        load_data("cora")


def test_without_directory_and_loader(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch_geometric", None)
    monkeypatch.setitem(sys.modules, "torch_geometric.datasets", None)
    with pytest.raises(DataError) as caught:
        load_data("cora")
    assert "--data-dir" in str(caught.value)


@pytest.mark.parametrize("indptr", [[0, 2, 1, 4], [1, 2, 3, 4]])
def test_positions_that_fall_are_refused(tmp_path: Path, indptr: list[int]) -> None:
    write_raw(tmp_path)
    matrix = sparse.csr_matrix(np.array([[1, 0], [0, 1], [1, 1]]))
    matrix.indptr = np.array(indptr, dtype=np.int32)
    (tmp_path / "ind.cora.allx").write_bytes(pickle.dumps(matrix, protocol=4))
    with pytest.raises(DataError, match=r"do not fit together: (the positions of a matrix|index pointer)"):
        load_data("cora", tmp_path)
