"""The nested product in all 24 loop orders: on both simulators, against the dense product, stored as the loops want it and by rows."""

from __future__ import annotations

import json
from functools import cache, partial
from pathlib import Path

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


def test_figures_and_what_is_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(study, "operands", lambda seed: SMALL)
    monkeypatch.setattr(study, "measure", lambda form, order, given, machine, copies: small_point(form, order, copies=copies))
    result = CliRunner().invoke(study.main, ["--machine", "ideal", "--json", str(tmp_path / "figures.json")])
    assert result.exit_code == 0, result.output
    assert "the same cycles as A B C: (A B) C global\nthe same cycles as A B C: A (B C) global\n" in result.output
    assert result.output.count("\nrefused, ") == 4
    figures = json.loads((tmp_path / "figures.json").read_text())
    assert len(figures["points"]) == len(study.ORDERS) * len(study.FORMS)
    assert sum(point["plotted"] for point in figures["points"]) == 15 * len(study.FORMS)
    for spread in figures["spread"]:
        found = [p["cycles"] for p in figures["points"] if p["form"] == spread["form"] and "cycles" in p]
        assert spread["all"] == max(found) / min(found) >= spread["plotted"]


def test_picture(tmp_path: Path):
    pytest.importorskip("matplotlib")
    points = {
        (f.name, o, "ideal"): Run(tuple(o), 1000 + n, 0, 1, 1, 1, 1) for n, o in enumerate(study.ORDERS) for f in study.FORMS
    }
    study.plot(points, ("ideal",), study.blank_figure(11, 3.5), str(tmp_path / "picture.svg"))
    assert (tmp_path / "picture.svg").read_text().startswith("<?xml")
