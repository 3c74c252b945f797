"""Graphs from raw files, tiny ones in the published layouts; what is missing or damaged is named."""

import gzip
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fuseflow.errors import DataError
from fuseflow.frontend.data import has_files, load_data

RAW = Path(__file__).parents[2] / "data" / "datasets"


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    """A copy of the files, to damage."""
    return Path(shutil.copytree(RAW, tmp_path / "raw_files"))


def test_collab_is_read_in_both_directions_repeats_once() -> None:
    data = load_data("collab", RAW)
    assert (data.nodes, data.classes, data.edges.nnz) == (5, 2, 6)
    assert {(i, j) for i, j in zip(*data.edges.nonzero(), strict=True) if i < j} == {(0, 1), (1, 2), (0, 3)}
    assert isinstance(data.inputs, np.ndarray) and data.inputs.dtype == np.float32
    np.testing.assert_allclose(data.inputs[[0, 2]], [[0.5, -1], [0.001, 2]])
    assert data.features.layout.__str__() == "torch.strided" and tuple(data.features.shape) == (5, 2)
    assert not data.notice


def test_mag_stays_directed() -> None:
    data = load_data("mag", RAW)
    assert data.edges.toarray().tolist() == [[0, 1, 0], [0, 0, 1], [0, 1, 0]]
    assert (data.classes, data.labels.tolist()) == (5, [4, 0, 2])
    assert data.inputs.shape == (3, 3)


@pytest.mark.parametrize(
    ("name", "folder", "entries"),
    [
        ("ogbn-arxiv", "ogbn_arxiv/raw", [(0, 1), (2, 1)]),
        ("ogbn-arxiv", "arxiv/raw", [(0, 1), (2, 1)]),
        ("ogbn-products", "ogbn_products/raw", [(0, 1), (1, 0), (1, 2), (2, 1)]),
        ("ogbl-citation2", ".", [(0, 1), (2, 1)]),
    ],
)
def test_graphs_of_ogb_from_their_raw_folder(tmp_path: Path, name: str, folder: str, entries: list[tuple[int, int]]) -> None:
    raw = tmp_path / folder
    raw.mkdir(parents=True, exist_ok=True)
    write(raw / "edge.csv.gz", "0,1\n2,1\n2,2\n0,1\n")
    write(raw / "node-feat.csv.gz", "0.5,1\n-1,2\n0,0\n")
    write(raw / "node-label.csv.gz", "3\n0\n1\n")
    data = load_data(f"{name}:adj=raw", tmp_path)
    assert [(int(i), int(j)) for i, j in zip(*data.matrix().nonzero(), strict=True)] == entries
    np.testing.assert_array_equal(data.inputs, np.array([[0.5, 1], [-1, 2], [0, 0]], dtype=np.float32))
    assert (data.labels.tolist(), data.classes) == (([0, 0, 0], 2) if "ogbl" in name else ([3, 0, 1], 4))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1\n2\n", "3 nodes have features, 2 a label"),
        ("1\n2\n1099511627776\n", "node-label.csv.gz, line 3: a label is a whole number"),
        ("1\n2\nnan\n", "is not a table of numbers"),
    ],
)
def test_labels_of_ogb_that_are_none(tmp_path: Path, text: str, message: str) -> None:
    write(tmp_path / "edge.csv.gz", "0,1\n")
    write(tmp_path / "node-feat.csv.gz", "1\n2\n3\n")
    write(tmp_path / "node-label.csv.gz", text)
    with pytest.raises(DataError) as caught:
        load_data("ogbn-arxiv", tmp_path)
    assert message in str(caught.value)


def test_a_name_of_ogb_without_its_prefix_is_refused_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="did you mean `ogbn-arxiv`"):
        load_data("ogbn-arxv", tmp_path)
    with pytest.raises(
        DataError, match=r"no files of ogbn-arxiv in .*\n.*put edge\.csv\.gz, node-feat\.csv\.gz, node-label\.csv\.gz"
    ):
        load_data("ogbn-arxiv", tmp_path)


def test_citation_archives() -> None:
    data = load_data("cora_ml", RAW)
    assert {(i, j) for i, j in zip(*data.edges.nonzero(), strict=True) if i < j} == {(0, 1), (1, 2), (0, 3)}  # no loop at 1
    assert (data.inputs != 0).toarray().astype(int).tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 0], [1, 0, 1]]
    assert set(data.inputs.data) == {1.0}
    assert (data.classes, data.labels.tolist()) == (3, [0, 2, 1, 2])
    assert load_data("cora_ml:nodes=2,adj=raw", RAW / "Cora_ML").matrix().toarray().tolist() == [[0, 1], [1, 0]]


@pytest.mark.parametrize("name", ["collab", "mag", "cora_ml", "dblp", "cora", "pubmed", "ogbn-arxiv"])
def test_without_files(name: str, tmp_path: Path) -> None:
    assert has_files(name, RAW) == (name in ("collab", "mag", "cora_ml"))
    with pytest.raises(DataError, match=r"no (Planetoid )?files of") as caught:
        load_data(name, tmp_path)
    assert "put " in str(caught.value)
    with pytest.raises(DataError, match=r"no directory|no Planetoid files"):
        load_data(name, tmp_path / "nowhere")


@pytest.mark.parametrize("name", ["collab", "mag", "cora_ml", "dblp"])
def test_without_directory_the_source_is_named(name: str) -> None:
    with pytest.raises(DataError, match="needs its raw files") as caught:
        load_data(name)
    assert "--data-dir" in str(caught.value) and "http" in str(caught.value)


def test_the_missing_file_is_named(raw: Path) -> None:
    (raw / "ogbl_collab/raw/node-feat.csv.gz").unlink()
    with pytest.raises(DataError, match=r"there is no .*node-feat\.csv\.gz\n  hint: get it from http://snap"):
        load_data("collab", raw)


def write(file: Path, text: str) -> None:
    file.write_bytes(gzip.compress(text.encode()))


@pytest.mark.parametrize(
    ("spec", "file", "text", "message"),
    [
        ("collab", "ogbl_collab/raw/edge.csv.gz", "0,1\n1\n", "is not a table of numbers"),
        ("collab", "ogbl_collab/raw/edge.csv.gz", "0,x\n", "is not a table of numbers"),
        ("collab", "ogbl_collab/raw/edge.csv.gz", "0,1,2\n", "has 3 columns, not 2"),
        ("collab", "ogbl_collab/raw/edge.csv.gz", "0,1\n0,5\n", "edge.csv.gz, line 2: node 5 is not one of the 5 nodes"),
        ("collab", "ogbl_collab/raw/edge.csv.gz", "0,-1\n", "node -1 is not one of the 5 nodes"),
        ("mag", "ogbn_mag/raw/node-label/paper/node-label.csv.gz", "1\n2\n", "3 nodes have features, 2 a label"),
        (
            "mag",
            "ogbn_mag/raw/node-label/paper/node-label.csv.gz",
            "1\n2\n-1\n",
            "line 3: a label is a whole number from 0 to",
        ),
        ("mag", "ogbn_mag/raw/node-label/paper/node-label.csv.gz", "1\n0.5\n2\n", "is not a table of numbers"),
    ],
)
def test_malformed_tables(raw: Path, spec: str, file: str, text: str, message: str) -> None:
    write(raw / file, text)
    with pytest.raises(DataError) as caught:
        load_data(spec, raw)
    assert message in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"0,1\n", gzip.compress(b"0,1\n" * 9, mtime=0)[:-12], b"\x1f\x8b\x08junk"])
def test_damaged_gzip(raw: Path, content: bytes) -> None:
    file = raw / "ogbl_collab/raw/edge.csv.gz"
    file.write_bytes(content)
    if not content:
        assert load_data("collab", raw).edges.nnz == 0  # an empty file is an empty archive
        return
    with pytest.raises(DataError, match=r"edge\.csv\.gz"):
        load_data("collab", raw)


class Evil:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, ("echo should never run",)


def archive(raw: Path, **changed: Any) -> None:
    file = raw / "Cora_ML/raw/cora_ml.npz"
    with np.load(file) as arrays:
        kept = {name: arrays[name] for name in arrays.files} | changed
    np.savez(file, **{name: array for name, array in kept.items() if array is not None})


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"labels": None}, "holds no array `labels`"),
        ({"attr_data": None}, "holds no array `attr_data`"),
        ({"labels": np.array([Evil()] * 4, dtype=object)}, "it holds Python objects"),
        ({"adj_indices": np.array([0, 1, 9, 0])}, "is not Cora_ML"),
        ({"adj_indptr": np.array([0, 1])}, "is not Cora_ML"),
        ({"adj_shape": np.array([4])}, "`adj_shape` has 1 elements"),
        ({"adj_shape": np.array([4, 5])}, "the arrays do not fit together: edges [4, 5]"),
        ({"labels": np.array([0, 1])}, "the arrays do not fit together"),
        ({"labels": np.array([0, 1, -1, 0])}, "the arrays do not fit together"),
    ],
)
def test_malformed_archives(raw: Path, changed: dict[str, Any], message: str, capfd: pytest.CaptureFixture[str]) -> None:
    archive(raw, **changed)
    with pytest.raises(DataError) as caught:
        load_data("cora_ml", raw)
    assert message in str(caught.value)
    assert capfd.readouterr().out == ""


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04junk", b"\x93NUMPY\x01\x00v\x00{'descr': '<f8', }", b"text"])
def test_no_archive(raw: Path, content: bytes) -> None:
    (raw / "Cora_ML/raw/cora_ml.npz").write_bytes(content)
    with pytest.raises(DataError, match=r"cora_ml\.npz"):
        load_data("cora_ml", raw)


def test_an_array_in_the_place_of_an_archive(raw: Path) -> None:
    with (raw / "Cora_ML/raw/cora_ml.npz").open("wb") as stream:
        np.save(stream, np.zeros(3))
    with pytest.raises(DataError, match="File is not a zip file"):
        load_data("cora_ml", raw)
