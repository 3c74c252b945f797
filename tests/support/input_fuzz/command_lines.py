"""The command that reads an input of each kind, with good files in all other places."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from scipy import sparse

from input_fuzz import seeds
from input_fuzz.containers import SEPARATOR
from input_fuzz.kinds import Kind

PROGRAM = "program p\ntensor A[3, 3]  csr\ny[i, j] = relu(A[i, j])\noutput y\n"


@dataclass(frozen=True, slots=True)
class CommandLine:
    """The words behind `fuseflow`, and variables of its environment."""

    words: list[str]
    variables: Mapping[str, str] = field(default_factory=dict)


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
            return CommandLine(["simulate", name, "--tensors", "t.yaml"])
        case "fibertree":
            (folder / "A").mkdir()
            _unfold(content.replace(b"tensor_T", b"tensor_A"), folder / "A")
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
            _unfold(content, folder / "raw")
            (folder / "m.py").write_text(
                "import torch\ndef build(data):\n    return torch.nn.ReLU(), (data.adjacency.to_dense(),)\n"
            )
            return CommandLine(["compile", "m.py", "--data", "cora", "--data-dir", "."])
    raise ValueError(f"no command reads a file of the kind {kind.name}")


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


def _unfold(content: bytes, folder: Path) -> None:
    for file in content.split(SEPARATOR):
        name, _, body = file.partition(b"\n")
        if name and b"/" not in name and b"\0" not in name:
            (folder / name.decode("utf-8", "replace")[:50]).write_bytes(body)
