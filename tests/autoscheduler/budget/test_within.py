"""No schedule exceeds its budget, whatever the program: what the compiled graphs occupy is added up again. `tools/budget_check.py within`
draws hundreds of programs."""

from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from random_programs import Case, cases

from fuseflow.autoscheduler.budget.budget_schedule import budget_schedule
from fuseflow.autoscheduler.budget.buffers import with_sizes
from fuseflow.autoscheduler.budget.request import BudgetRequest
from fuseflow.compiler import compile_source
from fuseflow.errors import FuseFlowError
from fuseflow.estimate.program import Estimator
from fuseflow.frontend.source import Source
from fuseflow.resources.budget import Budget
from fuseflow.schedule import Schedule
from fuseflow.sim import load_machine

MACHINES = [load_machine("rda"), load_machine("ideal")]


@seed(0)
@settings(max_examples=12, deadline=None, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
@given(cases(max_einsums=3), st.integers(0, 2**16))
def test_no_schedule_exceeds_its_budget(case: Case, draw: int) -> None:
    rng = np.random.default_rng(draw)
    limits = {"mul": int(rng.integers(1, 6)), "port": int(rng.integers(8, 50)), "fifo": int(rng.integers(8, 64)) * 1024}
    limits |= {"buffer": int(rng.integers(1, 64)) * 64}
    budget = Budget.of({name: limits[name] for name in limits if rng.random() < 0.6} or {"mul": 2})
    allow = frozenset(lever for lever in ("buffers", "preloads") if rng.random() < 0.5)
    machine, source = MACHINES[int(rng.integers(2))], Source("random", case.program, case.tensors)
    names = [tensor.name for tensor in case.program.inputs if rng.random() < 0.3]
    base = with_sizes(Schedule(), {name: 64 * int(rng.integers(1, 9)) for name in names})
    top = int(rng.random() < 0.3)
    allow |= {"splits"} if top else set()
    try:
        choice = budget_schedule(source, base, machine, BudgetRequest(budget, allow=allow, top=top))
    except FuseFlowError as refusal:
        if "preload" in refusal.message:
            raise
        return
    estimate = compile_source(source, choice.schedule, machine).estimate(Estimator(assume_unknown=True))
    assert not any(budget.exceeded(region.resources) for region in estimate.regions)
    assert not choice.chosen.refused
    if choice.chosen.cycles is not None:
        result = choice.run(check=False)
        assert result.cycles == choice.chosen.cycles
        assert not any(budget.exceeded(region.resources) for region in result.regions)
