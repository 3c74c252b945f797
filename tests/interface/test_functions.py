"""The functions `estimate`, `explain`, `report` and `sweep` say what the commands say, and refuse what is wrong."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from scipy import sparse

import fuseflow as ff
from fuseflow.cli.main import main

EXAMPLE = Path(__file__).parents[2] / "docs" / "example"
PROGRAM = EXAMPLE / "spmm.ein"
TENSORS = EXAMPLE / "tensors.yaml"
SPACE = {"model": str(PROGRAM), "tensors": str(TENSORS), "vary": {"fuse": ["none", "full"], "par": [{}, {"i": 2}]}}


def printed(folder: Path, *words: str) -> tuple[str, Any]:
    """Return what a command prints, and its JSON."""
    runner = CliRunner(env={"COLUMNS": "120"})
    result = runner.invoke(main, [*words, str(PROGRAM), "--tensors", str(TENSORS)])
    assert result.exit_code == 0, result.output
    written = runner.invoke(main, [*words, str(PROGRAM), "--tensors", str(TENSORS), "--json", str(folder / "values.json")])
    assert written.exit_code == 0, written.output
    return result.stdout, json.loads((folder / "values.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def program() -> ff.Compiled:
    return ff.compile(PROGRAM, tensors=TENSORS)


@pytest.mark.parametrize("about", ["cycles", "fusion", "order"])
def test_explain_says_what_the_command_says(about: Any, program: ff.Compiled, tmp_path: Path) -> None:
    text, values = printed(tmp_path, "explain", about, "--wide")
    explanation = ff.explain(program, about=about)
    assert json.loads(json.dumps(explanation.to_dict())) == values
    assert [line.rstrip() for line in str(explanation).splitlines()] == [line.rstrip() for line in text.splitlines()]
    assert str(explanation)[:20] in explanation._repr_html_()


def test_explain_compiles_a_model_and_explains_its_plan() -> None:
    schedule = ff.Schedule.from_yaml("fuse: full\nplan:\n  A: [{form: 2x2}]\n")
    explanation = ff.explain(PROGRAM, about="plan", tensors=TENSORS, schedule=schedule)
    assert explanation.to_dict()["parts"][0]["operand"] == "A"
    assert explanation.to_pandas()["operand"].tolist() == ["A"]


def test_estimate_says_what_the_command_says(program: ff.Compiled, tmp_path: Path) -> None:
    _, values = printed(tmp_path, "estimate")
    assert ff.estimate(program).to_dict() == values
    assert ff.estimate(PROGRAM, tensors=TENSORS).to_dict() == values
    program.save(tmp_path / "out")
    assert ff.estimate(tmp_path / "out", tensors=TENSORS).to_dict()["cycles"] == values["cycles"]
    assert ff.estimate(PROGRAM, stats="A.density=0.5").exact is False
    assert ff.estimate(PROGRAM, tensors=TENSORS, array="plasticine").cycles > 0


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda p: ff.explain(p, about="cycle"), ff.FuseFlowError, "did you mean `cycles`"),
        (lambda p: ff.explain(p, schedul=None), TypeError, r"explain\(\) .* 'schedul': did you mean `schedule`"),
        (lambda p: ff.estimate(p, tensor={}), TypeError, r"estimate\(\) .* 'tensor': did you mean `tensors`"),
        (lambda p: ff.explain(p, schedule=ff.Schedule()), TypeError, "takes no `schedule` beside a compiled program"),
        (lambda p: ff.estimate(PROGRAM, stats="A.densty=1"), ff.FuseFlowError, "densty"),
        (lambda p: ff.explain(p, about="plan"), ff.FuseFlowError, "the schedule has no plan"),
        (lambda p: ff.explain(PROGRAM, schedule=ff.Schedule.fuse("auto")), ff.FuseFlowError, "autoschedule"),
        (lambda p: ff.report(p.run(), p.run(), baseline=p.run()), ff.FuseFlowError, "`baseline` is for the page of one run"),
        (lambda p: ff.report(p.run(), store="x.sqlite"), ff.FuseFlowError, "`store` has the results of a sweep"),
        (lambda p: ff.report("gone"), ff.FuseFlowError, "gone"),
        (lambda p: p.run().to_pandas("node"), ff.FuseFlowError, "did you mean `nodes`"),
        (lambda p: ff.sweep({"model": "x.ein", "mod": "x"}), ff.FuseFlowError, "unknown key `mod`"),
        (lambda p: ff.sweep({**SPACE, "machine": "rad"}), ff.FuseFlowError, "did you mean `rda`"),
        (lambda p: ff.sweep({**SPACE, "machine": [3]}), ff.FuseFlowError, "`machine.0`: must be the name of a machine"),
        (lambda p: ff.sweep(3), ff.FuseFlowError, "a int is no sweep"),
        (lambda p: ff.sweep(SPACE, jobs=0), ff.FuseFlowError, "0 jobs run nothing"),
        (lambda p: ff.sweep(SPACE, memory="8 apples"), ff.FuseFlowError, "is no size"),
        (lambda p: ff.sweep(SPACE, again=["failing"]), ff.FuseFlowError, "names no points"),
        (lambda p: ff.sweep(SPACE, jobs=2, scheduler="tcp://x:1"), ff.FuseFlowError, "not for a cluster"),
        (lambda p: ff.sweep(SPACE, again=["unkept"], no_runs=True), ff.FuseFlowError, "keeps none"),
    ],
)
def test_what_is_wrong_is_refused(
    call: Callable[[ff.Compiled], object], error: type[Exception], message: str, program: ff.Compiled
) -> None:
    with pytest.raises(error, match=message):
        call(program)


def test_a_report_of_values_is_that_of_the_files(program: ff.Compiled, tmp_path: Path) -> None:
    result = program.run()
    program.save(tmp_path / "out", result)
    of_files = ff.report(tmp_path / "out", output=tmp_path / "out" / "report.html")
    assert (tmp_path / "out" / "report.html").read_text(encoding="utf-8") == of_files.html
    assert "report.html" in json.loads((tmp_path / "out" / "about.json").read_text(encoding="utf-8"))["files"]
    program.save(tmp_path / "out", result)  # which may replace the folder, since the page is in its list
    of_values = ff.report(result, program=program)
    assert 0.9 < len(of_values.html) / len(of_files.html) < 1.1
    explained = ff.report(result, program=program, cycles=ff.explain(program, about="cycles"))
    assert len(explained.html) > len(of_values.html) > len(ff.report(result).html)
    assert ff.report(result, result).html and ff.report(result, baseline=result).html
    assert of_values._repr_html_().startswith("<iframe srcdoc=") and "<html" not in of_values._repr_html_()
    other = ff.compile(PROGRAM, tensors=TENSORS, machine="ideal").run()
    with pytest.raises(ff.FuseFlowError, match="`cycles` explains another run: its machine settings differs"):
        ff.report(other, cycles=ff.explain(program, about="cycles"))


def test_a_sweep_of_a_mapping_is_that_of_the_file(tmp_path: Path) -> None:
    seen: list[int] = []
    shallow = ff.load_machine("ideal").model_copy(update={"name": "mine"})
    space = {**SPACE, "machine": ["rda", shallow], "schedules": [ff.Schedule().lower(copies=False)], "mode": "simulate"}
    result = ff.sweep(space, jobs=2, store=tmp_path / "s.sqlite", progress=lambda progress: seen.append(progress.done))
    assert len(result) == 8 and seen == list(range(1, 9)) and result.failed == ()
    for row, schedule in zip(result, result.schedules, strict=True):
        machine = shallow if row["machine"] == "mine" else "rda"
        run = ff.compile(PROGRAM, tensors=TENSORS, schedule=schedule, machine=machine).run(check=False)
        assert run.cycles == row["cycles"]
    assert result[result.best]["cycles"] == min(row["cycles"] for row in result)  # type: ignore[type-var]
    again = ff.sweep(ff.DesignSpace.of(space), store=tmp_path / "s.sqlite", progress=lambda progress: pytest.fail("done"))
    assert again.to_dict() == result.to_dict()
    assert "8 points" in repr(result) and "<table>" in result._repr_html_()
    page = ff.report(result)
    assert len(page.html) > len(ff.report(result, no_runs=True).html)
    with pytest.raises(ff.FuseFlowError, match="two machines are called `rda`"):
        ff.sweep({**space, "machine": [ff.load_machine("rda"), ff.load_machine("rda", {"fifo_depth": 4})]})


def test_a_sweep_without_a_store_leaves_nothing_behind() -> None:
    result = ff.sweep({**SPACE, "vary": {}}, jobs=1)
    store = result.store
    assert store.exists() and ff.report(result).html
    del result
    assert not store.exists()


def test_points_that_fail_are_rows(tmp_path: Path) -> None:
    space = {**SPACE, "machine": ff.load_machine("rda", {"fifo_depth": 1}), "mode": "simulate"}
    result = ff.sweep(space, jobs=2)
    assert len(result.failed) == len(result) and all("deadlock" in str(row["error"]) for row in result.failed)
    with pytest.raises(ff.FuseFlowError, match="no point of the sweep has a result"):
        _ = result.best


def test_tables_of_pandas() -> None:
    pytest.importorskip("pandas")
    matrix = sparse.random_array((8, 8), density=0.3, rng=np.random.default_rng(0), format="csr")
    program = ff.compile("tensor A[8, 8] csr\ntensor x[8]\ny[i] = sum(k) A[i, k] * x[k]\noutput y", (matrix, np.ones(8)))
    result = program.run()
    regions = result.to_pandas()
    assert regions.cycles.sum() == result.cycles and regions.flops.sum() == result.flops
    assert result.to_pandas("nodes").firings.sum() == regions.firings.sum()
    assert result.to_pandas("traffic").groupby("direction").bytes.sum()["read"] == result.stats["bytes"]["read"]
    assert set(result.to_pandas("fifos")) == {"region", "node", "input", "tokens", "peak"}
    estimate = program.estimate()
    assert estimate.to_pandas().flops.sum() == estimate.to_dict()["flops"]
    sampled = program.run(sample=ff.Sample(fraction=0.1))
    assert sampled.to_pandas().exact_cycles.tolist() == [result.cycles] and sampled.to_dict()["kind"] == "sampled"
    assert ff.explain(program, about="cycles").to_pandas().cycles.sum() == result.cycles


def test_a_training_run_as_a_table() -> None:
    pytest.importorskip("pandas")
    torch = pytest.importorskip("torch")
    step = ff.training_step(torch.nn.Linear(3, 2), (torch.randn(8, 3),), torch.zeros(8, 2), loss="mse")
    run = step.run(steps=2)
    table = run.to_pandas()
    assert table.loss.tolist() == list(run.losses) and table.cycles.tolist() == list(run.cycles)
    assert sum(cost.cycles for cost in run.phase_costs) == run.first.cycles and run.to_dict()["training"]["steps"]


def test_sweeps_in_pandas_and_xarray() -> None:
    pytest.importorskip("xarray")
    result = ff.sweep(SPACE, jobs=1)
    frame, numbers = result.to_pandas(), result.to_xarray()
    assert frame.fuse.tolist() == ["none", "none", "full", "full"] and "seconds" not in frame
    assert "seconds" in result.to_pandas(timing=True)
    assert numbers.estimated_cycles.dims == ("fuse", "par") and numbers.fuse.values.tolist() == ["none", "full"]
    assert numbers.estimated_cycles.values.reshape(-1).tolist() == frame.estimated_cycles.tolist()
    assert numbers.estimated_cycles.attrs["units"] == "cycles" and numbers.status.sel(fuse="full", par="i=2") == "estimated"


def test_libraries_are_imported_when_they_are_asked_for_and_their_lack_is_told() -> None:
    code = f"""
import sys, fuseflow as ff
result = ff.sweep({{**{SPACE!r}, "vary": {{}}}}, jobs=1)
assert not {{"pandas", "xarray", "torch"}} & set(sys.modules)
sys.modules["pandas"] = sys.modules["xarray"] = None
for method in (result.to_pandas, result.to_xarray):
    try:
        method()
    except ff.FuseFlowError as error:
        print(error.message, error.hint)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "`to_pandas` needs pandas" in done.stdout and "pip install" in done.stdout
    assert "`to_xarray` needs xarray" in done.stdout
