"""Deeper FIFOs behind a search: which have room, and that a search takes them where they are faster."""

from __future__ import annotations

import numpy as np

import fuseflow as ff
from fuseflow.autoscheduler.budget.region_tuning import RegionDepth, region_depths
from fuseflow.autoscheduler.budget.trials import Trial, TrialEstimates
from fuseflow.einsum.parse import parse
from fuseflow.estimate.program import Estimator
from fuseflow.resources import Resources
from fuseflow.resources.budget import Budget
from fuseflow.run.compiled import Compiled

TWO_PRODUCTS = """
tensor A[600, 40] csr
tensor B[40, 16]
tensor C[16, 8]
T[i, j] = sum(k) A[i, k] * B[k, j]
Y[i, l] = sum(j) T[i, j] * C[j, l]
output Y
"""
SERIAL = ff.Schedule.fuse("none").par(**{"T.i": 4}).lower(writers="once")


def compiled(schedule: ff.Schedule, machine: str = "rda") -> Compiled:
    program, rng = parse(TWO_PRODUCTS), np.random.default_rng(0)
    tensors = {t.name: (rng.random(t.shape) * (rng.random(t.shape) < 0.4)).astype(np.float32) for t in program.inputs}
    return ff.compile(program, tensors=tensors, schedule=schedule, machine=machine)


def depths(schedule: ff.Schedule, budget: str, machine: str = "rda") -> list[tuple[RegionDepth, ...]]:
    return depths_of(compiled(schedule, machine), budget)


def depths_of(program: Compiled, budget: str) -> list[tuple[RegionDepth, ...]]:
    estimates = TrialEstimates(program.source, program.machine, Budget.of(budget), Estimator())
    return list(region_depths(estimates, program.schedule))


def fifo_bytes(schedule: ff.Schedule, region: str) -> int:
    regions = compiled(schedule).estimate(Estimator()).regions
    (fifo,) = (each.resources.fifo for each in regions if each.name == region)
    assert fifo is not None
    return fifo


def test_the_two_deepest_that_have_room_in_each_region() -> None:
    of_t = fifo_bytes(SERIAL.depth("T", 1024), "T")
    assert fifo_bytes(SERIAL.depth("Y", 1024), "Y") < of_t < fifo_bytes(SERIAL.depth("Y", 4096), "Y")
    shallow, deep, deepest = 256, 1024, 4096

    def slots(budget: str) -> dict[str, list[int]]:
        return {options[0].region: [depth.slots for depth in options] for options in depths(SERIAL, budget)}

    assert slots(f"fifo={of_t}") == {"T": [shallow, deep], "Y": [shallow, deep]}
    assert slots(f"fifo={of_t - 1}") == {"T": [shallow], "Y": [shallow, deep]}
    assert slots("mul=64") == {"T": [deep, deepest], "Y": [deep, deepest]}
    assert slots("fifo=100") == {}


def test_of_a_region_with_deeper_ones_those_of_the_machine_are_tried_too() -> None:
    schedule = SERIAL.depth("T", 1024).depth("Y", 4096)
    of_machine = RegionDepth("T", None), RegionDepth("Y", None)
    assert depths(schedule, "mul=64") == [(of_machine[0], RegionDepth("T", 4096)), (of_machine[1],)]
    assert of_machine[0].added(schedule) == SERIAL.depth("Y", 4096)
    assert depths(SERIAL.depth("T", 16), "fifo=100") == []  # they are shallower than those of the machine


def test_a_machine_of_other_rules_has_none() -> None:
    assert depths(SERIAL, "mul=64", "comal") == []


def test_copies_have_none() -> None:
    """B is copied in another order, in a region of its own of which a schedule says nothing."""
    program, rng = (
        parse("tensor A[6, 6] csr\ntensor B[6, 6] csr\nT[i, j] = A[i, j] * B[j, i]\noutput T\n"),
        np.random.default_rng(0),
    )
    tensors = {name: (rng.random((6, 6)) < 0.5).astype(np.float32) for name in "AB"}
    copying = ff.compile(program, tensors=tensors, schedule=ff.Schedule.fuse("none"), machine="rda")
    assert [bool(region.einsums) for region in copying.regions] == [False, True]
    assert [options[0].region for options in depths_of(copying, "mul=64")] == ["T"]


def test_a_schedule_keeps_the_depth_of_single_fifos() -> None:
    schedule = RegionDepth("T", 256).added(SERIAL.depth("T/mul.0", 64))
    assert dict(schedule.depths) == {"T": 256, "T/mul.0": 64}


def test_of_schedules_that_take_as_many_cycles_the_one_with_smaller_fifos_is_chosen() -> None:
    deep, shallow, fast = (
        Trial(name, SERIAL.depth("T", slots), 100.0, Resources(fifo=64 * slots), cycles=cycles)
        for name, slots, cycles in (("a", 256, 90), ("b", 16, 90), ("c", 1024, 80))
    )
    assert [trial.name for trial in sorted((deep, shallow, fast), key=lambda trial: trial.rank)] == ["c", "b", "a"]


def test_a_search_takes_them_where_they_are_faster() -> None:
    text = "tensor W[2400, 8] csr\ntensor b[2400]\ntensor x[8]\nO[e] = sum(h) W[e, h] * x[h] + b[e]\noutput O\n"
    program, rng = parse(text), np.random.default_rng(0)
    tensors = {t.name: (rng.random(t.shape) * (rng.random(t.shape) < 0.6)).astype(np.float32) for t in program.inputs}
    shallow, deep = (
        ff.autoschedule(
            program, tensors=tensors, machine="rda", budget=budget, top=1, schedule=ff.Schedule.lower(writers="lanes")
        ).chosen
        for budget in ("mul=16,fifo=32KB", "mul=16,fifo=1MB")
    )
    assert shallow.schedule.depths == () and deep.schedule.depths
    assert shallow.cycles is not None and deep.cycles is not None
    assert deep.cycles < 0.95 * shallow.cycles and (deep.resources.fifo or 0) <= 1 << 20
