"""The nested product in all 24 loop orders: on both simulators, against the dense product, stored as the loops want it and by rows."""

from __future__ import annotations

from functools import cache, partial

import nested_matmul as study
import pytest
from click.testing import CliRunner
from measured import Differs, Run

SMALL = study.operands(nodes=8, columns=5, density=0.25)
small_point = cache(partial(study.measure, given=SMALL, machine="ideal"))
"""A point that is measured once: by form, order and whether there are copies."""
BETWEEN = {"(A B) C": {"kilj", "kjli"}, "A (B C)": {"jkil", "jlik"}}
"""Orders in which a factored form would read rows of D again that were summed outside the loop: the only refusals."""


@pytest.mark.parametrize("copies", [False, True], ids=["stored", "copies"])
@pytest.mark.parametrize("form", study.FORMS, ids=lambda form: form.name)
def test_every_order_agrees_with_the_dense_product_or_is_refused(form: study.Form, copies: bool):
    points = {order: small_point(form, order, copies=copies) for order in study.ORDERS}
    refused = {order: why for order, why in points.items() if isinstance(why, str)}
    assert refused.keys() == BETWEEN.get(form.name, set())
    assert all("between two of its levels" in why for why in refused.values())
    for order, run in points.items():
        if isinstance(run, Run):
            assert "".join(run.order) == order
            permuted = order.index("k") < order.index("i") or order.index("l") < order.index("j")
            assert (run.copies > 0) == (copies and permuted), order
            assert run.copies < run.cycles


def test_the_order_decides_by_more_than_ten_times_on_the_karate_club():
    club = study.operands()
    assert club["A"].sum() == 156
    form = next(form for form in study.FORMS if form.name == "(A B) C")
    best, worst = (study.measure(form, order, club, "ideal", copies=False) for order in ("ikjl", "iklj"))
    assert isinstance(best, Run)
    assert isinstance(worst, Run)
    assert worst.cycles > 10 * best.cycles


def test_wrong_values_are_noticed():
    squared = study.Form("squared", ("T[i, l] = sum(k, j) A[i, k] * B[k, j] * C[j, l] * C[j, l]",))
    with pytest.raises(Differs, match="wrong values"):
        study.measure(squared, "ikjl", SMALL, "ideal", copies=False)


def test_what_is_printed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(study, "operands", lambda seed: SMALL)
    monkeypatch.setattr(study, "measure", lambda form, order, given, machine, copies: small_point(form, order, copies=copies))
    result = CliRunner().invoke(study.main, ["--machine", "ideal"])
    assert result.exit_code == 0, result.output
    assert "the same cycles as A B C: (A B) C global\nthe same cycles as A B C: A (B C) global\n" in result.output
    assert result.output.count("\nrefused, ") == 4
    points = study.study(SMALL, ("ideal",), copies=False)
    for form in study.FORMS:
        found, spread = study.cycles(points, form.name, "ideal").values(), study.spread(points, form.name, "ideal")
        assert spread["all"] == max(found) / min(found) >= spread["plotted"]
