"""Graphs in the user's own files, beside networkx and scipy, which read the same; and files that hold no graph."""

import gzip
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pytest
from click.testing import CliRunner
from scipy import io, sparse

import fuseflow as ff
from fuseflow.cli.main import main
from fuseflow.errors import DataError
from fuseflow.frontend.data import Data, load_data
from fuseflow.sweep.design_space import build_space
from fuseflow.sweep.sweep_file import read_sweep

MODELS = Path(__file__).resolve().parents[3] / "models"


def random_edges(seed: int, nodes: int = 12, weighted: bool = False) -> sparse.coo_array:
    """Return a directed graph without loops and without two edges between the same nodes, which has an edge at its last node."""
    rng = np.random.default_rng(seed)
    matrix = (rng.random((nodes, nodes)) < 0.2) * (rng.integers(1, 9, (nodes, nodes)) / 4 if weighted else 1.0)
    np.fill_diagonal(matrix, 0)
    matrix[nodes - 1, 0] = 1
    return sparse.coo_array(matrix)


def lines(edges: sparse.coo_array, separator: str = " ") -> str:
    return "".join(f"{i}{separator}{j}{separator}{v}\n" for i, j, v in zip(*edges.coords, edges.data, strict=True))


def write(path: Path, edges: sparse.coo_array) -> None:
    """Write a graph as its suffix says."""
    match "".join(path.suffixes):
        case ".mtx":
            io.mmwrite(path, edges)
        case ".npz":
            sparse.save_npz(path, edges)
        case ".csv":
            path.write_text("source,target,weight\n" + lines(edges, ","))
        case ".csv.gz":
            path.write_bytes(gzip.compress(lines(edges, ",").encode()))
        case ".tsv":
            path.write_bytes(("from\tto\tw\n" + lines(edges, "\t")).replace("\n", "\r\n").encode())
        case _:
            path.write_text("# Directed graph\n% of another tool\n\n" + lines(edges))


KINDS = ("g.mtx", "g.npz", "g.txt", "g.csv", "g.csv.gz", "g.tsv", "g.el", "g.wel", "g.edges")


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_file_holds_the_same_graph(tmp_path: Path, kind: str) -> None:
    edges = random_edges(3, weighted=True)
    write(tmp_path / kind, edges)
    path = str(tmp_path / kind)
    dense = edges.toarray()
    assert (load_data(path).edges.toarray() == (dense != 0)).all()
    assert (load_data(f"{path}:weights=true").edges.toarray() == dense).all()
    both = load_data(f"{path}:directed=false,weights=true").edges.toarray()
    assert (both == np.where(dense != 0, dense, dense.T)).all()


@pytest.mark.parametrize("seed", range(5))
def test_lists_are_read_as_networkx_reads_them(tmp_path: Path, seed: int) -> None:
    path = tmp_path / "g.edges"
    path.write_text(lines(random_edges(seed, weighted=True)))
    for directed, kind in (("true", networkx.DiGraph), ("false", networkx.Graph)):
        graph = networkx.read_weighted_edgelist(path, nodetype=int, create_using=kind)
        graph.add_nodes_from(range(12))
        expected = networkx.to_numpy_array(graph, nodelist=range(12), weight=None)
        assert (load_data(f"{path}:directed={directed}").edges.toarray() == expected).all()


@pytest.mark.parametrize("symmetry", ["symmetric", "general", "pattern"])
def test_matrices_are_read_as_scipy_reads_them(tmp_path: Path, symmetry: str) -> None:
    edges = random_edges(1, weighted=True)
    whole = sparse.coo_array(edges + edges.T) if symmetry == "symmetric" else edges
    path = tmp_path / "g.mtx"
    io.mmwrite(
        path,
        whole,
        symmetry="general" if symmetry == "pattern" else symmetry,
        field="pattern" if symmetry == "pattern" else "real",
    )
    expected = io.mmread(path).toarray()
    assert (load_data(f"{path}:weights=true").edges.toarray() == expected).all()


def test_what_is_not_as_in_the_file_is_said(tmp_path: Path) -> None:
    path = tmp_path / "g.el"
    path.write_text("0 1 2.5\n1 0 2.5\n1 1 1\n1 2 0.5\n1 2 0.25\n2 0 0\n")
    data = load_data(str(path))
    assert data.edges.toarray().tolist() == [[0, 1, 0], [1, 0, 1], [0, 0, 0]]
    assert data.notice == (
        f"{path}: 1 self loop left out; its weights are left out: `weights=true` keeps them; 1 of its edges have no reverse, which "
        "`directed=false` adds; it has no features and no labels, so these are random"
    )
    weighted = load_data(f"{path}:weights=true,directed=false")
    assert weighted.edges.toarray().tolist() == [[0, 2.5, 0], [2.5, 0, 0.75], [0, 0.75, 0]]
    assert weighted.notice == f"{path}: 1 self loop left out; it has no features and no labels, so these are random"


def test_features_and_labels_are_drawn_as_those_of_random_graphs(tmp_path: Path) -> None:
    path = tmp_path / "g.el"
    path.write_text("0 1\n1 2\n")
    data, same, other = (load_data(str(path)), load_data(f"{path}:seed=0", seed=4), load_data(str(path), seed=1))
    assert (data.inputs.shape, data.classes, data.nodes) == ((3, 32), 4, 3)
    assert (data.inputs != same.inputs).nnz == 0 and (data.inputs != other.inputs).nnz > 0
    assert load_data(f"{path}:features=5,density=1,classes=2,nodes=2").inputs.toarray().shape == (2, 5)


def whole(path: Path, **changed: Any) -> None:
    """Write a graph with features and labels as the package gnn-benchmark does."""
    arrays: dict[str, Any] = {}
    for part, matrix in (("adj", [[0, 1, 0], [0, 0, 1], [0, 0, 0]]), ("attr", [[0.5, 0], [0, 2], [0, 0]])):
        csr = sparse.csr_array(np.array(matrix, dtype=np.float64))
        arrays |= {f"{part}_{name}": getattr(csr, name) for name in ("data", "indices", "indptr", "shape")}
    arrays["labels"] = np.array([1, 0, 2])
    np.savez(path, **{name: array for name, array in (arrays | changed).items() if array is not None})


def test_an_archive_may_have_features_and_labels(tmp_path: Path) -> None:
    path = tmp_path / "amazon_photo.npz"
    whole(path)
    data = load_data(f"{path}:directed=true")
    assert (data.inputs.toarray().tolist(), data.labels.tolist(), data.classes) == ([[0.5, 0], [0, 2], [0, 0]], [1, 0, 2], 3)
    assert data.notice == "" and data.edges.nnz == 2
    with pytest.raises(DataError, match="unknown option `features`"):
        load_data(f"{path}:features=3")
    whole(path, labels=None)
    assert load_data(f"{path}:directed=true,classes=7").notice == f"{path}: it has no labels, so these are random"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("g.el", "0 1\n\n# c\n1 x\n", "g.el`, line 4: `1 x`: expected the numbers of two nodes"),
        ("g.el", "0 1\n1\n", "g.el`, line 2: `1`: expected"),
        ("g.el", "0 1\n1 2 3 4\n", "g.el`, line 2: `1 2 3 4`: expected"),
        ("g.el", "0 1 2 3\n", "g.el`, line 1: `0 1 2 3`: expected"),
        ("g.el", "0 1 0.5\n1 2\n", "g.el`, line 2: `1 2`: expected"),
        ("g.el", "source target\n0 1\n", "g.el`, line 1: `source target`: expected"),
        ("g.el", "0 1\n-1 2\n", "g.el`, line 2: `-1 2`: a node has a negative number"),
        ("g.el", "# c\n0 1\n1 4000000000\n", "line 3: `1 4000000000`: a node has the number 4,000,000,000, of a list of 2 edges"),
        ("g.el", "0 99999999999999999999\n", "line 1: `0 99999999999999999999`: expected"),
        ("g.el", "0 1.5\n", "line 1: `0 1.5`: expected"),
        ("g.el", "", "g.el` has no edges"),
        ("g.wel", "0 1 nan\n", "the edge from 0 to 1 has the weight nan"),
        ("g.wel", "0 1 inf\n", "the edge from 0 to 1 has the weight inf"),
        ("g.csv", "source,target\n0,1\n1,,2\n", "g.csv`, line 3: `1,,2`: expected"),
        ("g.csv", "0,1\n1,\n", "g.csv`, line 2: `1,`: expected"),
        ("g.csv", ",source,target\n0,1,2\n", "g.csv`, line 1: `,source,target`: a column has no name\n  hint: leave the numbers"),
        ("g.csv", "a,b\nc,d\n", "g.csv`, line 2: `c,d`: expected"),
        ("g.mtx", "nothing", "g.mtx` is no MatrixMarket file"),
        ("g.mtx", "%%MatrixMarket matrix coordinate real general\n3 4 1\n1 1 1\n", "is no adjacency: it is 3 x 4"),
        ("g.mtx", "%%MatrixMarket matrix coordinate real general\n3 3 1\n1 9 1\n", "g.mtx`, line 3: `1 9 1`: the column is outside"),
        ("g.mtx", "%%MatrixMarket matrix coordinate real general\n2000000000 2000000000 0\n", "2,000,000,000 nodes, and only 0 edges"),
        ("g.npz", "PK", "g.npz"),
        ("g.csv.gz", "0,1\n", "g.csv.gz"),
        ("g.graphml", "<graph/>", "unknown kind of file `.graphml`\n  hint: a graph is a matrix (.mtx, .npz) or a list of edges (.txt"),
        ("g.mtx.gz", "", "unknown kind of file `.mtx.gz`"),
    ],
)  # fmt: skip
def test_what_holds_no_graph_is_refused(tmp_path: Path, name: str, content: str, message: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(DataError) as caught:
        load_data(str(tmp_path / name)).matrix()
    assert message in str(caught.value) and name in str(caught.value)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"adj_shape": np.array([3, 4])}, "`adj` has 3 rows, and `adj` has 4 columns"),
        ({"attr_shape": np.array([2, 2]), "attr_indptr": np.array([0, 1, 2])}, "`adj` has 3 rows, and `attr` has 2 rows"),
        ({"labels": np.array([0, 1])}, "`labels` are no list of 3 whole numbers"),
        ({"labels": np.array([0, 1, -1])}, "`labels` are no list"),
        ({"labels": np.array([0, 1, 1 << 40])}, "`labels` are no list"),
        ({"labels": np.array([0.0, 1, 2])}, "`labels` are no list"),
        ({"adj_indices": np.array([1, 7])}, "outside of 0..2"),
    ],
)
def test_archives_whose_parts_do_not_fit(tmp_path: Path, changed: dict[str, Any], message: str) -> None:
    whole(tmp_path / "g.npz", **changed)
    with pytest.raises(DataError) as caught:
        load_data(str(tmp_path / "g.npz"))
    assert message in str(caught.value)


def test_a_packed_list_that_holds_far_too_much_is_refused(tmp_path: Path) -> None:
    (tmp_path / "g.txt.gz").write_bytes(gzip.compress(b"0 1\n" * (3 << 20)))
    with pytest.raises(DataError, match="holds far more than its"):
        load_data(str(tmp_path / "g.txt.gz"))


def test_a_name_that_is_no_file_is_refused_with_the_nearest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "graph.mtx").touch()
    (tmp_path / "raw").mkdir()
    monkeypatch.chdir(tmp_path)
    for name, message in (
        ("grpah.mtx", "no file `grpah.mtx`\n  hint: did you mean `graph.mtx`"),
        (f"{tmp_path}/grph.mtx:adj=raw", "hint: did you mean `graph.mtx`"),
        ("nowhere/graph.mtx", "no file `nowhere/graph.mtx`"),
        ("./raw", "`raw` is a directory\n  hint: a data set that is read from a directory has a name"),
        ("pubmed=raw", "hint: the directory with its files is another option: `--data pubmed --data-dir raw`"),
        ("a\0b.mtx", "no file"),
    ):
        with pytest.raises(DataError) as caught:
            load_data(name)
        assert message in str(caught.value)
    (tmp_path / "g.el").write_text("0 1\n")
    for spec, message in (
        ("g.el:directd=false", "unknown option `directd`\n  hint: did you mean `directed`"),
        ("g.el:weights=yes", "`weights=yes` is none of true, false"),
        ("g.el:", "nothing follows the colon"),
        ("g.el:nodes=3", "the graph has 2 nodes"),
        ("g.el:density=2", "at most 1"),
    ):
        with pytest.raises(DataError) as caught:
            load_data(spec)
        assert message in str(caught.value)
    with pytest.raises(DataError, match=r"`g\.el` is a file itself"):
        load_data("g.el", tmp_path)


def test_weights_without_a_normalized_adjacency_are_refused(tmp_path: Path) -> None:
    (tmp_path / "g.el").write_text("0 1 -3\n1 0 2\n")
    spec = f"{tmp_path / 'g.el'}:weights=true"
    with pytest.raises(DataError, match="the weights of node 0 and 1 add up to -2, which has no root\n  hint: take `adj=raw`"):
        load_data(spec).matrix()
    assert load_data(f"{spec},adj=raw").matrix().toarray().tolist() == [[0, -3], [2, 0]]


@pytest.mark.parametrize("model", ["gcn.py", "graphsage.py", "paper/gcn.py"])
def test_models_run_on_a_file(tmp_path: Path, model: str) -> None:
    write(tmp_path / "g.mtx", random_edges(2, weighted=True))
    result = ff.compile(MODELS / model, data=f"{tmp_path / 'g.mtx'}:weights=true,directed=false,features=6").run(
        engine="reference"
    )
    assert result.check is not None and result.check.passed
    assert any("it has no features and no labels" in notice for notice in result.settings.notices)


def test_another_content_of_the_file_is_another_import(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FUSEFLOW_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("FUSEFLOW_MODEL_CACHE_MB")
    graph = tmp_path / "g.el"
    found = []
    for content in ("0 1\n", "0 1\n", "0 1\n1 2\n"):
        graph.write_text(content)
        found.append(ff.compile(MODELS / "gcn.py", data=str(graph)).source.tensors["adj"].shape)
    assert found == [(2, 2), (2, 2), (3, 3)] and len(list((tmp_path / "cache" / "models").iterdir())) == 1


def test_the_command_takes_a_file_and_an_adjacency(tmp_path: Path) -> None:
    graph = tmp_path / "a:b" / "g.el"
    graph.parent.mkdir()
    graph.write_text("0 1\n1 2\n")
    words = ["compile", str(MODELS / "gcn.py"), "--data", str(graph), "--adj", "raw", "--emit", "einsum"]
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 0 and "tensor adj[3, 3]" in result.output, result.output


def test_default_data_of_a_model_are_beside_it(tmp_path: Path) -> None:
    (tmp_path / "g.el").write_text("0 1\n1 2\n")
    text = (MODELS / "gcn.py").read_text()
    (tmp_path / "model.py").write_text(text + '\nDATA = "g.el:adj=raw"\n')
    assert ff.compile(tmp_path / "model.py").source.tensors["adj"].shape == (3, 3)


def test_a_sweep_reads_files_beside_it_and_keeps_rows_by_their_content(tmp_path: Path) -> None:
    keys = []
    for folder, content in (("a", "0 1\n"), ("b", "0 1\n"), ("c", "0 1\n1 2\n")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "g.el").write_text(content)
        (tmp_path / folder / "s.yaml").write_text(f"model: {MODELS / 'gcn.py'}\ndata: g.el:adj=raw\nmachine: ideal\n")
        space = build_space(read_sweep(tmp_path / folder / "s.yaml"))
        keys.append(space.points[0].point.key("simulate"))
    assert keys[0] == keys[1] != keys[2]
    (tmp_path / "c" / "s.yaml").write_text(f"model: {MODELS / 'gcn.py'}\ndata: h.el\nmachine: ideal\n")
    with pytest.raises(DataError, match=r"did you mean `g\.el`"):
        build_space(read_sweep(tmp_path / "c" / "s.yaml"))


def test_data_describe_themselves() -> None:
    data: Data = load_data("karate")
    assert data.interface.startswith(
        "data `karate` have `adjacency` [34, 34] in CSR, `raw` [34, 34] in CSR, `features` [34, 34] in CSR"
    )
    assert "adjacency" not in load_data("images:imagenet").interface
    assert not hasattr(data, "x") and getattr(data, "y", 3) == 3


def test_a_mark_of_the_encoding_is_no_number(tmp_path: Path) -> None:
    """Spreadsheets begin a text in UTF-8 with one."""
    (tmp_path / "g.csv").write_text("0,1\n1,2\n", encoding="utf-8-sig")
    assert load_data(str(tmp_path / "g.csv")).nodes == 3


@pytest.mark.parametrize(
    ("text", "said"), [("0 1\n0 1 0.5\n", "nothing else, as in"), ("0 1 2\n0 1\n", "a weight, as the first line has")]
)
def test_lines_with_and_without_a_weight_are_told_apart(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "g.el").write_text(text)
    with pytest.raises(DataError, match=said):
        load_data(str(tmp_path / "g.el"))
