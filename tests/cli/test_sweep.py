"""`fuseflow sweep`: what it prints and writes, and how it is interrupted."""

from __future__ import annotations

import csv
import io
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from importlib import import_module
from pathlib import Path

import pytest
from command_line import fuseflow
from sweeps import InProcessRunner, opened, write_model, write_program

from fuseflow.sweep.design_space import build_space
from fuseflow.sweep.sweep_file import read_sweep

ROOT = Path(__file__).parents[2]
SWEEP = """\
model: p.ein
tensors: t.yaml
mode: prune
top: 2
vary:
  fuse: [none, full]
  par: [{}, {i: 2}, {q: 3}]
  order: [first, best]
"""


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a sweep that was run."""
    folder = tmp_path_factory.mktemp("swept")
    write_program(folder)
    (folder / "s.yaml").write_text(SWEEP)
    result = fuseflow("sweep", "--store", folder / "out" / "s.sqlite", folder / "s.yaml", "--jobs", "1")
    assert result.exit_code == 1, result.output  # some schedules fit no region
    assert "8 done" not in result.stderr
    return folder


@pytest.fixture
def here(swept: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(swept)
    return swept


def test_show_prints_the_best_first_and_errors_last(here: Path, golden: Callable[[str, str], None]) -> None:
    result = fuseflow("sweep", "show", "s.yaml")
    assert result.exit_code == 0
    golden("sweep/table.txt", result.stdout)


def test_csv_has_all_columns_and_nothing_that_differs_from_run_to_run(here: Path, golden: Callable[[str, str], None]) -> None:
    golden("sweep/table.csv", fuseflow("sweep", "show", "s.yaml", "--format", "csv").stdout)
    assert "seconds" in fuseflow("sweep", "show", "s.yaml", "--format", "csv", "--timing").stdout.splitlines()[0]


def test_parquet_holds_the_same_as_csv(here: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    assert fuseflow("sweep", "show", "s.yaml", "--format", "parquet", "-o", "t.parquet").exit_code == 0
    assert fuseflow("sweep", "show", "s.yaml", "--format", "csv", "-o", "t.csv").exit_code == 0
    lines = list(csv.DictReader(io.StringIO((here / "t.csv").read_text())))
    table = parquet.read_table(here / "t.parquet")
    read = [{key: "" if value is None else str(value) for key, value in line.items()} for line in table.to_pylist()]
    assert read == lines
    assert str(table.schema.field("estimated_cycles").type) == "int64"


@pytest.mark.parametrize(
    ("words", "count"),
    [
        (["--where", "fuse=full"], 6),
        (["--where", "status!=failed"], 8),
        (["--where", "status!=failed", "--where", "par=i=2"], 4),
        (["--where", "estimated_cycles>0"], 8),
        (["--where", "cycles<1e9"], 2),
        (["--top", "3"], 3),
        (["--sort", "-estimated_bytes", "--top", "1"], 1),
        (["--where", "fuse=half"], 0),
    ],
)
def test_lines_can_be_chosen(here: Path, words: list[str], count: int) -> None:
    result = fuseflow("sweep", "show", "s.yaml", "--format", "csv", *words)
    assert len(list(csv.reader(io.StringIO(result.stdout)))) == count + 1
    assert fuseflow("sweep", "show", "s.yaml", *words).exit_code == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["sweep", "gone.yaml"], "cannot read the sweep `gone.yaml`"),
        (["sweep", "status", "s.yaml", "--store", "gone.sqlite"], "there are no results in `gone.sqlite`"),
        (["sweep", "status", "s.yaml", "--store", "t.yaml"], "`t.yaml`: file is not a database"),
        (["sweep", "s.yaml", "--memory", "8 apples"], "a memory of `8 apples` is no size"),
        (["sweep", "s.yaml", "--jobs", "0"], "0 is not in the range"),
        (["sweep", "s.yaml", "--jobs", "2", "--scheduler", "tcp://x:1"], "`jobs` is for processes of this machine"),
        (["sweep", "show", "s.yaml", "--where", "fus=full"], "did you mean `fuse`"),
        (["sweep", "show", "s.yaml", "--where", "fuse"], "cannot read `--where fuse`"),
        (["sweep", "show", "s.yaml", "--where", "fuse<full"], "`full` is not a number"),
        (["sweep", "show", "s.yaml", "--sort", "cylces"], "did you mean `cycles`"),
        (["sweep", "show", "s.yaml", "--format", "parquet"], "-o FILE.parquet"),
        (["sweep", "show", "s.yaml", "-o", "t.txt"], "a table is for the terminal"),
        (["sweep", "plot", "s.yaml", "-o", "t.yaml"], "it is a file"),
        (["sweep", "plot", "s.yaml"], "Missing option"),
    ],
)
def test_what_cannot_be_is_refused(here: Path, words: list[str], message: str) -> None:
    result = fuseflow(*words)
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.output


def test_status_says_what_is_left_and_why_points_failed(here: Path) -> None:
    lines = fuseflow("sweep", "status", "s.yaml").stdout.splitlines()
    assert lines[0] == "s.yaml: 12 points"
    assert lines[1] == "14 runs (each point is estimated, the best are simulated): 10 done, 4 failed, 0 left"
    assert lines[2] == "failed: 4 with schedule"
    (here / "more.yaml").write_text(SWEEP.replace("{q: 3}", "{q: 3}, {i: 3}"))
    lines = fuseflow("sweep", "status", "more.yaml", "--store", "out/s.sqlite").stdout.splitlines()
    counts = "18 runs (each point is estimated, the best are simulated): 10 done, 4 failed, 4 left"
    assert lines[1] == counts, "nothing is known of how long points on three lanes take"


def test_status_says_how_much_work_is_left(here: Path) -> None:
    shutil.copy(here / "out" / "s.sqlite", here / "fewer.sqlite")
    with closing(sqlite3.connect(here / "fewer.sqlite")) as store, store:
        store.execute(
            "DELETE FROM rows WHERE mode = 'estimate' AND labels LIKE '%full%' AND labels LIKE '%best%' AND reason = ''"
        )
    line = fuseflow("sweep", "status", "s.yaml", "--store", "fewer.sqlite").stdout.splitlines()[1]
    assert re.search(r"[1-9] left \((about|more than) \d+ s of work on one core\)$", line)


def test_rows_of_other_sources_are_pointed_out(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("report.sweep_table", "sweep.sweep"):
        monkeypatch.setattr(import_module(f"fuseflow.{module}"), "code_version", lambda: "another")
    assert "`--again stale`" in fuseflow("sweep", "status", "s.yaml").stdout


def test_figures_are_those_that_the_axes_allow_and_the_same_every_time(here: Path) -> None:
    pytest.importorskip("matplotlib")
    first = fuseflow("sweep", "plot", "s.yaml", "-o", "one", "--format", "svg")
    assert first.stdout.splitlines() == [f"written to one/{name}.svg" for name in ("speedups", "work", "curve-par", "orders")]
    fuseflow("sweep", "plot", "s.yaml", "-o", "two", "--format", "svg")
    for file in (here / "one").iterdir():
        assert file.read_text() == (here / "two" / file.name).read_text()
        assert "expected" in file.read_text()


def test_figures_that_cannot_be_are_not_drawn(tmp_path: Path) -> None:
    write_program(tmp_path)
    sweep = opened(tmp_path, "model: p.ein\ntensors: t.yaml\n")
    words = ["sweep", "plot", tmp_path / "s.yaml", "--store", tmp_path / "s.sqlite", "-o", tmp_path / "figures"]
    assert "no point has a result yet" in fuseflow(*words).stderr
    sweep.run(InProcessRunner())
    assert fuseflow(*words).stdout.count("no figure") == 4
    assert list((tmp_path / "figures").iterdir()) == []


def test_a_sweep_of_which_nothing_comes_out_fails(tmp_path: Path) -> None:
    write_program(tmp_path)
    (tmp_path / "s.yaml").write_text("model: p.ein\ntensors: t.yaml\nvary: {par: [{q: 2}]}\n")
    result = fuseflow("sweep", tmp_path / "s.yaml", "--store", tmp_path / "s.sqlite")
    assert result.exit_code == 1
    assert "all points failed" in result.stderr


def test_ctrl_c_says_how_to_go_on(tmp_path: Path) -> None:
    write_model(tmp_path / "sleeps.py", first="open('begun', 'w').close(); time.sleep(60)", imports="import time")
    (tmp_path / "s.yaml").write_text("model: sleeps.py\n")
    running = subprocess.Popen(
        [sys.executable, "-m", "fuseflow", "sweep", "s.yaml"],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell's background jobs ignore it
    )
    while not (tmp_path / "begun").exists() and running.poll() is None:
        time.sleep(0.01)
    running.send_signal(signal.SIGINT)
    _, said = running.communicate(timeout=120)
    assert (running.returncode, said) == (130, "interrupted: 0 of 1 points are kept; the same command goes on\n")


def test_the_example_in_the_documentation_is_a_sweep(tmp_path: Path) -> None:
    for name in ("models", "schedules"):
        (tmp_path / name).symlink_to(ROOT / name)
    page = (ROOT / "docs" / "reference" / "sweep-files.md").read_text(encoding="utf-8")
    (tmp_path / "s.yaml").write_text(page.partition("```yaml sweep\n")[2].partition("```")[0])
    assert len(build_space(read_sweep(tmp_path / "s.yaml"))) == 2 * 2 * 3


@pytest.mark.parametrize("file", sorted((ROOT / "schedules" / "sweeps").glob("*.yaml")), ids=lambda file: file.stem)
def test_sweeps_that_are_there_can_be_read(file: Path) -> None:
    assert len(build_space(read_sweep(file)))
