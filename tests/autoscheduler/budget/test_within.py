"""What a search within a budget chooses has room and is right, whatever the program."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from budget_draws import BudgetDraw
from hypothesis import HealthCheck, Phase, given, seed, settings
from random_programs import Case, cases

from fuseflow.errors import UsageError
from fuseflow.frontend.imported_program import Source

EVERY = settings(deadline=None, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))


def check(case: Case, simulated: float) -> None:
    source = Source("random", case.program, case.tensors)
    search = BudgetDraw.of(source, simulated=simulated)
    try:
        choice = search.choice(source)
    except UsageError:  # nothing has room
        return
    assert not list(search.faults(source, choice))


@seed(0)
@settings(EVERY, max_examples=5)
@given(cases(max_einsums=3))
def test_what_is_chosen_has_room_and_is_right(case: Case) -> None:
    check(case, 0.6)


@pytest.mark.slow
def test_what_is_chosen_for_many_programs_has_room_and_is_right(draws: Callable[[int], range]) -> None:
    many = settings(EVERY, max_examples=len(draws(500)))
    seed(draws(500).start)(many(given(cases(max_einsums=4))(lambda case: check(case, 0.3))))()
