"""The figures of the paper: what is committed says what the rows say, and pictures show nothing else."""

from __future__ import annotations

import itertools
import json
import shutil
from pathlib import Path

import claims
import figure4b
import figure12
import figure14
import figures
import frame
import pytest
import store
import table3
from click.testing import CliRunner

import fuseflow as ff
from fuseflow.frontend.model_spec import ModelSpec

REDO = "redo it: python evaluation/figures.py --write"
FIGURES = list(figures.FIGURES.values())
DRAWN = [figure for figure in FIGURES if figure.draw]


@pytest.fixture(scope="module")
def collected() -> dict[str, frame.Data]:
    return {figure.name: figure.collect() for figure in FIGURES}


@pytest.mark.parametrize("page", figures.PAGES, ids=lambda path: path.name)
def test_a_page_has_what_the_rows_say(page: Path, collected: dict[str, frame.Data]):
    assert figures.written(page, collected) == page.read_text(encoding="utf-8"), REDO


@pytest.mark.parametrize("figure", DRAWN, ids=lambda figure: figure.name)
def test_the_picture_is_of_these_rows(figure: frame.Figure, collected: dict[str, frame.Data]):
    picture = (frame.PICTURES / f"{figure.name}.svg").read_text(encoding="utf-8")
    assert f"data {frame.digest(collected[figure.name])}<" in picture, REDO


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.name)
def test_what_differs_is_explained(figure: frame.Figure, collected: dict[str, frame.Data]):
    checks = figure.checks(collected[figure.name])
    assert any(check.holds for check in checks) and claims.unexplained(figure.name, checks) == []
    assert set(claims.reasons(figure.name)) <= {check.what for check in checks}


def test_a_difference_without_a_reason_is_found_and_a_reason_without_a_difference(collected: dict[str, frame.Data]):
    data = json.loads(json.dumps(collected["figure12"]))
    data["cycles"]["comal"]["gcn/cora"]["full"] = 1
    said = [check.what for check in claims.unexplained("figure12", figure12.checks(data))]
    assert said[0] == "GCN, comal: full < unfused < partial"
    data = json.loads(json.dumps(collected["figure4b"]))
    data["cycles"]["partial"] = data["cycles"]["unfused"] / data["published"]["fuseflow"]
    assert "fuseflow over unfused" in [check.what for check in claims.unexplained("figure4b", figure4b.checks(data))]


@pytest.mark.parametrize(("factor", "holds"), [(1, True), (1.049, True), (0.951, True), (1.06, False), (0.94, False)])
def test_as_published_is_within_a_twentieth(factor: float, holds: bool):
    check = claims.as_published("a number", 29 * factor, 29.0, 1)
    assert (check.holds, check.published) == (holds, "29.0")


def test_a_picture_is_the_same_each_time(collected: dict[str, frame.Data], tmp_path: Path):
    for name in ("a.svg", "b.svg"):
        frame.drawn(figure4b.FIGURE, collected["figure4b"], tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def heights(data: frame.Data, panel: int = 0) -> list[float]:
    """Of the bars of figure 12."""
    blank = frame.blank_figure(9, 4)
    figure12.draw(data, blank)
    return [bar.get_height() + 1 for bar in blank.axes[panel].patches]


def test_bars_are_rows_and_diamonds_are_published(
    collected: dict[str, frame.Data], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    before = collected["figure12"]
    raw = store.rows("models")
    fused = [raw["gcn/cora/unfused/comal"]["cycles"] / raw[f"gcn/cora/{g}/comal"]["cycles"] for g in ("partial", "full")]
    assert all(any(abs(bar - speed) < 1e-9 for bar in heights(before)) for speed in fused)
    assert heights({**before, "published": {w: [9, 3, 1] for w in before["published"]}}) == heights(before)
    shutil.copytree(store.ROWS, tmp_path / "rows")
    with (tmp_path / "rows" / "models.jsonl").open("a") as stream:
        row = raw["gcn/cora/full/comal"]
        stream.write(json.dumps({**row, "cycles": 2 * row["cycles"]}) + "\n")
    monkeypatch.setattr(store, "ROWS", tmp_path / "rows")
    after = figure12.collect()
    assert frame.digest(after) != frame.digest(before)
    changed = [(a, b) for a, b in zip(heights(before), heights(after), strict=True) if a != b]
    assert changed == [(pytest.approx(fused[1]), pytest.approx(fused[1] / 2))]


@pytest.mark.parametrize("figure", figures.PAGES[figures.PAGE], ids=lambda figure: figure.name)
def test_without_rows_nothing_is_judged(figure: frame.Figure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(store, "ROWS", tmp_path)
    data = figure.collect()
    assert figure.table(data).count("\n") > 2
    assert {check.holds for check in figure.checks(data)} <= {None}
    if figure.draw:
        figure.draw(data, frame.blank_figure(9, 4))


def test_commands(tmp_path: Path):
    def call(name: str, *args: str):
        return CliRunner().invoke(figures.main, [name, *args])

    printed = call("table3")
    assert printed.exit_code == 0 and "63,063,000" in printed.output and "| holds |" in printed.output
    assert call("figure13", "--check").exit_code == 0 and call("figure4b", "--check").exit_code == 1
    assert CliRunner().invoke(figures.main, ["--check"]).exit_code == 0
    for args, why in (
        (("table2", "--run"), "estimate_errors.py"),
        (("table3", "--plot", "x.svg"), "no picture"),
        (("figure12", "--only", "gcn/*"), "add --run"),
    ):
        refused = call(*args)
        assert refused.exit_code == 2 and why in refused.output
    picture = tmp_path / "figure.png"
    assert call("figure4b", "--plot", str(picture)).exit_code == 0 and picture.stat().st_size > 10_000


@pytest.mark.parametrize("model", table3.MODELS)
def test_orders_are_counted(model: str):
    counted, committed = table3.count(model), store.rows("orders")[model]
    assert {**counted, "milliseconds": 0} == {**committed, "milliseconds": 0}


def test_counts_of_figure_14_are_those_of_runs():
    """On a small graph; the committed rows say so of the paper's."""
    data = "random:nodes=40,features=20"
    for row in figure14.count(data, list(figure14.CONFIGURATIONS)):
        configuration = row["key"].rpartition("/")[2]
        schedule = ff.Schedule.load(frame.ROOT / "schedules" / "paper" / "figure14" / f"{configuration}.yaml")
        model = frame.ROOT / "models" / "paper" / "gcn.py"
        ran = ff.compile(model, data=data, schedule=schedule, machine="comal").run().stats
        assert row["exact"] and row["flops"] == ran["flops"]
        assert row["arrays"] == figure14.model_runs.by_array(ran["bytes"]["by_tensor"])


def test_joinings_of_figure_4b():
    source = figure4b.load_model(ModelSpec(frame.ROOT / "models" / "paper" / "gcn.py", data="karate"))
    first, second = itertools.islice(figure4b.joinings(source), 2)
    assert first["joined"] == "T0 T1 T2 H T4 T5 T6 m S E Y" and second["joined"] == "T0 T1 T2 H T4 T5 T6 | m S E Y"
    assert first["iteration"] == "global" and first["cycles"] > 0
    rows = store.rows("joinings").values()
    assert len(rows) == 256 and len({row["joined"] for row in rows}) == 128
