"""What a search within a budget chooses has room and is right, whatever the program. `tools/budget_check.py within` draws hundreds of
programs."""

from __future__ import annotations

from budget_draws import BudgetDraw
from hypothesis import HealthCheck, Phase, given, seed, settings
from random_programs import Case, cases

from fuseflow.errors import UsageError
from fuseflow.frontend.source import Source


@seed(0)
@settings(max_examples=12, deadline=None, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
@given(cases(max_einsums=3))
def test_what_is_chosen_has_room_and_is_right(case: Case) -> None:
    source = Source("random", case.program, case.tensors)
    search = BudgetDraw.of(source, simulated=0.6)
    try:
        choice = search.choice(source)
    except UsageError:  # nothing has room
        return
    assert not list(search.faults(source, choice))
