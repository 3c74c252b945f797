"""Lanes that take runs of rows: which there are, which is the fastest, and that a search takes it where splits are allowed."""

from __future__ import annotations

import numpy as np
import pytest

import fuseflow as ff
from fuseflow.autoscheduler.budget.region_tuning import RowRuns, rounds, row_runs
from fuseflow.einsum.parse import parse
from fuseflow.run.compiled import Compiled

ROWS = """
tensor W[{rows}, 8] csr
tensor b[{rows}]
tensor c[{rows}]
tensor x[8]
O[e] = sum(h) W[e, h] * x[h] + b[e] * c[e]
output O
"""
LANES = ff.Schedule.lower(writers="lanes")


def inputs(rows: int) -> tuple[ff.Program, dict[str, np.ndarray]]:
    program, rng = parse(ROWS.format(rows=rows)), np.random.default_rng(0)
    return program, {t.name: (rng.random(t.shape) * (rng.random(t.shape) < 0.6)).astype(np.float32) for t in program.inputs}


def compiled(rows: int, schedule: ff.Schedule) -> Compiled:
    program, tensors = inputs(rows)
    return ff.compile(program, tensors=tensors, schedule=schedule, machine="rda")


@pytest.mark.parametrize(
    ("rows", "lanes", "sizes"),
    [
        (2400, 6, [16, 400]),
        (2708, 4, [4, 677]),
        (2708, 3, [4]),  # no run of each lane is as long as the others
        (677, 4, []),  # a prime has no runs
        (48, 3, [16]),  # both are the same
        (34, 2, [17]),
    ],
)
def test_the_runs_that_there_are(rows: int, lanes: int, sizes: list[int]) -> None:
    program = compiled(rows, LANES.fuse("none").par(**{"O.e": lanes}))
    (options,) = row_runs(program)
    assert [runs.size for runs in options] == sizes
    assert {runs.target for runs in options} <= {"O.e"}


def test_a_schedule_with_runs_means_the_same() -> None:
    program = compiled(240, LANES.fuse("none").par(**{"O.e": 3}))
    (options,) = row_runs(program)
    for runs in options:
        schedule = runs.added(program.schedule)
        assert schedule.splits == (("O.e", runs.size),) and schedule.parallel == (("O.e0", 3),)
        result = compiled(240, schedule).run()
        assert result.check is not None and result.check.passed


def test_lanes_that_are_not_of_one_index_have_no_runs() -> None:
    for schedule in (LANES.fuse("none"), LANES.fuse("none").par(**{"O.e": 2, "O.h": 2}), LANES.fuse("none").par(**{"O/O.e": 2})):
        assert list(row_runs(compiled(240, schedule))) == []


def test_a_region_whose_name_begins_with_that_of_another_one_has_lanes_of_its_own() -> None:
    program, rng = (
        parse("tensor x[24, 2] csr\nT[i, j] = x[i, j] * x[i, j]\nY[i, j] = exp(T[i, j])\noutput Y\n"),
        np.random.default_rng(0),
    )
    named = LANES.fuse("r", "r.x").region("r", "T").region("r.x", "Y").par(**{"r.i": 2, "r.x.i": 3})
    (of_t, of_y) = row_runs(ff.compile(program, tensors={"x": rng.random((24, 2))}, schedule=named, machine="rda"))
    assert {runs.target for runs in of_t} == {"T.i"} and {runs.target for runs in of_y} == {"Y.i"}
    assert of_t[-1].size == 12 and of_y[-1].size == 8


def test_changes_are_tried_together() -> None:
    a, b, c = (RowRuns(region, "i", f"{region}.i", size, ("i",)) for region, size in (("A", 4), ("A", 32), ("B", 4)))
    assert list(rounds([(a, b), (c,)])) == [(a, c), (b,)]
    assert list(rounds([])) == []


def test_a_search_takes_them_where_they_are_allowed() -> None:
    program, tensors = inputs(2400)
    chosen = {
        allow: ff.autoschedule(
            program, tensors=tensors, machine="rda", budget="mul=16,fifo=64KB", top=1, allow=allow, schedule=LANES
        ).chosen
        for allow in ((), ("splits",))
    }
    without, with_runs = chosen[()], chosen["splits",]
    assert without.schedule.splits == () and with_runs.schedule.splits == (("O.e", 480),)
    assert with_runs.cycles is not None and without.cycles is not None
    assert with_runs.cycles < 0.87 * without.cycles
    assert with_runs.resources.mul <= 16
