"""Directories of artifacts that are read again: the views that regions read, which no region writes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fuseflow as ff
from fuseflow.einsum.parse import parse
from fuseflow.estimate.program import Estimator
from fuseflow.run.saved import load_saved

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
