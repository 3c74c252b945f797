"""`fuseflow estimate`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from command_line import fuseflow

from fuseflow.einsum.parse import parse

ROOT = Path(__file__).parents[2]
SPMM = [str(ROOT / "docs/example/spmm.ein"), "--tensors", str(ROOT / "docs/example/tensors.yaml")]


def test_counts_are_those_of_a_run(tmp_path: Path):
    run = tmp_path / "run.json"
    assert fuseflow("run", *SPMM, "--machine", "ideal", "--json", run, "-q").exit_code == 0
    shown = fuseflow("estimate", *SPMM, "--machine", "ideal", "--against", run)
    assert shown.exit_code == 0, shown.output
    compared = shown.output.partition("error %")[2]
    assert sum(line.endswith("  0") for line in compared.splitlines()) >= 8
    found, theirs = json.loads(fuseflow("estimate", *SPMM, "--json", "-", "-q").stdout), json.loads(run.read_text())
    assert (found["flops"], found["bytes"]) == (theirs["flops"], theirs["bytes"])
    assert found["exact"] and found["regions"][0]["bound"]["limit"] == "control"


def test_statistics_are_marked():
    shown = fuseflow("estimate", SPMM[0], "--stats", "A.density=0.25", "--by", "operator", "--by", "tensor")
    assert shown.exit_code == 0, shown.output
    assert "~" in shown.output and "numbers with ~ are expected" in shown.output
    assert "~" not in fuseflow("estimate", *SPMM).output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([SPMM[0]], "nothing is known of what `A` stores"),
        ([*SPMM, "--stats", "B.density=0.1"], "reads no tensor `B`"),
        ([*SPMM, "--against", "{tmp}/none.json"], "cannot read the run"),
        ([*SPMM, "--against", "{tmp}/text.json"], "is not JSON"),
        ([*SPMM, "--against", "{tmp}/other.json"], "is no result of"),
        ([*SPMM, "--against", "{tmp}/wrong.json"], "is no result of"),
        ([*SPMM, "--fuse", "none", "--against", "{tmp}/run.json"], "the run has other regions"),
        (["{tmp}"], "no directory of a compiled program"),
        (["{tmp}/out", "--fuse", "none"], "with the schedule in it"),
        (["{tmp}/out", "--data", "karate"], "takes no `--data`"),
        (["{tmp}/out", "--adj", "raw"], "takes no `--adj`"),
        (["{tmp}/out", "--seed", "0"], "takes no `--seed`"),
        (["{tmp}/out", "--small"], "takes no `--small`"),
        (["{tmp}/out", "--locate", "auto"], "takes no `--locate`"),
        (["{tmp}/out", "--auto-schedule", "-"], "takes no `--auto-schedule`"),
    ],
)
def test_refusals(words: list[str], message: str, tmp_path: Path):
    (tmp_path / "text.json").write_text("text")
    (tmp_path / "other.json").write_text("[]")
    (tmp_path / "wrong.json").write_text('{"regions": 3}')
    if "{tmp}/run.json" in words:
        fuseflow("run", *SPMM, "--machine", "ideal", "--json", tmp_path / "run.json", "-q")
    if "{tmp}/out" in words:
        fuseflow("compile", *SPMM, "-o", tmp_path / "out", "-q")
    shown = fuseflow("estimate", *(word.replace("{tmp}", str(tmp_path)) for word in words))
    assert shown.exit_code == 2 and message in shown.output, shown.output
    assert "Traceback" not in shown.output


def test_a_directory_is_estimated_as_its_model(tmp_path: Path):
    fuseflow("compile", *SPMM, "-o", tmp_path / "out", "-q")
    assert fuseflow("estimate", tmp_path / "out", *SPMM[1:]).output == fuseflow("estimate", *SPMM).output


def test_the_schedule_of_a_directory_is_printed(tmp_path: Path):
    schedule = ("--fuse", "none", "--order", "T1=k,i,j", "--locate", "never")
    (tmp_path / "p.ein").write_text("tensor A[5, 7]\ntensor X[7, 6]\nT1[i, j] = sum(k) A[i, k] * X[k, j]\noutput T1\n")
    assert fuseflow("compile", tmp_path / "p.ein", *schedule, "-o", tmp_path / "out", "-q").exit_code == 0
    printed = fuseflow("estimate", tmp_path / "out", "--print-schedule")
    assert (printed.exit_code, printed.output) == (0, fuseflow("run", tmp_path / "p.ein", *schedule, "--print-schedule").output)
    assert printed.output == (tmp_path / "out" / "schedule.yaml").read_text()
    refused = fuseflow("estimate", tmp_path / "out", "--fuse", "full", "--print-schedule")
    assert refused.exit_code == 2 and "with the schedule in it" in refused.output
    refused = fuseflow("estimate", tmp_path, "--print-schedule")
    assert refused.exit_code == 2 and "no directory of a compiled program" in refused.output


SAVED = {
    "a guarded reduction": (
        "tensor A[5, 7] csr\ntensor X[7, 6]\nY[i, j] = sum(k) A[i, k] * X[k, j]\nm[i] = max(j) Y[i, j]\noutput m\n"
    ),
    "two guards": "tensor X[7, 6]\ntensor Z[7, 5]\nm[i] = max(j) X[i, j]\nn[i] = min(j) Z[i, j]\noutput m, n\n",
    "a merged dimension": "tensor X[4, 6]\nT[a*4 + b] = X[b, a]\nY[i] = T[i] * 2\noutput Y\n",
    "a split dimension": "tensor X[5, 12]\nQ[i, h, d] = X[i, h*4 + d]\nS[h, i, j] = sum(d) Q[i, h, d] * Q[j, h, d]\noutput S\n",
}


@pytest.mark.parametrize("text", SAVED.values(), ids=SAVED)
@pytest.mark.parametrize(
    "schedule", [(), ("--vector", 4), ("--vector", 4, "--fuse", "full"), ("--vector", 2, "--locate", "never")]
)
def test_a_directory_needs_the_inputs_of_the_user_alone(text: str, schedule: tuple[object, ...], tmp_path: Path):
    (tmp_path / "p.ein").write_text(text)
    rng, entries = np.random.default_rng(0), []
    for declared in parse(text).inputs:
        np.save(tmp_path / f"{declared.name}.npy", rng.integers(0, 3, declared.shape).astype(np.float32))
        entries.append(f"{declared.name}: {{path: {declared.name}.npy}}\n")
    (tmp_path / "t.yaml").write_text("".join(entries))
    given = (tmp_path / "p.ein", "--tensors", tmp_path / "t.yaml", *schedule)
    assert fuseflow("compile", *given, "-o", tmp_path / "out", "-q").exit_code == 0
    saved, model = (
        fuseflow("estimate", *words, "--by", "operator", "--by", "tensor") for words in ((tmp_path / "out", *given[1:3]), given)
    )
    assert saved.exit_code == 0 and saved.output == model.output, saved.output
    (tmp_path / "more.yaml").write_text("inside.6_4: {path: X.npy}\n" + "".join(entries))
    refused = fuseflow("estimate", tmp_path / "out", "--tensors", tmp_path / "more.yaml")
    assert refused.exit_code == 2 and "has no input `inside.6_4`" in refused.output


def test_no_torch_is_loaded(tmp_path: Path):
    code = "import sys; from fuseflow.cli.main import main; main(sys.argv[1:], standalone_mode=False); assert 'torch' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", code, "estimate", *SPMM, "-q"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_note_on_a_slow_cut_goes_by_the_statistics_that_the_user_states() -> None:
    asked = ("estimate", str(ROOT / "docs/example/gcn.ein"), "--fuse", "full", "--stats", "A.stored=10556,neighbours=10.9")
    asked += ("--stats", "W1.density=0.4", "--stats", "W2.density=0.4")
    result = fuseflow(*asked, "--machine", "comal", "--json", "-")
    assert result.exit_code == 0, result.output
    assert f"is expected to take {json.loads(result.stdout)['cycles']:,.0f} cycles; " in result.stderr
