"""Reuse buffers that a search within a budget chooses: what has them, how large they are, and that they have room."""

from __future__ import annotations

import numpy as np
import pytest

from fuseflow.autoscheduler.budget.budget_schedule import budget_schedule
from fuseflow.autoscheduler.budget.buffers import BufferChoice, BufferSizes
from fuseflow.autoscheduler.budget.request import BudgetRequest
from fuseflow.compiler import compile_source
from fuseflow.einsum.parse import parse
from fuseflow.estimate.program import Estimator
from fuseflow.frontend.source import Source
from fuseflow.lower.partition import partition_program
from fuseflow.resources.budget import Budget
from fuseflow.schedule import Schedule
from fuseflow.sim import Machine, load_machine
from fuseflow.tensors import Format, pack

RDA, IDEAL = load_machine("rda"), load_machine("ideal")
WHOLE = 128 * 32 * 4
"""The bytes of W."""
PROGRAM = """
program p
tensor X[160, 128] csr
tensor W[128, 32] dense
T[i, f] = sum(k) X[i, k] * W[k, f]
Y[i, f] = relu(T[i, f])
output Y
"""


def source_of(program: str = PROGRAM, share: float = 0.2) -> Source:
    rng = np.random.default_rng(0)
    arrays = {"X": rng.normal(size=(160, 128)) * (rng.random((160, 128)) < share), "W": rng.normal(size=(128, 32))}
    formats = {"X": "csr", "W": "dense"}
    return Source("p", parse(program), {name: pack(arrays[name], Format.parse(formats[name], 2)) for name in arrays})


def chosen(schedule: Schedule, budget: str = "mul=64", machine: Machine = RDA, source: Source | None = None) -> BufferSizes:
    source = source or source_of()
    compiled, estimator = compile_source(source, schedule, machine), Estimator(assume_unknown=True)
    return BufferChoice(compiled, partition_program(source.program, schedule), estimator, Budget.parse(budget)).of_least_traffic()


@pytest.mark.parametrize(
    ("format", "order", "least", "most"),
    [
        pytest.param("csr", "ikf", WHOLE, WHOLE, id="each row of X chooses rows of W anew"),
        pytest.param("csc", "kif", 128, 256, id="a row of W is read again one after the other"),
    ],
)
def test_a_buffer_holds_what_is_read_again_and_no_more(format: str, order: str, least: int, most: int) -> None:
    schedule = Schedule.fuse("none").format("X", format).order("T", tuple(order))
    assert least <= chosen(schedule)["W"] <= most


def test_what_is_read_once_has_none_and_a_memory_that_answers_at_once_needs_none() -> None:
    assert set(chosen(Schedule.fuse("none"))) == {"W"}
    assert not chosen(Schedule.fuse("none"), machine=IDEAL)


def test_buffers_have_room_in_the_budget_in_all_lanes_together() -> None:
    lanes = Schedule.fuse("none").par(**{"T.i": 4})
    assert chosen(lanes, f"buffer={4 * WHOLE}") == {"W": WHOLE}
    less = chosen(lanes, f"buffer={4 * WHOLE - 1}")
    assert less.get("W", 0) < WHOLE


def test_buffers_of_the_schedule_stay() -> None:
    assert "W" not in chosen(Schedule.fuse("none").buffer("W", 128))


def test_a_search_takes_them_where_they_are_allowed_and_computes_the_same() -> None:
    source, budget, vectors = source_of(), Budget.parse("mul=128,buffer=64KB"), Schedule().block("W", 1, 32)
    plain = budget_schedule(source, vectors, RDA, BudgetRequest(budget, top=1))
    choice = budget_schedule(source, vectors, RDA, BudgetRequest(budget, allow=frozenset({"buffers"}), top=1))
    assert not plain.schedule.buffers
    assert set(dict(choice.schedule.buffers)) == {"W"}
    assert choice.chosen.cycles is not None and plain.chosen.cycles is not None
    assert choice.chosen.cycles < plain.chosen.cycles
    assert choice.chosen.resources.buffer <= 64 * 1024
    assert next(lever.without for lever in choice.levers if lever.name == "buffers") > choice.chosen.estimate
    assert choice.unfused is not None and not choice.unfused.schedule.buffers
    run = compile_source(source, choice.schedule, RDA).run()
    assert run.check is not None and run.check.passed


def test_a_buffer_of_what_is_passed_on_inside_of_a_region_is_left_out() -> None:
    """Buffers are those of a variant, in which T may be stored or not."""
    program = """
    program p
    tensor X[160, 128] csr
    tensor W[128, 32] dense
    tensor A[160, 160] csr
    T[i, f] = sum(k) X[i, k] * W[k, f]
    Y[i, f] = sum(j) A[i, j] * T[j, f]
    output Y
    """
    rng = np.random.default_rng(1)
    adjacency = (rng.random((160, 160)) < 0.1).astype(float)
    plain = source_of()
    source = Source("p", parse(program), {**plain.tensors, "A": pack(adjacency, Format.parse("csr", 2))})
    request = BudgetRequest(Budget.parse("mul=32,buffer=64KB"), allow=frozenset({"buffers"}), top=0, tried=1)
    choice = budget_schedule(source, Schedule(), RDA, request)
    refused = [trial.refused for trial in choice.trials if trial.refused]
    assert not refused
    assert any(dict(trial.schedule.buffers) for trial in choice.trials)
