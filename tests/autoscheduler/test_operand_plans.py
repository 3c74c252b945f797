"""The plan that `auto` chooses, against twenty plans that are simulated one by one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

import fuseflow as ff
from fuseflow.autoscheduler.autoscheduler import ScheduleChoice, choose_schedule
from fuseflow.compiler import compile_source
from fuseflow.einsum.parse import parse
from fuseflow.errors import PlanError, ScheduleError
from fuseflow.frontend.model_spec import ModelSpec
from fuseflow.frontend.sources import Source, load
from fuseflow.schedule import Schedule
from fuseflow.sim import Machine, load_machine

N = 64
PROGRAM = f"""
tensor X[{N}, {N}] dense block 32x1
tensor W[{N}, {N}] csr
Y[i, j] = sum(k) X[i, k] * W[k, j]
output Y
"""
SINGLE = ["elements", "2x2", "4x4", "8x8", "16x16", "32x32", "1x8", "8x1", "1x32", "32x1"]
PAIRS = [("2x2", "elements"), ("4x4", "elements"), ("8x8", "elements"), ("16x16", "elements"), ("32x32", "elements")]
PAIRS += [("8x8", "2x2"), ("32x32", "4x4"), ("16x16", "8x1"), ("32x1", "elements"), ("1x8", "elements")]


def operands(kind: str, seed: int) -> Source:
    """A product with a weight of each kind: whole blocks with single entries between, single entries, or columns of entries."""
    rng = np.random.default_rng(seed)
    blocks = np.kron(rng.random((N // 16, N // 16)) < 0.3, np.ones((16, 16), bool))
    columns = np.kron(rng.random((N // 32, N)) < 0.2, np.ones((32, 1), bool))
    single = rng.random((N, N)) < 0.02
    kept = {"blocks": blocks | single, "entries": single, "columns": columns}[kind]
    weight: NDArray[np.float64] = np.where(kept, rng.normal(size=(N, N)), 0)
    return load(ModelSpec(parse(PROGRAM), tensors={"X": rng.normal(size=(N, N)), "W": weight}))


def twenty() -> list[Schedule]:
    """Plans by hand, each on two product units: one format on two lanes, or two formats."""
    texts = [f"par: {{i: 2}}\nplan: {{W: [{{form: {form}}}]}}" for form in SINGLE]
    texts += [f"plan: {{W: [{{form: {one}}}, {{form: {other}}}]}}" for one, other in PAIRS]
    return [Schedule.from_yaml(text) for text in texts]


def chosen(source: Source, machine: Machine, top: int = 3) -> ScheduleChoice:
    return choose_schedule(source, Schedule.from_yaml("plan: auto"), machine, top=top)


@pytest.mark.parametrize(
    ("kind", "machine"),
    [
        ("blocks", "rda"),
        ("entries", "ideal"),
        ("columns", "ideal"),
        *(pytest.param(*more, marks=pytest.mark.slow) for more in (("blocks", "ideal"), ("entries", "rda"), ("columns", "rda"))),
    ],
)
def test_it_is_within_two_percent_of_twenty_plans_and_never_slower_than_none(kind: str, machine: str) -> None:
    source, hardware = operands(kind, 0), load_machine(machine)
    best = min(compile_source(source, schedule, hardware).run(check=False).cycles for schedule in twenty())
    choice = chosen(source, hardware)
    cycles = choice.run().cycles
    assert cycles <= 1.02 * best
    assert cycles <= compile_source(source, Schedule(), hardware).run(check=False).cycles
    assert [trial.cycles for trial in choice.plans if trial.chosen] == [cycles]
    assert choice.plans[0].name == "no change" and choice.plans[0].cycles


def test_the_chosen_schedule_is_whole_and_gives_the_same_cycles() -> None:
    source, machine = operands("blocks", 1), load_machine("ideal")
    choice = chosen(source, machine)
    schedule = Schedule.from_yaml(choice.schedule.to_yaml())
    assert not schedule.open and schedule.plan == choice.schedule.plan
    assert compile_source(source, schedule, machine).run().cycles == choice.run().cycles
    assert [trial.to_json()["name"] for trial in choice.plans] == [row["name"] for row in choice.to_json()["plans"]]


def test_lanes_that_the_user_deals_stay() -> None:
    source, machine = operands("blocks", 2), load_machine("ideal")
    schedule = replace(Schedule.from_yaml("plan: auto"), parallel=(("i", 4),))
    choice = choose_schedule(source, schedule, machine, top=0)
    assert choice.schedule.parallel == (("i", 4),) and not any("lanes" in trial.name for trial in choice.plans)


def test_it_is_chosen_after_what_is_fused_and_before_the_orders() -> None:
    source, machine = operands("blocks", 3), load_machine("ideal")
    choice = choose_schedule(source, Schedule.from_yaml("{fuse: [auto], order: auto, plan: auto}"), machine, top=0)
    assert choice.partitions and choice.plans and choice.orders and not choice.schedule.open


def test_a_program_without_sparse_factors_stays_as_it_is() -> None:
    program = parse("tensor A[4, 4] dense\ntensor B[4, 4] csr\nY[i, j] = A[i, j] + B[i, j]\noutput Y")
    source = load(ModelSpec(program, tensors={"A": np.ones((4, 4)), "B": np.eye(4)}))
    choice = chosen(source, load_machine("ideal"))
    assert [trial.name for trial in choice.plans] == ["no change"] and not choice.schedule.plan


def test_a_plan_that_is_open_cannot_be_compiled() -> None:
    with pytest.raises(ScheduleError, match="`plan: auto` is still to be chosen"):
        ff.compile(parse(PROGRAM), schedule=Schedule.from_yaml("plan: auto"))
    with pytest.raises(PlanError, match="still to be chosen"):
        compile_source(operands("entries", 4), Schedule.from_yaml("plan: auto"), load_machine("ideal"))
