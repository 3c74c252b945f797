"""What a search within a budget chooses has room and is right, whatever the program. `tools/budget_check.py within` draws hundreds of
programs."""

from __future__ import annotations

import numpy as np
from budget_draws import BudgetDraw
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from random_programs import Case, cases

from fuseflow.errors import FuseFlowError
from fuseflow.frontend.source import Source


@seed(0)
@settings(max_examples=12, deadline=None, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
@given(cases(max_einsums=3), st.integers(0, 2**16))
def test_what_is_chosen_has_room_and_is_right(case: Case, draw: int) -> None:
    source = Source("random", case.program, case.tensors)
    search = BudgetDraw.of(source, np.random.default_rng(draw))
    try:
        choice = search.choice(source)
    except FuseFlowError as refusal:
        if "preload" in refusal.message or "split" in refusal.message:
            raise
        return
    assert not list(search.faults(source, choice))
