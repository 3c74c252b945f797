"""The figure of two parts of an operand: its rows are complete, what must hold does, and some rows are measured again."""

from __future__ import annotations

from itertools import product

import pytest
import sparta_figure16 as figure


def test_rows_are_complete():
    data = figure.collect()
    assert set(data) == {figure.key_of(*point) for point in product(figure.SIZES, figure.MACHINES, figure.SHARES, figure.WAYS)}
    assert "| 1024 | `ideal` | 30% | 4,195,600 |" in figure.table(data)


@pytest.mark.parametrize(
    ("key", "factor", "failed"),
    [
        (
            "1024/ideal/0.1/in sequence",
            1.25,
            ["cycles within 5 % of the 15 recorded, 1024 on `ideal`"],
        ),
        (
            "256/rda/0.2/together",
            2,
            ["cycles within 5 % of the 12 recorded, 256 on `rda`", "two parts together take fewer cycles"],
        ),
        ("256/ideal/0.3/together, bytes", 4, ["blocks of bytes take fewer cycles than blocks of floats, 256 on `ideal`"]),
    ],
)
def test_a_row_that_is_off_is_found(key: str, factor: float, failed: list[str]):
    data = figure.collect()
    before = figure.checks(data)
    data[key] *= factor
    found = [now.what for was, now in zip(before, figure.checks(data), strict=True) if was.holds and not now.holds]
    assert len(found) == len(failed) and all(what.startswith(start) for what, start in zip(found, failed, strict=True))


def test_what_is_missing_is_not_run():
    assert {check.holds for check in figure.checks({})} == {None}


@pytest.mark.parametrize("way", figure.WAYS)
def test_a_row_is_measured_again(way: str):
    assert figure.measured(256, "ideal", 0.1, way)["cycles"] == figure.collect()[figure.key_of(256, "ideal", 0.1, way)]
