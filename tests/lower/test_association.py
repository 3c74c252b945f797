"""The order of products that a schedule asks for: what is compiled, what is checked, and what is said of it."""

from __future__ import annotations

import numpy as np
import pytest

import fuseflow as ff
from fuseflow import Schedule
from fuseflow.einsum.parse import parse
from fuseflow.errors import ScheduleError

PROGRAM = """
tensor A[6, 6] csr
tensor X[6, 5] csr
tensor W[5, 3] dense
T0[i, f] = sum(k) A[i, k] * X[k, f]
T1[i, h] = sum(f) T0[i, f] * W[f, h]
Y[i, h] = relu(T1[i, h])
output Y
"""


def compiled(schedule: Schedule) -> ff.Compiled:
    draw = np.random.default_rng(2)
    shapes = {"A": (6, 6), "X": (6, 5), "W": (5, 3)}
    arrays = {
        name: (draw.standard_normal(shape) * (draw.random(shape) < 0.5)).astype(np.float32) for name, shape in shapes.items()
    }
    return ff.compile(parse(PROGRAM), tensors=arrays, schedule=schedule, machine="ideal")


@pytest.mark.parametrize("fuse", ["none", "full"])
def test_the_run_is_checked_against_the_program_as_it_was(fuse: str) -> None:
    result = compiled(Schedule.fuse(fuse).associate("T1", "A (X W)")).run()
    assert result.check is not None and result.check.passed
    np.testing.assert_allclose(result.outputs["Y"], compiled(Schedule.fuse(fuse)).run().outputs["Y"], rtol=1e-5, atol=1e-6)
    assert any("`T1` is computed as `A (X W)`" in notice for notice in result.settings.notices)


def test_a_pair_is_an_einsum_of_the_schedule() -> None:
    schedule = Schedule.associate("T1", "A (X W)").fuse("xw").region("xw", "T1.X_W").format("T1.X_W", "dense").par(**{"xw.k": 2})
    made = compiled(schedule)
    assert [region.einsums for region in made.regions] == [("T1.X_W",), ("T1",), ("Y",)]
    check = made.run().check
    assert check is not None and check.passed


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("associate: {T1: A (X B)}\n", "`T1` cannot be computed as `A (X B)`: `B` is no factor of it"),
        ("associate: {T11: A (X W)}\n", "`T11` cannot be computed as `A (X W)`: the program computes no such tensor"),
        ("associate: {T1: A X W}\n", "association of `T1`: `A X W` is no chain of products"),
        ("associate: {T1: A (X W)}\norder: {T0: [i, k, f]}\n", "order of `T0`: no region or Einsum has this name"),
    ],
)
def test_refusals_have_a_place(text: str, message: str) -> None:
    with pytest.raises(ScheduleError) as error:
        compiled(Schedule.from_yaml(text, "s.yaml"))
    assert message in error.value.message and str(error.value.span).startswith("s.yaml:")
