"""The key `sparsity` of sweep files: the points that it makes, what their results say of it, and the figure of them."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from click.testing import CliRunner
from sweeps import InProcessRunner, opened, write_program

from fuseflow.cli.main import main
from fuseflow.errors import FuseFlowError
from fuseflow.report.sweep_plot import sparsity_axis
from fuseflow.sweep.sweep import Sweep

MODEL = """\
import torch
from torch import nn

def build(*, hidden: int = 8):
    return nn.Sequential(nn.Linear(6, hidden), nn.ReLU(), nn.Linear(hidden, 4)), (torch.ones(3, 6),)
"""
HALF = "weights:\n  '*.weight': {sparsifier: magnitude:0.5, layout: csr}\n"
HEAD = "model: m.py\nmode: estimate\n"
FIGURE = f"""{HEAD}sparsity:
  - dense
  - '*.weight=magnitude:0.5:csr'
  - '*.weight=magnitude:0.75:csr'
  - '*.weight=nm:2:4'
  - '*.weight=threshold:0.1'
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_files(tmp_path)
    return tmp_path


def write_files(folder: Path) -> None:
    write_program(folder)
    (folder / "m.py").write_text(MODEL)
    (folder / "half.yaml").write_text(HALF)


def labels(sweep: Sweep) -> list[str]:
    return [place.labels["sparsity"] for place in sweep.space.points]


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a sweep that was run, `s.yaml`, and its store."""
    folder = tmp_path_factory.mktemp("swept")
    write_files(folder)
    sweep = opened(folder, FIGURE)
    sweep.run(InProcessRunner())
    sweep.store.close()
    return folder


def test_an_entry_is_a_rule_a_file_or_a_mapping(folder: Path) -> None:
    sweep = opened(folder, HEAD + "sparsity: [dense, half.yaml, '*.weight=nm:2:4', {0.weight: 'nm:1:2', 2.weight: 'nm:1:4'}]\n")
    assert labels(sweep) == ["dense", "half", "*.weight=nm:2:4", "0.weight=nm:1:2 2.weight=nm:1:4"]
    assert sweep.space.axes == ("sparsity",)
    assert [place.point.sparsity for place in sweep.space.points][:2] == ["", HALF.replace(", layout: csr", "")]


def test_sparse_points_have_keys_of_their_own(folder: Path) -> None:
    points = [place.point for place in opened(folder, HEAD + "sparsity: [dense, '*=nm:2:4', '*=nm:1:4']\n").space.points]
    for key in (lambda p: p.key("estimate"), lambda p: p.key("simulate"), lambda p: p.source, lambda p: p.workload):
        assert len({key(point) for point in points}) == 3


def test_dense_points_have_the_keys_that_they_had_without_the_axis(folder: Path) -> None:
    dense, _ = opened(folder, HEAD + "sparsity: [dense, half.yaml]\n").space.points
    (plain,) = opened(folder, HEAD).space.points
    assert dense.point == plain.point and dense.point.key("estimate") == plain.point.key("estimate")


def test_equal_specs_are_one_point_under_the_first_label(folder: Path) -> None:
    sweep = opened(folder, HEAD + "sparsity: [{}, dense, half.yaml, '*.weight=magnitude:0.5:csr']\n")
    assert labels(sweep) == ["dense", "half"]


def test_files_of_one_name_in_two_folders_have_different_labels(folder: Path) -> None:
    (folder / "other").mkdir()
    (folder / "other" / "half.yaml").write_text(HALF.replace("0.5", "0.25"))
    assert labels(opened(folder, HEAD + "sparsity: [half.yaml, other/half.yaml]\n")) == ["half.yaml", "other/half.yaml"]


def test_one_entry_needs_no_list(folder: Path) -> None:
    assert labels(opened(folder, HEAD + "sparsity: half.yaml\n")) == ["half"]


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("sparsty: [dense]\n", "s.yaml:3:1", "did you mean `sparsity`?"),
        ("sparsity: []\n", "s.yaml:3:1", "at least 1 item"),
        ("sparsity: [dense, 3]\n", "s.yaml:3:19", "not `3`"),
        ("sparsity: [dense, '*.weight=magnitud:0.5']\n", "s.yaml:3:19", "did you mean `magnitude`?"),
        ("sparsity:\n  - dense\n  - {'*.weight': 'magnitude:1.5'}\n", "s.yaml:5:5", "a fraction of 1.5"),
        ("sparsity:\n  - dense\n  - '*.weight='\n", "s.yaml:5:5", "is not PATTERN=SPARSIFIER"),
        ("sparsity: [dense, nowhere.yaml]\n", "s.yaml:3:19", "cannot read the sparsity spec"),
        ("sparsity: [dense, bad.yaml]\n", "bad.yaml:2:", "did you mean `csr`?"),
    ],
)
def test_errors_have_their_place(folder: Path, text: str, place: str, message: str) -> None:
    (folder / "bad.yaml").write_text(HALF.replace("csr", "crs"))
    with pytest.raises(FuseFlowError) as caught:
        opened(folder, HEAD + text)
    assert str(caught.value).startswith(str(folder / place)) and message in str(caught.value)


def test_programs_take_no_sparsity(folder: Path) -> None:
    with pytest.raises(FuseFlowError, match=r"`p\.ein` takes no `sparsity`") as caught:
        opened(folder, "model: p.ein\ntensors: t.yaml\nsparsity: [dense, half.yaml]\n")
    assert "`format` in `schedules`" in str(caught.value)
    assert len(opened(folder, "model: p.ein\ntensors: t.yaml\nsparsity: dense\n").space) == 1


def test_a_rule_that_fits_no_weight_fails_its_points_alone(folder: Path) -> None:
    (folder / "s.yaml").write_text(HEAD + "sparsity: [dense, '9.weight=nm:2:4']\n")
    CliRunner().invoke(main, ["sweep", str(folder / "s.yaml"), "--jobs", "1", "--store", str(folder / "s.sqlite")])
    first, second = table(folder)
    assert (first["status"], first["sparsity"]) == ("estimated", "dense")
    assert (second["status"], second["reason"]) == ("failed", "sparsity")
    assert "no weight is called `9.weight`" in second["error"]


def table(folder: Path) -> list[dict[str, str]]:
    words = ["sweep", "show", str(folder / "s.yaml"), "--store", str(folder / "s.sqlite"), "--format", "csv"]
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 0, result.output
    return list(csv.DictReader(io.StringIO(result.stdout)))


def test_the_table_has_a_column_of_specs(swept: Path) -> None:
    lines = {line["sparsity"]: line for line in table(swept)}
    assert set(lines) == {
        "dense",
        *(f"*.weight={rule}" for rule in ("magnitude:0.5:csr", "magnitude:0.75:csr", "nm:2:4", "threshold:0.1")),
    }
    flops = [
        float(lines[name]["estimated_flops"]) for name in ("dense", "*.weight=magnitude:0.5:csr", "*.weight=magnitude:0.75:csr")
    ]
    assert flops[0] > flops[1] > flops[2]


def test_shares_and_layouts_of_specs(swept: Path) -> None:
    axis = sparsity_axis(opened(swept, FIGURE))
    assert axis is not None
    assert axis.share == {
        "dense": 0,
        "*.weight=magnitude:0.5:csr": 0.5,
        "*.weight=magnitude:0.75:csr": 0.75,
        "*.weight=nm:2:4": 0.5,
    }
    assert list(axis.layout.values()) == ["dense", "csr", "csr", "nm"]


@pytest.mark.parametrize(
    "entries",
    [
        "[dense]",
        "['*=nm:2:4', '*=magnitude:0.5']",
        "[dense, '*=threshold:0.1']",
        "[dense, {0.weight: 'magnitude:0.5', 2.weight: 'magnitude:0.9'}]",
    ],
)
def test_specs_without_two_shares_are_no_axis(folder: Path, entries: str) -> None:
    assert sparsity_axis(opened(folder, f"{HEAD}sparsity: {entries}\n")) is None


def test_the_figure_is_written_and_the_same_every_time(swept: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    words = ["sweep", "plot", str(swept / "s.yaml"), "--store", str(swept / "s.sqlite"), "--format", "svg", "-o"]
    for name in ("one", "two"):
        result = CliRunner().invoke(main, [*words, str(tmp_path / name)])
        assert result.exit_code == 0, result.output
    figures = sorted(path.name for path in (tmp_path / "one").iterdir())
    assert "sparsity.svg" in figures and not any("curve" in name for name in figures)
    for name in figures:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_a_figure_that_cannot_be_drawn_says_why(folder: Path) -> None:
    pytest.importorskip("matplotlib")
    sweep = opened(folder, HEAD + "sparsity: ['*.weight=nm:2:4', '*.weight=magnitude:0.5']\n")
    sweep.run(InProcessRunner())
    sweep.store.close()
    words = ["sweep", "plot", str(folder / "s.yaml"), "--store", str(folder / "s.sqlite"), "-o", str(folder / "figures")]
    output = CliRunner().invoke(main, words).output
    assert "fewer than two specs leave out a share" in output and not (folder / "figures" / "sparsity.png").exists()


def test_what_is_not_needed_is_an_axis_too(folder: Path) -> None:
    sweep = opened(folder, HEAD + "sparsity: '*.weight=magnitude:0.75:csr'\npropagate: [false, true]\n")
    whole, smaller = sweep.space.points
    assert sweep.space.axes == ("propagate",) and [p.labels["propagate"] for p in sweep.space.points] == ["false", "true"]
    assert len({p.point.key("estimate") for p in (whole, smaller)}) == len({p.point.source for p in (whole, smaller)}) == 2
    sweep.run(InProcessRunner())
    sweep.store.close()
    cycles = {row["propagate"]: float(row["estimated_cycles"]) for row in table(folder)}
    assert cycles["true"] < cycles["false"]
    assert whole.point.workload == smaller.point.workload


def test_what_is_propagated_is_true_or_false(folder: Path) -> None:
    with pytest.raises(FuseFlowError, match="propagate"):
        opened(folder, HEAD + "propagate: [some]\n")
