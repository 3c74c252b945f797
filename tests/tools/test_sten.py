"""The figures after STen: what is off is found, and rows are computed again as they are."""

from __future__ import annotations

import copy
from pathlib import Path

import frame
import pytest
import sten_figure7
import sten_figure10
import sten_table2
import store
import tiny_task
import torch


def test_an_order_that_is_another_is_seen():
    data = copy.deepcopy(sten_figure7.collect())
    row = next(iter(data.values()))
    row["energy"]["n:m"] = row["energy"]["unstructured"] + 0.01
    assert [check.holds for check in sten_figure7.checks(data)] == [False]
    data = copy.deepcopy(sten_figure10.collect())
    data["nm/0.5"]["bytes"] = data["csr/0.5"]["bytes"]
    assert [check.holds for check in sten_figure10.checks(data)] == [False, True]


def test_a_point_that_is_missing_is_no_failure():
    data = {key: row for key, row in sten_figure10.collect().items() if key != "nm/0.5"}
    assert False not in [check.holds for check in sten_figure10.checks(data)]
    assert sten_figure10.table(data).splitlines()[2].startswith("| 50.0% | 2:4 |")


def test_rows_are_computed_again_as_they_are(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(sten_figure7, "SHAPES", {"192 x 768": (192, 768)})
    monkeypatch.setattr(sten_figure7, "PATTERNS", ((2, 4),))
    expected = sten_figure7.collect()["192 x 768 2:4"]["energy"]
    monkeypatch.setattr(store, "ROWS", tmp_path)
    sten_figure7.run(frame.Options(None, (), 60))
    ((key, row),) = sten_figure7.collect().items()
    assert key == "192 x 768 2:4" and row["energy"] == pytest.approx(expected, abs=2e-5)


@pytest.mark.slow
def test_training_gives_the_accuracies_of_the_rows():
    torch.set_num_threads(1)
    row = sten_table2.row_of(tiny_task.task(), seed=1)
    committed = store.rows(sten_table2.STORE)["seed 1"]
    assert row["dense"] == pytest.approx(committed["dense"], abs=0.03)
    assert row["tuned"] == pytest.approx(committed["tuned"], abs=0.03)
