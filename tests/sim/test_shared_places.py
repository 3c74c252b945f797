"""Random programs with tensors that share their places: the interpreter and both simulators agree, and what is written is as declared."""

from __future__ import annotations

import likes
import numpy as np
import pytest

import fuseflow as ff
from fuseflow.einsum.parse import parse
from fuseflow.sim import load_machine


@pytest.mark.parametrize("first", range(0, 60, 10))
def test_random_programs(first: int) -> None:
    for seed in range(first, first + 10):
        case = likes.drawn(seed)
        compiled = ff.compile(parse(case.text), tensors=case.arrays, schedule=case.schedule, machine=load_machine(case.machine))
        runs = [compiled.run(engine=engine) for engine in ("reference", "fast")]
        for run in runs:
            assert run.check is not None and run.check.passed, (seed, run.check)
        assert (runs[0].cycles, runs[0].stats) == (runs[1].cycles, runs[1].stats), seed
        compiled.estimate()


def weights(text: str) -> ff.Compiled:
    numbers = np.where(np.arange(32).reshape(4, 8) % 4 < 2, 1.5, 0.0)
    return ff.compile(parse(text), tensors={"W": numbers, "G": np.ones((4, 8))}, schedule=ff.Schedule.fuse("full"))


@pytest.mark.parametrize(("format", "bytes_"), [("csr", 64), ("nm(2:4)", 64), ("csr block 2x2", 64)])
def test_an_update_in_any_format_writes_values_alone(format: str, bytes_: int) -> None:
    compiled = weights(
        f"tensor W[4, 8] {format}\ntensor G[4, 8]\ntensor next_W[4, 8] like W\nnext_W[i, j] = W[i, j] - 0.1 * G[i, j]\noutput next_W"
    )
    result = compiled.run()
    assert result.check is not None and result.check.passed
    written = {(t.tensor, t.kind): t.bytes for t in result.regions[0].simulation.traffic if t.direction == "write"}
    assert written == {("next_W", "val"): bytes_}
    assert result.regions[0].simulation.outputs["next_W"].format == compiled.program.declared["W"].format


def test_another_format_of_the_root_is_that_of_all() -> None:
    text = "tensor W[4, 8] csr\ntensor G[4, 8]\ntensor next_W[4, 8] like W\nnext_W[i, j] = W[i, j] - 0.1 * G[i, j]\noutput next_W"
    numbers = np.where(np.arange(32).reshape(4, 8) % 4 < 2, 1.5, 0.0)
    schedule = ff.Schedule(formats=(("W", "dcsc"),))
    compiled = ff.compile(parse(text), tensors={"W": numbers, "G": np.ones((4, 8))}, schedule=schedule)
    assert compiled.program.declared["next_W"].format == compiled.program.declared["W"].format
    result = compiled.run()
    assert result.check is not None and result.check.passed
