"""The command that reads an input of each kind, with good files in all other places."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np
from scipy import sparse

from input_fuzz import seeds
from input_fuzz.containers import unfold
from input_fuzz.kinds import Kind

PROGRAM = "program p\ntensor A[3, 3]  csr\ny[i, j] = relu(A[i, j])\noutput y\n"


LINEAR = "import torch\ndef build(data):\n    return torch.nn.Linear(4, 3), (torch.ones(2, 4),)\n"


@dataclass(frozen=True, slots=True)
class CommandLine:
    """The words behind `fuseflow`, variables of its environment, and the statuses that the command may end with."""

    words: list[str]
    variables: Mapping[str, str] = field(default_factory=dict)
    statuses: tuple[int, ...] = (0, 2)


def command_line(kind: Kind, content: bytes, folder: Path) -> CommandLine:
    """Put an input and what it needs into a folder, and return the command that reads it."""
    (folder / "p.ein").write_text(PROGRAM)
    np.save(folder / "good.npy", np.eye(3))
    (folder / "t.yaml").write_text("A: {path: good.npy}\n")
    run = ["run", "p.ein", "--tensors", "t.yaml"]
    match kind.name:
        case "npy" | "npz" | "mtx":
            (folder / f"a.{kind.name}").write_bytes(content)
            (folder / "t.yaml").write_text(f"A: {{path: a.{kind.name}}}\n")
            return CommandLine(run)
        case "edge list":
            (folder / "g.csv").write_bytes(content)
            _graph_model("g.csv", folder)
            return CommandLine(["compile", "m.py", "--data", "g.csv:features=2"])
        case "pt2":
            (folder / "m.pt2").write_bytes(content)
            return CommandLine(["compile", "m.pt2"])
        case "yaml":
            (folder / "f.yaml").write_bytes(content)
            return CommandLine(_yaml(content.partition(b"\n")[0].removeprefix(b"# ").decode("utf-8", "replace"), run))
        case "json":
            (folder / "r.json").write_bytes(content)
            return CommandLine(["report", "r.json"])
        case "ein":
            (folder / "f.ein").write_bytes(content)
            return CommandLine(["compile", "f.ein"])
        case "mlir":
            (folder / "f.mlir").write_bytes(content)
            return CommandLine(["compile", "f.mlir"])
        case "protobuf" | "samml":
            name = "g.bin" if kind.name == "protobuf" else "g.samml"
            (folder / name).write_bytes(content)
            sparse.save_npz(folder / "A.npz", sparse.csr_array(np.eye(4)))
            np.save(folder / "B.npy", np.ones((4, 3)))
            (folder / "t.yaml").write_text("A: {path: A.npz}\nB: {path: B.npy}\n")
            return CommandLine(["simulate", name, "--tensors", "t.yaml"], statuses=(0, 1, 2))  # 1: the run of a good graph failed
        case "fibertree":
            (folder / "A").mkdir()
            unfold(content.replace(b"tensor_T", b"tensor_A"), folder / "A")
            (folder / "t.yaml").write_text("A: {path: A}\n")
            return CommandLine(run)
        case "sweep store":
            (folder / "s.sqlite").write_bytes(content)
            return CommandLine(["sweep", "status", str(seeds.ROOT / "schedules/sweeps/gcn.yaml"), "--store", "s.sqlite"])
        case "kernel cache" | "import cache":
            place = folder / "cache" / ("kernels" if kind.name == "kernel cache" else "models")
            place.mkdir(parents=True, mode=0o700)
            (place / ("0" * 64 + (".kernel" if kind.name == "kernel cache" else ".import"))).write_bytes(content)
            return CommandLine(run, {"FUSEFLOW_CACHE_DIR": str(folder / "cache")})
        case "planetoid":
            (folder / "raw").mkdir()
            unfold(content, folder / "raw")
            return _graph_model("cora", folder)
        case "citation":
            (folder / "cora_ml.npz").write_bytes(content)
            return _graph_model("cora_ml", folder)
        case "edge tables":
            unfold(content, folder)
            return _graph_model("collab", folder)
        case "liberty":
            (folder / "cells.lib").write_bytes(content)
            return CommandLine(["area", "p.ein", "--tensors", "t.yaml", "--liberty", "cells.lib"])
        case "energy":
            (folder / "f.yaml").write_bytes(content)
            return CommandLine([*run, "--energy-file", "f.yaml"])
        case "area cache":
            return _cached_area(content, folder)
        case "results" | "artifacts":
            (folder / "out").mkdir()
            unfold(content, folder / "out")
            return CommandLine(["report" if kind.name == "results" else "estimate", "out"])
        case "sparse weights":
            (folder / "w").mkdir()
            unfold(content, folder / "w")
            (folder / "m.py").write_text(LINEAR)
            return CommandLine(["estimate", "m.py", "--sparsity", "w"])
        case "compared run":
            (folder / "r.json").write_bytes(content)
            (folder / "p.ein").write_text(seeds.PROGRAM)
            sparse.save_npz(folder / "A.npz", sparse.csr_array(np.eye(4)))
            np.save(folder / "B.npy", np.arange(12.0).reshape(4, 3))
            (folder / "t.yaml").write_text("A: {path: A.npz}\nB: {path: B.npy}\n")
            return CommandLine(["estimate", "p.ein", "--tensors", "t.yaml", "--fuse", "layer1", "--against", "r.json"])
    raise ValueError(f"no command reads a file of the kind {kind.name}")


def _cached_area(content: bytes, folder: Path) -> CommandLine:
    """Put a content into the place of all that the cache of areas has for the program, and return the command that would use it."""
    place = folder / "cache" / "area"
    place.mkdir(parents=True, mode=0o700)
    for name in _kept_areas():
        (place / name).write_bytes(content)
        (place / name).chmod(0o600)
    return CommandLine(["area", "p.ein", "--tensors", "t.yaml"], {"FUSEFLOW_CACHE_DIR": str(folder / "cache")})


@cache
def _kept_areas() -> tuple[str, ...]:
    """Return the names of the files that the cache of areas has for the program."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "p.ein").write_text(PROGRAM)
        np.save(folder / "good.npy", np.eye(3))
        (folder / "t.yaml").write_text("A: {path: good.npy}\n")
        words = [sys.executable, "-m", "fuseflow", "area", "p.ein", "--tensors", "t.yaml", "-q"]
        subprocess.run(words, cwd=folder, env={**os.environ, "FUSEFLOW_CACHE_DIR": str(folder / "cache")}, check=True)
        return tuple(path.name for path in sorted((folder / "cache" / "area").glob("*.json")))


def _graph_model(data: str, folder: Path) -> CommandLine:
    """Return the command that compiles a model of a graph whose files are in the folder."""
    (folder / "m.py").write_text("import torch\ndef build(data):\n    return torch.nn.ReLU(), (data.adjacency.to_dense(),)\n")
    return CommandLine(["compile", "m.py", "--data", data, "--data-dir", "."])


def _yaml(kind: str, run: list[str]) -> list[str]:
    match kind:
        case "schedule":
            return [*run, "--schedule", "f.yaml"]
        case "machine":
            return [*run, "--machine", "f.yaml"]
        case "plan":
            return [*run, "--plan", "f.yaml"]
        case "sweep":
            return ["sweep", "status", "f.yaml"]
        case _:
            return ["run", "p.ein", "--tensors", "f.yaml"]
