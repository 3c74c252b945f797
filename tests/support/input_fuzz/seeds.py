"""Good files of every kind, which are small: what the fuzzer changes."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import pickle
import re
import sqlite3
import subprocess
import sys
import tempfile
from base64 import b64encode
from collections import defaultdict
from collections.abc import Callable
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy import io as scipy_io
from scipy import sparse

import fuseflow as ff
from fuseflow.einsum import mlir as einsum_mlir
from fuseflow.einsum.parse import parse
from fuseflow.filesystem import json_text
from fuseflow.frontend.import_cache.entry import Entry, write_entry
from fuseflow.frontend.model_spec import ModelSpec
from fuseflow.frontend.sources import load
from fuseflow.native.object_store import ObjectCode
from fuseflow.run.run_archive import pack_run
from fuseflow.samml import mlir as samml_mlir
from fuseflow.samml import protobuf
from fuseflow.samml import text as samml_text
from fuseflow.table import mlir as table_mlir
from fuseflow.tensors import Format, pack
from fuseflow.tensors.array_files import write_fibertree
from input_fuzz.containers import SEPARATOR

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = """\
program p
tensor A[4, 4]  csr
tensor B[4, 3]  dense
y[i, j] = sum(k) A[i, k] * B[k, j]  @layer1
z[i, j] = relu(y[i, j])
m[i]    = max(j) z[i, j]
output z
output m
"""


@cache
def compiled(machine: str = "rda") -> ff.Compiled:
    """A program of a few Einsums, in one region."""
    tensors = {"A": sparse.csr_array(np.eye(4)), "B": np.arange(12.0).reshape(4, 3)}
    return ff.compile(parse(PROGRAM), tensors=tensors, schedule=ff.Schedule.fuse("layer1").buffer("B", "64"), machine=machine)


@cache
def result_json(machine: str = "rda") -> bytes:
    return json_text(compiled(machine).run().to_dict()).encode()


def _bytes(write: Callable[[io.BytesIO], object]) -> bytes:
    stream = io.BytesIO()
    write(stream)
    return stream.getvalue()


def folder_content(folder: Path) -> bytes:
    """Return the files of a folder, and of those inside of it, as one content."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return SEPARATOR.join(path.relative_to(folder).as_posix().encode() + b"\n" + path.read_bytes() for path in files)


def npy() -> list[bytes]:
    arrays = (
        np.arange(6.0),
        np.ones((2, 3), np.float32),
        np.arange(4, dtype=">i8"),
        np.zeros((0, 3)),
        np.asfortranarray(np.eye(3)),
    )
    return [_bytes(lambda stream, array=array: np.save(stream, array)) for array in arrays]


def npz() -> list[bytes]:
    matrix = sparse.csr_array(np.array([[0, 1.0, 2], [0, 0, 0], [3, 0, 4]]))
    matrices = (
        matrix,
        matrix.tocsc(),
        matrix.tocoo(),
        sparse.bsr_array(np.kron(np.eye(2), np.ones((2, 2)))),
        sparse.dia_array(np.eye(3)),
    )
    packed = [_bytes(lambda s, m=m, c=c: sparse.save_npz(s, m, compressed=c)) for m in matrices for c in (False, True)]
    return [*packed, _bytes(lambda stream: np.savez(stream, array=np.eye(3)))]


def mtx() -> list[bytes]:
    matrix = sparse.csr_array(np.array([[0, 1.5, 2], [0, 0, 0], [3, 0, 4]]))
    symmetric = b"%%MatrixMarket matrix coordinate integer symmetric\n%\n3 3 2\n1 1 5\n3 1 7\n"
    pattern = b"%%MatrixMarket matrix coordinate pattern general\n2 2 2\n1 1\n2 2\n"
    return [_bytes(lambda s: scipy_io.mmwrite(s, matrix)), _bytes(lambda s: scipy_io.mmwrite(s, np.eye(3))), symmetric, pattern]


def edge_lists() -> list[bytes]:
    return [
        b"# nodes 4\n0 1\n1 2\n\n3 0\n",
        b"source,target,weight\n0,1,0.5\n1,2,-1e3\n2,0,1\n",
        b"% tabs\n0\t1\t2\r\n5\t4\t1\r\n",
    ]


def pt2() -> list[bytes]:
    import torch

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(2, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.layer(x).relu()

    return [_bytes(lambda stream: torch.export.save(torch.export.export(Net().eval(), (torch.ones(3, 2),)), stream))]


def yaml() -> list[bytes]:
    """Schedules, machines, lists of tensors, plans, sparsity specs and sweeps: a first line says which."""
    machine = "name: m\nfifo_depth: 8\nlatency: {default: 2, add: 4}\nmemory: {model: hbm2, channels: 2}\n"
    spec = "weights:\n  '*.weight': {sparsifier: 'magnitude:0.5', layout: csr}\n"
    plan = (ROOT / "docs/example/plan.yaml").read_text()
    schedule = "fuse: [layer1]\norder: {y: [i, k, j]}\npar: {i: 2}\nformat: {A: csr}\nbuffer: {B: 1KB, A: 64}\n"
    texts = {
        "schedule": [schedule, *((path.read_text()) for path in sorted((ROOT / "schedules").glob("gcn_*.yaml")))],
        "machine": [machine],
        "tensors": ["A: {path: a.npz, order: [i, k], levels: [dense, compressed]}\nB: {path: b.npy}\n"],
        "plan": [plan],
        "spec": [spec],
        "sweep": [(ROOT / "docs/example/sweep.yaml").read_text()],
    }
    return [f"# {kind}\n{text}".encode() for kind, all_texts in texts.items() for text in all_texts]


def json_files() -> list[bytes]:
    return [result_json(), result_json("ideal")]


def ein() -> list[bytes]:
    return [PROGRAM.encode(), *(path.read_bytes() for path in sorted((ROOT / "docs/example").glob("*.ein")))]


def mlir() -> list[bytes]:
    region = compiled().regions[0]
    linalg = ROOT / "tests/data/hostile/mlir/good_linalg.mlir"
    texts = (einsum_mlir.to_mlir(compiled().program), samml_mlir.to_mlir(region.graph), table_mlir.to_mlir(region.table))
    return [*(text.encode() for text in texts), linalg.read_bytes()]


def proto() -> list[bytes]:
    return [protobuf.to_proto(region.graph) for region in compiled().regions]


def samml() -> list[bytes]:
    return [samml_text.show(region.graph).encode() for region in compiled().regions]


def fibertree() -> list[bytes]:
    with tempfile.TemporaryDirectory() as folder:
        write_fibertree(folder, "T", pack(np.array([[0, 1.0, 2], [0, 0, 0], [3, 0, 4]]), Format.parse("csr", 2)))
        return [folder_content(Path(folder))]


def sweep_store() -> list[bytes]:
    from fuseflow.sweep.point import Task, TaskOutcome
    from fuseflow.sweep.store import Store

    point = sweep_points()[0]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "s.sqlite"
        with Store.open(path) as store, store.writing():
            task = Task(point.point, "estimate", None)
            values = {"cycles": 10, "flops": 5, "bytes": 7}
            run = b64encode(pack_run(compiled(), compiled().run())).decode()
            store.add(task, point.labels, TaskOutcome(task.key, values, seconds=1.0, peak=5, run=run))
        with closing(sqlite3.connect(path)) as database:
            database.execute("PRAGMA journal_mode = DELETE")
        return [path.read_bytes()]


@cache
def sweep_points() -> tuple:  # type: ignore[type-arg]
    from fuseflow.sweep.design_space import build_space
    from fuseflow.sweep.sweep_file import read_sweep

    return build_space(read_sweep(ROOT / "schedules/sweeps/gcn.yaml")).points


def kernel() -> list[bytes]:
    return [ObjectCode(b"\x7fELF" + bytes(range(200)), "3.11 0123456789abcdef").to_bytes()]


def import_entry() -> list[bytes]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "p.ein"
        path.write_text(PROGRAM)
        source = load(ModelSpec(path))
    tensors = {t.name: tensor for t, tensor in zip(source.program.inputs, compiled().source.tensors.values(), strict=True)}
    from dataclasses import replace

    content = write_entry(Entry(replace(source, tensors=tensors), {"f": "state"}, True, {"z": np.eye(3)})) or b""
    return [hashlib.sha256(content).digest() + content]


def planetoid() -> list[bytes]:
    known, test = np.array([[1, 0], [0, 1], [1, 1]]), np.array([[0, 1], [1, 0]])
    parts = {
        "x": sparse.csr_matrix(known[:2]), "tx": sparse.csr_matrix(test), "allx": sparse.csr_matrix(known),
        "y": np.eye(3, dtype=np.int32)[[0, 1]], "ty": np.eye(3, dtype=np.int32)[[2, 1]], "ally": np.eye(3, dtype=np.int32),
        "graph": defaultdict(list, {0: [1, 1, 0], 1: [0, 2], 2: [1, 5], 3: [], 5: [2]}),
    }  # fmt: skip
    contents = []
    for protocol in (3, 4):
        files = {f"ind.cora.{part}": pickle.dumps(value, protocol) for part, value in parts.items()}
        files["ind.cora.test.index"] = b"5\n3\n"
        contents.append(SEPARATOR.join(name.encode() + b"\n" + body for name, body in files.items()))
    return contents


def citation() -> list[bytes]:
    edges, words = sparse.csr_array(np.array([[0, 1.0, 0], [1, 0, 1], [0, 1, 0]])), sparse.csr_array(np.eye(3, 4))
    arrays = {
        f"{part}_{name}": value
        for part, matrix in (("adj", edges), ("attr", words))
        for name, value in (
            ("data", matrix.data),
            ("indices", matrix.indices),
            ("indptr", matrix.indptr),
            ("shape", matrix.shape),
        )
    }
    arrays["labels"] = np.array([0, 2, 1])
    return [_bytes(lambda stream, save=save: save(stream, **arrays)) for save in (np.savez, np.savez_compressed)]


def edge_tables() -> list[bytes]:
    """Two tables of numbers, packed: the edges of a graph, and what its nodes have."""
    tables = {"edge.csv.gz": b"0,1\n1,2\n2,0\n", "node-feat.csv.gz": b"0.5,1\n-2e-3,0\n1,1\n"}
    return [SEPARATOR.join(name.encode() + b"\n" + gzip.compress(text, mtime=0) for name, text in tables.items())]


def liberty() -> list[bytes]:
    files = (ROOT / "tests/data/hostile/liberty/good_small", ROOT / "tests/data/hostile/liberty/good_with_tables")
    return [file.read_bytes() for file in files]


def energies() -> list[bytes]:
    """The file of the package, and one in which every source is a word."""
    text = (ROOT / "fuseflow/energy/energy.yaml").read_text()
    return [text.encode(), re.sub(r'source: ".*"', "source: a book", re.sub("(?m)^ *#.*\n", "", text)).encode()]


def area_entry() -> list[bytes]:
    content = json.dumps({"counts": {"$_NAND_": 3, "$_DFF_P_": 1}, "area": None}, sort_keys=True).encode()
    return [hashlib.sha256(content).digest() + content]


@cache
def results() -> list[bytes]:
    """Directories of results: what `run -o` writes, with its cycles and its energy."""
    with tempfile.TemporaryDirectory() as folder:
        _program_files(Path(folder))
        words = ["run", "p.ein", "--tensors", "t.yaml", "-o", "out", "--explain", "--energy", "-q"]
        subprocess.run([sys.executable, "-m", "fuseflow", *words], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        read = ("about.json", "result.json", "cycles.json", "energy.json", "program.json", "region.json", "graph.samml")
        return [_only(Path(folder, "out"), read)]


@cache
def artifacts() -> list[bytes]:
    """Directories of a compiled program."""
    with tempfile.TemporaryDirectory() as folder:
        _program_files(Path(folder))
        words = ["compile", "p.ein", "--tensors", "t.yaml", "-o", "out", "-q"]
        subprocess.run([sys.executable, "-m", "fuseflow", *words], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        return [_only(Path(folder, "out"), ("about.json", "program.ein", "schedule.yaml", "graph.samml"))]


def _program_files(folder: Path) -> None:
    (folder / "p.ein").write_text(PROGRAM)
    (folder / "t.yaml").write_text("A: {path: a.npy}\nB: {path: b.npy}\n")
    np.save(folder / "a.npy", np.eye(4))
    np.save(folder / "b.npy", np.ones((4, 3)))


def _only(folder: Path, names: tuple[str, ...]) -> bytes:
    for path in [path for path in folder.rglob("*") if path.is_file() and path.name not in names]:
        path.unlink()
    return folder_content(folder)


@cache
def linear() -> Any:
    import torch

    torch.manual_seed(0)
    return torch.nn.Linear(4, 3)


def sparse_weights() -> list[bytes]:
    """Directories of sparse weights."""
    from fuseflow.sparsity import SparseSpec, save_sparsity, sparse_copy

    spec = SparseSpec.from_yaml("weights:\n  weight: {sparsifier: 'magnitude:0.5', layout: csr}\n")
    with tempfile.TemporaryDirectory() as folder:
        save_sparsity(sparse_copy(linear(), spec), Path(folder) / "w")
        return [folder_content(Path(folder) / "w")]
