"""Small sweeps for tests: programs that run in milliseconds, and models that misbehave, in files."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from fuseflow.sweep.design_space import DesignSpace
from fuseflow.sweep.point import Task, TaskOutcome
from fuseflow.sweep.point_evaluation import SourceCache, measure
from fuseflow.sweep.store import Store
from fuseflow.sweep.sweep import Sweep

PROGRAM = """\
tensor A[6, 8] csr
tensor x[8, 3] dense
y[i, j] = sum(k) A[i, k] * x[k, j]
z[i, j] = relu(y[i, j])
output z
"""

MODEL = f'''\
import numpy as np
{{imports}}

def build(*, scale: int = 1):
    {{first}}
    values = np.arange(48, dtype=np.float32).reshape(6, 8) * scale
    return """{PROGRAM}""", {{{{"A": values, "x": values.T[:, :3].copy()}}}}
'''


def write_model(path: Path, first: str = "pass", imports: str = "") -> None:
    """Write a model file without PyTorch. `first` is the code that its `build` runs before anything else."""
    path.write_text(MODEL.format(first=first, imports=imports))


def write_program(folder: Path) -> None:
    """`p.ein` with its tensors, `t.yaml`."""
    (folder / "p.ein").write_text(PROGRAM)
    (folder / "t.yaml").write_text("A: {path: a.npz}\nx: {path: x.npy}\n")
    matrix = np.arange(48, dtype=np.float32).reshape(6, 8) % 3
    sparse.save_npz(folder / "a.npz", sparse.csr_array(matrix))
    np.save(folder / "x.npy", np.arange(24, dtype=np.float32).reshape(8, 3))


def write_sweep(folder: Path, text: str) -> Path:
    path = folder / "s.yaml"
    path.write_text(text)
    return path


def opened(folder: Path, text: str, **settings: Any) -> Sweep:
    """Return a sweep of this text, with the store of the folder."""
    return Sweep(DesignSpace.of(write_sweep(folder, text)), Store.open(folder / "s.sqlite"), **settings)


class InProcessRunner:
    """A runner in this process, one point after the other, that lists the modes of the points that it ran."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.sources = SourceCache()

    def run(self, tasks: Iterable[Task]) -> Iterator[tuple[Task, TaskOutcome]]:
        for task in tasks:
            self.ran.append(task.mode)
            measured = measure(self.sources.get(task.point), task.point, task.mode, task.keep_run)
            yield task, TaskOutcome(task.key, measured.values, run=b64encode(measured.run).decode())

    def learn(self, source: str, mode: str, peak: int) -> None:
        pass

    def close(self) -> None:
        pass
