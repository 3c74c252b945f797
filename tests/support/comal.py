"""Golden cases of the public Comal simulator: graphs, inputs, cycle counts."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from fuseflow.samml.files import load_graph
from fuseflow.sim import Engine, load_machine, simulate

HERE = Path(__file__).parents[1] / "data" / "comal"
ALL = Path(__file__).parents[3] / "shared" / "golden" / "comal"
"""The whole set, where it is there; the repository has its smallest cases."""

EINSUMS = {
    "spmv_intersect": "ij,j->i",
    "spmv_locate": "ij,j->i",
    "spmm_ikj": "ik,kj->ij",
    "spmm_ikj_locate": "ik,kj->ij",
    "spmm_ijk": "ik,kj->ij",
    "sddmm_locate": "ij,ik,jk->ij",
    "elemadd": "ij,ij->ij",
}
"""The indices of the input files, in the order of the names of the tensors, and of the result."""

SLOW = 1_000_000  # cycles, from which on a case takes the reference more than 3 seconds
KINDS = {
    "root": "GeneratorContext",
    "scan": "CrdRdScan",
    "write": "CompressedWrScan",
    "write_values": "ValsWrScan",
    "load": "Array",
    "alu": "Binary",
    "reduce": "Reduce",
    "accumulate": "Spacc1",
    "repeat": "Repeat",
    "locate": "IterateLocate",
}
"""Of the operations here their names there, where one stands for one."""


@dataclass(frozen=True)
class Case:
    kernel: str
    n: int
    density: float
    graph: Path
    inputs: dict[str, Path]
    storage: dict[str, dict[str, list[str]]]
    cycles: int
    finish: tuple[tuple[int, str, int], ...]
    """(operation, kind, cycle in which it ends) of every operation of the graph."""

    @property
    def id(self) -> str:
        return f"{self.kernel}-{self.n}-{self.density:g}"

    def listing(self, file: Path) -> Path:
        """Write the YAML file that names the inputs."""
        file.write_text("".join(f"{name}: {json.dumps(self.entry(name))}\n" for name in self.inputs))
        return file

    def entry(self, name: str) -> dict[str, Any]:
        indices = list(self.indices[name])
        return {"path": str(self.inputs[name]), **self.storage[name], "indices": indices}

    @property
    def indices(self) -> dict[str, str]:
        return dict(zip(sorted(self.inputs), EINSUMS[self.kernel].split("->")[0].split(","), strict=True))

    def arrays(self) -> list[npt.NDArray[np.float64]]:
        return [_array(path).astype(np.float64) for _, path in sorted(self.inputs.items())]

    def expected(self) -> npt.NDArray[np.float64]:
        arrays = self.arrays()
        if self.kernel == "elemadd":
            return arrays[0] + arrays[1]
        if self.kernel == "sddmm_locate":
            return arrays[0] * (arrays[1] @ arrays[2].T)
        return arrays[0] @ arrays[1]


def cases(folder: Path) -> list[Case]:
    """The cases of a folder, the smallest first."""
    if not folder.is_dir():
        return []
    known = json.loads((folder / "cycles.json").read_text())
    found = [
        Case(
            case["kernel"], case["n"], case["density"], (folder / case["graph"]).with_suffix(".bin"),
            {name: folder / path for name, path in case["inputs"].items()}, known["storage"][case["kernel"]],
            case["cycles"], tuple(map(tuple, case["nodes_finish"] or ())),
        )
        for case in known["cases"]
    ]  # fmt: skip
    return sorted(found, key=lambda case: case.cycles)


def check(case: Case, folder: Path, engine: Engine) -> None:
    """The graph gives the dense result, in the recorded cycles, and every operation ends in its recorded cycle."""
    graph, tensors = load_graph(case.graph, case.listing(folder / "tensors.yaml"))
    result = simulate(graph, tensors, load_machine("comal"), engine=engine, check=case.cycles < SLOW / 20)
    (output,) = result.outputs.values()
    np.testing.assert_array_equal(output.to_dense(), case.expected())
    ends = {kind: sorted(s.last + (s.op in ("root", "write_values")) for s in result.nodes if s.op == kind) for kind in KINDS}
    recorded = {
        op: sorted(end for _, name, end in case.finish if name == kind or (op == "scan" and name.endswith(kind)))
        for op, kind in KINDS.items()
    }
    assert ends == recorded
    assert result.cycles == case.cycles


def _array(path: Path) -> npt.NDArray[Any]:
    with np.load(path) as archive:
        if "format" not in archive.files:
            found: npt.NDArray[Any] = archive[archive.files[0]]
            return found
    return np.asarray(sparse.load_npz(path).toarray())
