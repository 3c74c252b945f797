"""The figures after STen: the page and the pictures say what the committed rows say, and what must hold holds."""

from __future__ import annotations

import copy
from pathlib import Path

import frame
import pytest
import sten
import sten_figure7
import sten_figure10
import sten_table2
import tiny_task
import torch
from click.testing import CliRunner

REDO = "redo it: python tools/figures/sten.py --write"
FIGURES = pytest.mark.parametrize("figure", sten.FIGURES, ids=lambda figure: figure.name)
DRAWN = pytest.mark.parametrize("figure", [figure for figure in sten.FIGURES if figure.draw], ids=lambda figure: figure.name)


def test_the_page_has_what_the_rows_say():
    page = sten.PAGE.read_text(encoding="utf-8")
    assert sten.page_of(page) == page, REDO


@DRAWN
def test_the_picture_is_of_these_rows(figure: frame.Figure):
    picture = (frame.PICTURES / f"{figure.name}.svg").read_text(encoding="utf-8")
    assert f"data {frame.digest(figure.collect())}<" in picture, REDO


@FIGURES
def test_all_that_must_hold_does(figure: frame.Figure):
    result = CliRunner().invoke(frame.command(figure), ["--check"])
    assert result.exit_code == 0 and "holds" in result.output


@DRAWN
def test_a_picture_is_the_same_each_time(figure: frame.Figure, tmp_path: Path):
    for name in ("a.svg", "b.svg"):
        frame.drawn(figure, figure.collect(), tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


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
    monkeypatch.setattr(sten_figure7, "ROWS", tmp_path)
    monkeypatch.setattr(sten_figure7, "SHAPES", {"192 x 768": (192, 768)})
    monkeypatch.setattr(sten_figure7, "PATTERNS", ((2, 4),))
    expected = sten_figure7.collect()["192 x 768 2:4"]["energy"]
    sten_figure7.run(frame.Options(None, (), 60))
    monkeypatch.setattr(frame, "ROWS", tmp_path)
    ((key, row),) = sten_figure7.collect().items()
    assert key == "192 x 768 2:4" and row["energy"] == pytest.approx(expected, abs=2e-5)


def test_the_command_of_all_figures():
    result = CliRunner().invoke(sten.main, ["--check"])
    assert result.exit_code == 0
    verdicts = [line.rpartition(": ")[2] for line in result.output.splitlines()]
    assert len(verdicts) >= len(sten.FIGURES) and set(verdicts) == {"True"}


@pytest.mark.slow
def test_training_gives_the_accuracies_of_the_rows():
    torch.set_num_threads(1)
    row = sten_table2.row_of(tiny_task.task(), seed=1)
    committed = frame.rows(sten_table2.STORE)["seed 1"]
    assert row["dense"] == pytest.approx(committed["dense"], abs=0.03)
    assert row["tuned"] == pytest.approx(committed["tuned"], abs=0.03)
