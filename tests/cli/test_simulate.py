"""`fuseflow simulate`: graphs of other tools and of our own on tensors from files, and what does not fit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import comal
import numpy as np
import numpy.typing as npt
import pytest
from command_line import fuseflow
from google.protobuf import text_format
from scipy import io, sparse

from fuseflow.einsum.parse import parse
from fuseflow.samml import tortilla_pb2 as pb
from fuseflow.tensors import Format, pack
from fuseflow.tensors.array_files import write_fibertree

CASES = {case.id: case for case in comal.cases(comal.HERE)}
SPMM = CASES["spmm_ijk-64-0.05"]
OWN = "tensor A[3, 4] csc\ntensor x[4] dense\ny[i] = sum(k) A[i, k] * x[k]\noutput y\n"
A = np.array([[0, 2, 0, 1], [0, 0, 0, 0], [-3, 0, 0, 0]], dtype=np.float32)
X = np.array([1, 2, 3, 4], dtype=np.float32)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a graph of another tool (`g.bin`) and one of our own (`own/`), and tensors for both."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "g.bin").write_bytes(SPMM.graph.read_bytes())
    SPMM.listing(tmp_path / "t.yaml")
    (tmp_path / "p.ein").write_text(OWN)
    assert fuseflow("compile", "p.ein", "-o", "own", "-q").exit_code == 0
    sparse.save_npz(tmp_path / "a.npz", sparse.coo_array(A))
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "cube.npy", np.ones((2, 2, 2)))
    (tmp_path / "own.yaml").write_text("A: {path: a.npz}\nx: {path: x.npy}\n")
    return tmp_path


def document(*arguments: str | Path) -> dict[str, Any]:
    result = fuseflow("simulate", *arguments, "--json", "-")
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_a_graph_of_another_tool(here: Path) -> None:
    found = document("g.bin", "--tensors", "t.yaml", "-o", "out")
    assert (found["machine"], found["model"], found["data"], found["check"]) == ("rda", "g.bin", "t.yaml", None)
    (region,) = found["regions"]
    assert (region["name"], region["einsums"], region["cycles"]) == ("spmm_ijk", [], found["cycles"])
    assert found["flops"] > 0
    np.testing.assert_array_equal(only_output(here / "out"), SPMM.expected())
    assert json.loads((here / "out" / "result.json").read_text())["cycles"] == found["cycles"]
    assert json.loads((here / "out" / "about.json").read_text())["files"] == ["outputs/X.npz", "result.json"]
    assert fuseflow("simulate", "g.bin", "--tensors", "t.yaml", "-o", "out").exit_code == 0, "an earlier run is replaced"


def test_a_row_like_that_of_a_run(here: Path) -> None:
    result = fuseflow("simulate", "g.bin", "--tensors", "t.yaml")
    assert result.exit_code == 0, result.output
    rows = [line.split() for line in result.stdout.splitlines()]
    assert [row[0] for row in rows if row and row[0] in ("region", "spmm_ijk", "total")] == ["region", "spmm_ijk", "total"]
    assert "check" not in result.output
    assert fuseflow("simulate", "g.bin", "--tensors", "t.yaml", "-q").output == ""


def test_the_machine_and_its_settings(here: Path) -> None:
    ideal = document("g.bin", "--tensors", "t.yaml")["cycles"]
    assert document("g.bin", "--tensors", "t.yaml", "--set", "latency.default=3")["cycles"] > ideal


def test_forms_of_a_graph(here: Path) -> None:
    """Binary and text, ours and another tool's: the same run."""
    message = pb.ComalGraph.FromString((here / "g.bin").read_bytes())
    (here / "g.txtpb").write_text(text_format.MessageToString(message))
    assert len({document(f, "--tensors", "t.yaml")["cycles"] for f in ("g.bin", "g.txtpb")}) == 1
    (region,) = (p for p in (here / "own").iterdir() if p.is_dir())
    ran = {document(region / f"graph.{end}", "--tensors", "own.yaml")["cycles"] for end in ("bin", "txtpb", "samml")}
    run = fuseflow("run", "p.ein", "--tensors", "own.yaml", "--json", "-")
    assert ran == {json.loads(run.stdout)["cycles"]}


def only_output(directory: Path) -> npt.NDArray[Any]:
    (file,) = (directory / "outputs").iterdir()
    return np.asarray(np.load(file) if file.suffix == ".npy" else sparse.load_npz(file).toarray())


def own_result(here: Path, entry: str) -> list[float]:
    (here / "own.yaml").write_text(f"A: {entry}\nx: {{path: x.npy, order: [k]}}\n")
    (region,) = (p for p in (here / "own").iterdir() if p.is_dir())
    result = fuseflow("simulate", region / "graph.bin", "--tensors", "own.yaml", "-o", "out", "-q")
    assert result.exit_code == 0, result.output
    found: list[float] = only_output(here / "out").tolist()
    return found


def test_every_kind_of_file(here: Path) -> None:
    np.save(here / "a.npy", A)
    np.savez(here / "dense.npz", A)
    np.save(here / "t.npy", A.T)
    io.mmwrite(here / "a.mtx", sparse.coo_array(A))
    write_fibertree(here / "trees", "A", pack(A, Format.parse("csc", 2)))
    write_fibertree(here / "transposed", "A", pack(A.T, Format.parse("csr", 2)))
    stored = "order: [k, i], levels: [dense, compressed]"
    for entry in (
        *(f"{{path: {file}}}" for file in ("a.npz", "a.npy", "dense.npz", "a.mtx", "trees")),
        *(f"{{path: {file}, {stored}}}" for file in ("a.npz", "trees")),
        *(f"{{path: {file}, {stored}, indices: [k, i]}}" for file in ("t.npy", "transposed")),
        f"{{path: a.npy, {stored}, indices: [i, k]}}",
    ):
        assert own_result(here, entry) == (A @ X).tolist(), entry


EXPORTED = {
    "an implicit 1": ("tensor A[4, 5] csr fill 1\nY[i] = sum(j) A[i, j]\noutput Y\n", ()),
    "an implicit -inf": ("tensor A[4, 5] dcsc fill -inf\nY[i] = max(j) A[i, j]\noutput Y\n", ()),
    "an implicit 2 in blocks": ("tensor A[4, 5] csc block 2x3 fill 2\nY[i] = sum(j) A[i, j]\noutput Y\n", ()),
    "a guard of the padding": ("tensor A[4, 5]\nY[i] = max(j) A[i, j]\noutput Y\n", ("--vector", "4")),
}


@pytest.mark.parametrize(("text", "schedule"), EXPORTED.values(), ids=EXPORTED)
@pytest.mark.parametrize("end", ["samml", "bin", "txtpb"])
def test_fibertrees_of_our_own_compiler(text: str, schedule: tuple[str, ...], end: str, here: Path) -> None:
    """Nothing is lost: neither an implicit value other than 0, nor the padding of tiles."""
    (here / "p.ein").write_text(text)
    fill = parse(text).declared["A"].fill
    rng = np.random.default_rng(0)
    array = np.where(rng.random((4, 5)) < 0.4, rng.integers(-5, 0, (4, 5)), fill)
    np.save(here / "A.npy", array.astype(np.float32))
    (here / "t.yaml").write_text("A: {path: A.npy}\n")
    given = ("p.ein", "--tensors", "t.yaml", *schedule)
    assert fuseflow("compile", *given, "-o", "own", "-q").exit_code == 0
    assert fuseflow("compile", *given, "--emit", "fibertree", "-o", "trees", "-q").exit_code == 0
    (region,) = (p for p in (here / "own").iterdir() if p.is_dir())
    names = [path.name[len("tensor_") : -len("_mode_shape")] for path in (here / "trees").glob("*_mode_shape")]
    (here / "trees.yaml").write_text("".join(f"{name}: {{path: trees}}\n" for name in names))
    result = fuseflow("simulate", region / f"graph.{end}", "--tensors", "trees.yaml", "-o", "out", "-q")
    assert result.exit_code == 0, result.output
    reduced = array.max(axis=1) if "max" in text else array.sum(axis=1)
    np.testing.assert_array_equal(only_output(here / "out")[:4], reduced)


@pytest.mark.parametrize("name", CASES)
def test_files_in_storage_order_need_no_indices(name: str, here: Path) -> None:
    case = CASES[name]
    (here / "g.bin").write_bytes(case.graph.read_bytes())
    lines = []
    for tensor, array in zip(sorted(case.inputs), case.arrays(), strict=True):
        axes = [case.indices[tensor].index(index) for index in case.storage[tensor]["order"]]
        np.save(here / f"{tensor}.npy", array.transpose(axes))
        lines.append(f"{tensor}: {{path: {tensor}.npy}}\n")
    (here / "t.yaml").write_text("".join(lines))
    document("g.bin", "--tensors", "t.yaml", "-o", "out")
    np.testing.assert_array_equal(only_output(here / "out"), case.expected())


B, C = (f"{{path: {SPMM.inputs[name]}}}" for name in "BC")
BAD: dict[str, tuple[str, str]] = {
    "missing tensor": (f"B: {B}\n", "error[file]: `bad.yaml` has no entry for `C`"),
    "unknown tensor": (f"B: {B}\nC: {C}\nc: {C}\n", "bad.yaml:3:1: error[file]: graph `spmm_ijk` has no input `c`\n  hint: did"),
    "output": (f"B: {B}\nC: {C}\nX: {C}\n", "bad.yaml:3:1: error[file]: graph `spmm_ijk` has no input `X`"),
    "missing file": (f"B: {B}\nC: {{path: no.npz}}\n", "bad.yaml:2:1: error[file]: tensor `C`: no file `no.npz`"),
    "unknown key": (f"B: {B}\nC: {{path: x.npy, level: [dense]}}\n", "bad.yaml:2:18: error[file]: unknown key `C.level`\n  hint: did you"),
    "key twice": (f"B: {B}\nC: {{path: x.npy, order: [j], order: [k]}}\n", "bad.yaml:2:30: error[file]: `C.order` is given twice"),
    "no list": (f"B: {B}\nC: {{path: x.npy, order: jk}}\n", "bad.yaml:2:18: error[file]: `C.order` is not a list of names"),
    "list of lists": (f"B: {B}\nC: {{path: x.npy, order: [[j], k]}}\n", "bad.yaml:2:18: error[file]: `C.order` is not a list of names"),
    "wrong rank": (f"B: {B}\nC: {{path: cube.npy}}\n", "tensor `C`: `cube.npy` has 3 dimensions, the tensor 2 levels in the graph"),
    "too many levels": (
        f"B: {B}\nC: {{path: x.npy, levels: [dense, dense, dense]}}\n",
        "tensor `C`: `levels` are [dense, dense, dense], the graph has [compressed, compressed]",
    ),
    "other levels": (f"B: {B}\nC: {{path: x.npy, levels: [dense, compressed]}}\n", "the graph has [compressed, compressed]"),
    "too many indices": (
        f"B: {B}\nC: {{path: x.npy, order: [j, k, l]}}\n",
        "bad.yaml:2:1: error[file]: tensor `C`: `order` is [j, k, l]: it names each of the 2 indices once",
    ),
    "index twice": (f"B: {B}\nC: {{path: x.npy, order: [j, j]}}\n", "`order` is [j, j]: it names each of the 2 indices once"),
    "other order": (
        f"B: {B}\nC: {{path: x.npy, order: [k, j]}}\n",
        "tensor `C`: `order` says that level 0 stores index `k`; in the graph it is `j`\n  hint: `order: [j, k]`; if the file has its",
    ),
    "other indices": (f"B: {B}\nC: {{path: x.npy, indices: [k, l]}}\n", "`indices` are [k, l], those of the tensor [j, k]"),
    "sizes": (f"B: {B}\nC: {{path: small.npy}}\n", "tensor `C`: index `k` has size 3 here and 64 in `B`\n  hint: if a file has its"),
    "no fibertree": (f"B: {B}\nC: {{path: trees}}\n", "tensor `C`: `trees` holds no fibertree of `C`\n  hint: known: `A`"),
    "no list of tensors": ("- B\n", "bad.yaml:1:1: error[file]: expected a mapping from tensors to their files"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_tensors_that_do_not_fit(here: Path, case: str) -> None:
    np.save(here / "small.npy", np.ones((64, 3)))
    write_fibertree(here / "trees", "A", pack(A, Format.parse("csc", 2)))
    listing, message = BAD[case]
    (here / "bad.yaml").write_text(listing)
    result = fuseflow("simulate", "g.bin", "--tensors", "bad.yaml")
    assert (result.exit_code, result.stdout) == (2, ""), result.output
    assert message in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["g.bin"], "error[usage]: Missing option '--tensors'"),
        (["no.bin", "--tensors", "t.yaml"], "error[file]: cannot read the graph `no.bin`: No such file"),
        (["p.ein", "--tensors", "t.yaml"], "error[usage]: cannot read `p.ein` as a graph\n  hint: give a SAMML protobuf (.bin"),
        (["cut.bin", "--tensors", "t.yaml"], "cut.bin:1: error[graph]: not a `ComalGraph` message"),
        (["bad.txtpb", "--tensors", "t.yaml"], "bad.txtpb:1: error[graph]: not a `ComalGraph` message"),
        (["bad.samml", "--tensors", "t.yaml"], "bad.samml:1"),
        (["g.bin", "--tensors", "no.yaml"], "cannot read the list of tensors `no.yaml`"),
        (["g.bin", "--tensors", "t.yaml", "--machine", "coml"], "did you mean `comal`?"),
        (["g.bin", "--tensors", "t.yaml", "-o", "own", "--json", "own/r.json"], "is in `own`"),
        (["g.bin", "--tensors", "t.yaml", "-o", "."], "is not empty"),
    ],
)
def test_other_bad_input(here: Path, arguments: list[str], message: str) -> None:
    (here / "cut.bin").write_bytes((here / "g.bin").read_bytes()[:-5])
    (here / "bad.txtpb").write_text("graph {")
    (here / "bad.samml").write_text("nonsense")
    result = fuseflow("simulate", *arguments)
    assert (result.exit_code, result.stdout) == (2, ""), result.output
    assert message in result.stderr


def test_our_graph_refuses_a_shape_that_it_does_not_declare(here: Path) -> None:
    (here / "own.yaml").write_text("A: {path: a.npz}\nx: {path: long.npy}\n")
    np.save(here / "long.npy", np.ones(5))
    (region,) = (p for p in (here / "own").iterdir() if p.is_dir())
    result = fuseflow("simulate", region / "graph.bin", "--tensors", "own.yaml")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "own.yaml:2:1: error[file]: tensor `x`: shape [5], declared [4]" in result.stderr


def test_published_cycles(here: Path) -> None:
    assert document("g.bin", "--tensors", "t.yaml", "--machine", "comal")["cycles"] == SPMM.cycles


SOFTMAX = "tensor A[2, 9] csr\nm[i] = max(j) A[i, j]\ny[i, j] = A[i, j] - m[i]\noutput y\n"


def test_fifos_that_were_deepened_are_printed_and_in_the_json(here: Path) -> None:
    (here / "s.ein").write_text(SOFTMAX)
    np.save(here / "row.npy", np.arange(1, 19, dtype=np.float32).reshape(2, 9))
    (here / "s.yaml").write_text("A: {path: row.npy}\n")
    arguments = ("s.ein", "--tensors", "s.yaml", "--fuse", "full", "--machine", "rda", "--set", "fifo_depth_start=2")
    assert fuseflow("compile", "s.ein", "--fuse", "full", "-o", "soft", "-q").exit_code == 0
    (region,) = (p for p in (here / "soft").iterdir() if p.is_dir())
    for command in (("run", *arguments), ("simulate", region / "graph.bin", *arguments[1:3], *arguments[5:])):
        result = fuseflow(*command, "--json", "r.json", "--top", "1")
        assert result.exit_code == 0, result.output
        (found,) = json.loads((here / "r.json").read_text())["regions"]
        assert len(found["depths"]) == 2
        printed = ", ".join(
            f"input {key.rpartition('.')[2]} of `{key.rpartition('.')[0]}` to {d}" for key, d in found["depths"].items()
        )
        assert f"full: FIFOs deepened: {printed}\n" in result.stdout
        assert "busiest node" in result.stdout
    enough = fuseflow("simulate", region / "graph.bin", *arguments[1:3], "--machine", "rda")
    assert "deepened" not in enough.stdout
