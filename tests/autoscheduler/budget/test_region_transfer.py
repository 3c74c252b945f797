"""Regions that are taken from other schedules of a program: what of a schedule is a region's own, and which is the fastest."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import numpy as np
import pytest

import fuseflow as ff
from fuseflow.autoscheduler.budget.costs import RegionRun
from fuseflow.autoscheduler.budget.region_tuning import RegionContents, RegionTransfer, fastest_regions, region_contents
from fuseflow.autoscheduler.budget.trials import Trial
from fuseflow.einsum.parse import parse
from fuseflow.resources import Resources

PROGRAM = """
tensor A[8, 8] csr
tensor B[8, 4]
tensor C[4, 4]
T[i, j] = sum(k) A[i, k] * B[k, j]
U[i, l] = sum(j) T[i, j] * C[j, l]
Y[i, l] = sum(k) A[i, k] * U[k, l]
output Y
"""
TWO = ff.Schedule.fuse("TU").region("TU", "T", "U")
CONTENTS = {
    "TU": RegionContents(frozenset("TU"), frozenset("BC"), frozenset("A")),
    "Y": RegionContents(frozenset("Y"), frozenset("U"), frozenset("A")),
}


def trial(schedule: ff.Schedule, **cycles: int) -> Trial:
    regions = {name: RegionRun(count, 64) for name, count in cycles.items()}
    return Trial("", schedule, 0.0, Resources(), cycles=sum(cycles.values()), regions=regions)


def test_what_regions_compute_and_read() -> None:
    program, rng = parse(PROGRAM), np.random.default_rng(0)
    tensors = {t.name: rng.random(t.shape).astype(np.float32) for t in program.inputs}
    assert region_contents(ff.compile(program, tensors=tensors, schedule=TWO)) == CONTENTS


def test_a_region_takes_what_is_its_own() -> None:
    here = (
        TWO.order("TU", "i,k,j,l").order("Y", "i,k,l").par(**{"TU.i": 2, "TU/T.j": 4, "Y.i": 2}).depth("TU", 256).depth("Y", 16)
    )
    there = (
        TWO.order("TU", "k,i,j,l")
        .order("Y", "k,i,l")
        .par(**{"TU.k": 4, "Y.k": 4})
        .depth("TU/mul.0", 64)
        .split("T.k", 4)
        .split("Y.k", 4)
    )
    here, there = here.preload("B", 2).preload("A", 2), there.preload("C", 4).preload("A", 4).preload("U", 4)
    moved = RegionTransfer("TU", CONTENTS["TU"], there).added(here)
    assert moved == (
        TWO.order("TU", "k,i,j,l")
        .order("Y", "i,k,l")
        .par(**{"TU.k": 4, "Y.i": 2})
        .depth("TU/mul.0", 64)
        .depth("Y", 16)
        .split("T.k", 4)
    ).preload("C", 4).preload("A", 2)
    assert RegionTransfer("TU", CONTENTS["TU"], moved).added(moved) == moved


def test_lanes_of_a_region_whose_name_goes_on_stay() -> None:
    here, there = (ff.Schedule.fuse("none").par(**{"T.i": n, "T.x.i": n}) for n in (2, 4))
    moved = RegionTransfer("T", RegionContents(frozenset("T"), frozenset(), frozenset()), there).added(here)
    assert dict(moved.parallel) == {"T.i": 4, "T.x.i": 2}


def test_each_region_is_taken_from_where_it_was_fastest() -> None:
    slow, second, third = TWO, TWO.par(**{"TU.i": 2, "Y.i": 2}), TWO.par(**{"TU.i": 4, "Y.i": 4})
    trials = [trial(slow, TU=50, Y=50), trial(second, TU=90, Y=20), trial(third, TU=40, Y=70)]
    assert [t.rank[2] for t in trials] == [100, 110, 110]
    transfers = list(fastest_regions(trials[0], trials, CONTENTS, inf))
    assert transfers == [RegionTransfer("TU", CONTENTS["TU"], third), RegionTransfer("Y", CONTENTS["Y"], second)]
    schedule = slow
    for transfer in transfers:
        schedule = transfer.added(schedule)
    assert schedule == TWO.par(**{"TU.i": 4, "Y.i": 2})


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(TWO.preload("A", 2), id="a tensor that other regions read, too, is preloaded"),
        pytest.param(TWO.format("A", "dense"), id="another format"),
        pytest.param(ff.Schedule.fuse("TU").region("TU", "T", "U", "Y"), id="other members"),
        pytest.param(TWO.associate("U", "A (B C)"), id="another order of products"),
    ],
)
def test_what_is_no_matter_of_one_region_must_be_the_same(other: ff.Schedule) -> None:
    best = trial(TWO, TU=50, Y=50)
    assert not list(fastest_regions(best, [trial(other, TU=20, Y=50)], CONTENTS, inf))


def test_preloads_of_what_no_other_region_reads_come_with_it() -> None:
    best, other = trial(TWO.preload("B", 16), TU=50, Y=50), trial(TWO.preload("B", 8), TU=20, Y=90)
    (transfer,) = fastest_regions(best, [other], CONTENTS, inf)
    assert transfer.added(best.schedule) == other.schedule


def test_runs_whose_fifos_became_too_deep_count_for_nothing() -> None:
    best, other = trial(TWO, TU=50, Y=50), trial(TWO.par(**{"TU.i": 2}), TU=20, Y=50)
    for fifo, limit, counts in ((64, 64, True), (65, 64, False), (None, 64, False), (None, inf, True)):
        deep = replace(other, regions={"TU": RegionRun(20, fifo)})
        assert bool(list(fastest_regions(best, [deep], CONTENTS, limit))) == counts
