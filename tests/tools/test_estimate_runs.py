"""The runs of the estimate: every point has a row, and a row is a run that can be made again."""

from __future__ import annotations

from dataclasses import replace

import estimate_runs as study
import pytest
from store import load


def test_every_point_has_a_row():
    points, rows = list(study.points()), load(study.ROWS, study.Row)
    assert {point.key for point in points} == rows.keys() and len(points) >= 60
    for family in ("gcn", "graphsage", "sae", "gpt"):
        lanes = {point.lanes for point in points if point.family == family}
        assert min(lanes) == 1 and max(lanes) >= 16


def test_points_that_are_held_out_have_rows_and_are_others():
    held_out = {point.key for point in study.held_out_points()}
    assert held_out == load(study.HELD_OUT, study.Row).keys() and len(held_out) == 31
    assert not held_out & load(study.ROWS, study.Row).keys()


def test_every_program_has_a_row_at_each_memory_that_refreshes_one_bank_at_a_time():
    points = {point.key: point for point in study.per_bank_points()}
    assert points.keys() == load(study.PER_BANK_ROWS, study.Row).keys() and len(points) == 64
    assert all(point.settings["memory.refresh"] == "per-bank" for point in points.values())
    compared = [study.Comparison(point, 100, 90.0, 96.0) for point in points.values()]
    assert study.per_bank_table(compared).splitlines()[-1] == "| all | 64 | 4.0 % | 4.0 % |"


def test_a_run_and_its_estimate():
    point = study.Point("gcn", "random:nodes=12,features=6,classes=3", "partial", 2, ("layer1.i=2",))
    row = study.run(point, None)
    (compared,) = study.comparisons([row], None)
    assert compared.cycles == sum(row.cycles.values()) and compared.then == compared.now
    assert study.run(replace(point, par=()), None).cycles != row.cycles


def test_what_is_above_a_bar_is_said():
    point = study.Point("gcn", "cora", "partial")
    near = [study.Comparison(point, cycles, 1.0, cycles * 1.01) for cycles in (100, 200, 300)]
    assert study.misses(near) == []
    (worst, tau) = study.misses([*near, study.Comparison(point, 400, 1.0, 90.0)])
    assert worst == "the worst error is 77.5 %, more than 20 %" and "tau is 0.00, less than 0.9" in tau
    assert study.figures(near, "now")["median"] == pytest.approx(1.0)
