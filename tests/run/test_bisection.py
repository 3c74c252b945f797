"""Where values begin to differ: planted faults are found at the Einsum in which they are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

import fuseflow as ff
from fuseflow.compiler import compile_source
from fuseflow.einsum.parse import parse
from fuseflow.run import bisection
from fuseflow.run.bisection import explain_deviation, first_deviation
from fuseflow.run.check import Difference, check_outputs
from fuseflow.tensors import Format, pack

PROGRAM = """\
tensor A[4, 4]  csr
tensor B[4, 3]  dense
y[i, j] = sum(k) A[i, k] * B[k, j]  @layer1
z[i, j] = relu(y[i, j])             @layer1
w[i, j] = z[i, j] + B[i, j]
output w
"""


def compiled(*fuse: str) -> ff.Compiled:
    tensors = {"A": sparse.csr_array(np.eye(4)), "B": np.arange(1.0, 13).reshape(4, 3)}
    return ff.compile(parse(PROGRAM), tensors=tensors, schedule=ff.Schedule.fuse(*fuse))


def plant(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Let every simulation that computes a tensor give it one wrong value."""
    right = bisection.simulate

    def simulate(*args, **kwargs):
        simulation = right(*args, **kwargs)
        if name not in simulation.outputs:
            return simulation
        values = simulation.outputs[name].values.copy()
        values.flat[4] += 100
        outputs = {**simulation.outputs, name: replace(simulation.outputs[name], values=values)}
        return replace(simulation, outputs=outputs)

    monkeypatch.setattr(bisection, "simulate", simulate)


@pytest.mark.parametrize("name", ["y", "z", "w"])
def test_a_planted_fault_is_found_where_it_is(monkeypatch, name):
    plant(monkeypatch, name)
    deviation = first_deviation(compiled("none"), "reference")
    assert deviation.einsum.name == name
    assert deviation.check.largest.coordinates == (1, 1)
    assert deviation.check.largest.computed == deviation.check.largest.expected + 100


def test_nothing_is_found_where_nothing_is_wrong():
    assert first_deviation(compiled("layer1"), "reference") is None


def test_the_einsums_of_a_region_are_told_apart(monkeypatch):
    program = compiled("layer1")

    def unfused() -> ff.Compiled:
        return compile_source(program.source, ff.Schedule.fuse("none"), program.machine)

    plant(monkeypatch, "w")  # the region computes y and z for it
    (line,) = explain_deviation(program, unfused, "reference")
    assert line.startswith("the first Einsum that differs: `w` (<text>:5:1), at (1, 1) it is 110, not 10")
    monkeypatch.undo()
    (line,) = explain_deviation(program, unfused, "reference")
    assert "the program differs from the model, not the run" in line


@pytest.mark.parametrize(
    ("computed", "expected", "place"),
    [
        ([[1.0, 2], [3, 4]], [[1.0, 2], [3, 4.5]], Difference((1, 1), 4.0, 4.5)),
        ([[1.0, np.nan], [3, 4]], [[1.0, 2], [3, 9]], (0, 1)),
        ([[1.0, np.inf], [3, 4]], [[1.0, np.inf], [3, 5]], (1, 1)),
    ],
)
def test_a_check_says_where_the_largest_error_is(computed, expected, place):
    check = check_outputs({"y": pack(np.array(computed), Format.dense(2))}, {"y": np.array(expected)}, "test")
    assert check.worst == "y"
    assert place in (check.largest, check.largest.coordinates)


def test_the_command_says_what_differs(monkeypatch, tmp_path):
    from click.testing import CliRunner

    from fuseflow.cli.main import main

    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.ein").write_text(PROGRAM)
    (tmp_path / "t.yaml").write_text("A: {path: A.npy}\nB: {path: B.npy}\n")
    np.save("A.npy", np.eye(4))
    np.save("B.npy", np.arange(1.0, 13).reshape(4, 3))
    words = ["run", "p.ein", "--tensors", "t.yaml", "--bisect"]
    assert CliRunner().invoke(main, words).exit_code == 0
    assert CliRunner().invoke(main, [*words, "--no-check"]).exit_code == 2
    monkeypatch.setattr(ff.Compiled, "interpret", lambda self: {"w": np.zeros((4, 3))})
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 1
    assert "note: the largest difference of `w`: at (3, 2) it is 24, not 0" in result.stderr
    assert "note: every region computes what its Einsums say" in result.stderr
