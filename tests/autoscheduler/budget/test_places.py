"""The scratchpad in a search within a budget: what is placed in it, what is tiled, and that nothing is slower for it."""

from __future__ import annotations

import numpy as np
import pytest

from fuseflow.autoscheduler.budget.places import ScratchpadCandidates
from fuseflow.autoscheduler.budget.request import BudgetRequest
from fuseflow.autoscheduler.budget.scheduler import budget_schedule
from fuseflow.compiler import compile_source
from fuseflow.einsum.parse import parse
from fuseflow.frontend.imported_program import Source
from fuseflow.resources.budget import Budget
from fuseflow.schedule import Schedule
from fuseflow.sim import Machine, load_machine
from fuseflow.tensors import Format, pack

PROGRAM = """
program p
tensor X[160, 128] csr
tensor W[128, 32] dense
T[i, f] = sum(k) X[i, k] * W[k, f]
Y[i, f] = relu(T[i, f])
output Y
"""
WHOLE = 128 * 32 * 4
"""The bytes of W."""
ORDER = Schedule.fuse("none").order("T", "i,k,f")


def source_of() -> Source:
    rng = np.random.default_rng(0)
    arrays = {"X": rng.normal(size=(160, 128)) * (rng.random((160, 128)) < 0.2), "W": rng.normal(size=(128, 32))}
    formats = {"X": "csr", "W": "dense"}
    return Source("p", parse(PROGRAM), {name: pack(arrays[name], Format.parse(formats[name], 2)) for name in arrays})


def machine(size: int) -> Machine:
    return load_machine("rda", {"scratchpad": size})


def options(size: int, buffer: float = float("inf")) -> list[tuple[str, dict[str, str], dict[str, int]]]:
    compiled = compile_source(source_of(), ORDER, machine(size))
    found = ScratchpadCandidates.of(compiled, compiled.estimate(), buffer).options()
    return [(how, dict(schedule.memories), dict(schedule.tiles)) for how, schedule in found]


def test_what_is_read_again_and_again_is_placed_where_it_fits() -> None:
    assert options(WHOLE) == [("in the scratchpad", {"W": "scratchpad"}, {})]


def test_what_does_not_fit_is_tiled_with_two_tiles_in_the_scratchpad() -> None:
    assert options(WHOLE // 2) == [("W in tiles of f", {"W": "scratchpad"}, {"T.f": 8})]


@pytest.mark.parametrize(("size", "buffer"), [(64, float("inf")), (WHOLE, 64)])
def test_nothing_is_placed_without_room(size: int, buffer: float) -> None:
    assert not options(size, buffer)


@pytest.mark.parametrize("size", [WHOLE, WHOLE // 2])
def test_a_search_is_never_slower_with_places(size: int) -> None:
    source, at, vectors = source_of(), machine(size), Schedule().block("W", 1, 32)
    budget = Budget.parse("mul=64,buffer=64KB")
    plain = budget_schedule(source, vectors, at, BudgetRequest(budget, top=1))
    choice = budget_schedule(source, vectors, at, BudgetRequest(budget, allow=frozenset({"places"}), top=1))
    assert not plain.schedule.memories
    assert choice.chosen.cycles is not None and plain.chosen.cycles is not None
    assert choice.chosen.cycles <= plain.chosen.cycles
    if size == WHOLE:
        assert dict(choice.schedule.memories) == {"W": "scratchpad"}
    run = compile_source(source, choice.schedule, at).run()
    assert run.check is not None and run.check.passed and run.cycles == choice.chosen.cycles
