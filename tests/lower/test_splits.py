"""Indices that are two loops in one region: what is seen in parts, what lanes take, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import fuseflow as ff
from fuseflow.einsum.parse import parse
from fuseflow.einsum.text import show
from fuseflow.errors import FuseFlowError, ScheduleError
from fuseflow.lower.partition import partition_program
from fuseflow.run.compiled import Compiled
from fuseflow.run.result import RegionResult
from fuseflow.sim import ENGINES

LAYER = """
tensor A[12, 12] csr
tensor X[12, 8]
tensor W[8, 4]
T[i, h] = sum(k) X[i, k] * W[k, h]
R[i, h] = relu(T[i, h])
Y[n, h] = sum(i) A[n, i] * R[i, h]
output Y
"""
KEPT = "tensor X[6, 8]\nT[i, j] = keep(2 of 4 over j) X[i, j]\noutput T"
HEADS = "tensor X[4, 24]\nT[i, h, d] = X[i, h*6 + d] * 2\noutput T"
ROWS = """
tensor W[200, 40] csr
tensor b[200]
tensor x[40]
O[e] = sum(h) W[e, h] * x[h] + b[e]
output O
"""


def compiled(text: str, schedule: ff.Schedule, machine: str = "ideal") -> Compiled:
    program, rng = parse(text), np.random.default_rng(0)
    tensors = {t.name: (rng.random(t.shape) * (rng.random(t.shape) < 0.6)).astype(np.float32) for t in program.inputs}
    return ff.compile(program, tensors=tensors, schedule=schedule, machine=machine)


def region(program: Compiled) -> RegionResult:
    """Its only region, whose run was checked."""
    result = program.run()
    assert result.check is not None and result.check.passed
    (only,) = result.regions
    return only


def test_one_region_sees_what_it_reads_and_writes_in_parts() -> None:
    """The regions around it see the same tensors whole."""
    schedule = ff.Schedule.fuse("none").split("T.i", 3).split("Y.n", 6)
    lines = [" ".join(line.split()) for line in show(partition_program(parse(LAYER), schedule).program).splitlines()]
    assert "T[i0, i1, h] = sum(k) X.split[i0, i1, k] * W[k, h]" in lines
    assert "R[i, h] = relu(T.merge[i, h])" in lines
    assert "Y.split[n0, n1, h] = sum(i) A.split[n0, n1, i] * R[i, h]" in lines
    result = compiled(LAYER, schedule).run()
    assert result.check is not None and result.check.passed
    assert result.outputs["Y"].shape == (12, 4)


def test_all_that_shares_an_index_in_the_region_is_split() -> None:
    schedule = ff.Schedule.region("front", "T", "R").fuse("front").split("R.i", 4)
    program = compiled(LAYER, schedule.par(**{"front.i0": 3}))
    assert {"i0", "i1"} < {*program.regions[0].fused.order}
    result = program.run()
    assert result.check is not None and result.check.passed


def test_lanes_take_runs_of_rows() -> None:
    """Of 200 rows five lanes take ten runs of four: lane 1 writes rows 4-7, 24-27 and so on. Neighbouring lanes share fewer lines then,
    and what is moved of vectors along the rows becomes less."""
    base = ff.Schedule.lower(writers="lanes", locate="always")
    plain = region(compiled(ROWS, base.par(e=5), "rda"))
    runs = region(compiled(ROWS, base.split("O.e", 4).par(e0=5), "rda"))
    whole = region(compiled(ROWS, base.split("O.e", 40).par(e0=5), "rda"))
    for tensor in ("b", "O"):
        moved = [_moved(run, tensor) for run in (plain, runs, whole)]
        assert moved == sorted(moved, reverse=True) and moved[0] > moved[2], (tensor, moved)


def _moved(run: RegionResult, tensor: str) -> int:
    memory = run.simulation.memory
    assert memory is not None
    return sum(of.moved_bytes for port, of in memory.ports if port.tensor.split(".")[0] == tensor)


@pytest.mark.parametrize("machine", ["ideal", "rda", "comal"])
@pytest.mark.parametrize("fuse", ["none", "full"])
def test_every_machine_and_region(fuse: str, machine: str) -> None:
    for target, size in (("T.h", 2), ("T.k", 4)):
        program = compiled(LAYER, ff.Schedule.fuse(fuse).split(target, size), machine)
        result = program.run()
        assert result.check is not None and result.check.passed


def test_both_simulators_take_the_same_cycles() -> None:
    program = compiled(ROWS, ff.Schedule.split("O.e", 8).par(e0=5).lower(writers="lanes"), "rda")
    cycles = [program.run(engine=engine).cycles for engine in ENGINES]
    assert len({*cycles}) == 1


@pytest.mark.parametrize(
    ("text", "target", "size", "message", "hint"),
    [
        (LAYER, "T.i", 5, "split of `T.i`: 12 coordinates are not several parts of 5", "parts of 4 or 6"),
        (LAYER, "T.i", 12, "12 coordinates are not several parts of 12", "parts of 4 or 6"),
        (LAYER, "Y.i", 3, "split of `Y.i`: `A` stores it compressed", "store it in a dense level"),
        (LAYER, "T.j", 2, "`T` has no such index", "known: `h`, `i`, `k`"),
        (LAYER, "Q.i", 2, "the program computes no such tensor", "known: `R`, `T`, `Y`"),
        (KEPT, "T.j", 4, "`keep(2 of 4 over j)` of `T` compares along it", ""),
        (HEADS, "T.h", 2, "`T` reads it as `h*6 + d` of `X`", ""),
        (HEADS, "T.d", 2, "`T` reads it as `h*6 + d` of `X`", ""),
    ],
)
def test_what_cannot_be_split(text: str, target: str, size: int, message: str, hint: str) -> None:
    with pytest.raises(ScheduleError) as error:
        compiled(text, ff.Schedule.fuse("none").split(target, size))
    assert message in error.value.message
    assert error.value.hint == hint


def test_a_place_in_a_file() -> None:
    with pytest.raises(ScheduleError) as error:
        compiled(LAYER, ff.Schedule.from_yaml("fuse: none\nsplit:\n  T.i: 5\n", "s.yaml"))
    assert str(error.value.span).startswith("s.yaml:3:3")


def test_a_result_that_is_stored_compressed_is_not_seen_in_parts() -> None:
    text = "tensor A[12, 12] dcsr\nT[i, h] = A[i, h] * 2\nY[i, h] = relu(T[i, h])\noutput Y"
    with pytest.raises(FuseFlowError, match="only dense levels come apart") as error:
        compiled(text, ff.Schedule.fuse("none").split("Y.i", 3))
    assert error.value.hint is not None and "`--format T=dense`" in error.value.hint


def test_an_index_is_split_once_in_a_region() -> None:
    schedule = ff.Schedule.region("front", "T", "R").fuse("front").split("T.i", 3).split("R.i", 4)
    with pytest.raises(ScheduleError, match="it is in parts already"):
        compiled(LAYER, schedule)
    apart = compiled(LAYER, ff.Schedule.fuse("none").split("T.i", 3).split("R.i", 4)).run()
    assert apart.check is not None and apart.check.passed
