"""Directories of artifacts that are read again: the views that regions read, which no region writes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fuseflow as ff
from fuseflow.einsum.parse import parse
from fuseflow.errors import FileError
from fuseflow.estimate.program import Estimator
from fuseflow.run.artifact_reader import load_saved

PROGRAMS = {
    "a view of a view": """
        tensor A[3, 2]
        tensor T[6] dense
        T[q*2 + j] = A[q, j] * 2
        Y[i, p] = T[i*3 + p]
        output Y
    """,
    "a view of a copy in another order": """
        tensor A[6, 4] (dense, dense) order (1, 0)
        T[i, j] = relu(A[i, j])
        Y[i, k, j] = T[i*2 + k, j] + A[i*2 + k, j]
        Z[j, i, k] = exp(A[j, i*2 + k])
        output Y, Z
    """,
    "an offset": """
        tensor X[6] dense
        Y[i] = X[i + 1] * X[i]
        output Y
    """,
    "a stride and a window": """
        tensor X[9, 4] csr
        tensor W[3] dense
        tensor T[5, 4] dense
        T[p, j] = sum(r) X[2*p + r - 1, j] * W[r]
        Y[p] = max(j) T[p, j]
        output Y
    """,
    "one row": """
        tensor X[5, 6] csr
        Y[i, j] = X[3, j] * X[i, j]
        output Y
    """,
    "two offsets that are views": """
        tensor A[6, 2] dense
        tensor Y[8] dense
        T[q*2 + j] = A[q, j] * 2
        Y[i] = T[i + 1] + T[i + 3] * 2
        output Y
    """,
}


@pytest.mark.parametrize("fuse", ["none", "full"])
@pytest.mark.parametrize("text", PROGRAMS.values(), ids=PROGRAMS)
def test_a_saved_program_has_the_estimate_of_the_compiled_one(tmp_path: Path, text: str, fuse: str) -> None:
    program = parse(text)
    tensors = {t.name: np.ones(t.shape) for t in program.inputs}
    compiled = ff.compile(program, schedule=ff.Schedule.fuse(fuse), tensors=tensors)
    compiled.save(tmp_path / "compiled")
    saved = load_saved(tmp_path / "compiled", tensors)
    again = Estimator().estimate(saved.regions, saved.source.program, saved.source.tensors, compiled.machine, compiled.name)
    assert again.to_json() == compiled.estimate().to_json()


def test_a_selection_that_is_not_the_program_s_is_refused(tmp_path: Path) -> None:
    tensors = {"X": np.ones(6)}
    ff.compile(parse(PROGRAMS["an offset"]), tensors=tensors).save(tmp_path / "compiled")
    folder = tmp_path / "compiled" / "selections"
    for path in folder.iterdir():
        path.unlink()
    with pytest.raises(FileError, match="holds no fibertree of `select`"):
        load_saved(tmp_path / "compiled", tensors)
