"""What commands do where the user, the system or a model file misbehaves: interruptions, full disks, names that terminals obey."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from command_line import fuseflow
from scipy import sparse

from fuseflow.cli.main import main
from fuseflow.einsum.nodes import Location
from fuseflow.einsum.parse import parse
from fuseflow.frontend.import_cache.entry import Entry, import_store, write_entry
from fuseflow.frontend.import_cache.request import request_digest
from fuseflow.frontend.imported_program import Source
from fuseflow.frontend.model_spec import ModelSpec, TrainingRequest

MODEL = """\
import sys
import torch

class Model(torch.nn.Module):
    def forward(self, a):
        print("from forward")
        return {returned}

def build(data):
    print("from build")
    {before}
    return Model(), (torch.eye(3),)
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.ein").write_text("tensor A[3, 3] csr\ny[i, j] = relu(A[i, j])\noutput y\n")
    (tmp_path / "t.yaml").write_text("A: {path: a.npz}\n")
    sparse.save_npz(tmp_path / "a.npz", sparse.csr_array(np.eye(3)))
    return tmp_path


def model(returned: str = "a.relu()", before: str = "pass") -> None:
    Path("m.py").write_text(MODEL.format(returned=returned, before=before))


@pytest.mark.parametrize("status", [0, 1, "'text'"])
def test_a_model_file_that_exits_has_failed(here, status):
    model(before=f"sys.exit({status})")
    result = fuseflow("run", "m.py")
    assert result.exit_code == 2
    assert "m.py:11: error[frontend]: the model file raises SystemExit" in result.stderr


def test_a_model_that_exits_when_it_is_called_has_failed(here):
    model(returned="sys.exit(0)")
    result = fuseflow("run", "m.py")
    assert result.exit_code == 1
    assert "the run was ended from inside, with status 0" in result.stderr


def test_what_a_model_prints_is_not_in_the_json(here):
    model()
    result = fuseflow("run", "m.py", "--json", "-")
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["regions"]
    assert "from build" in result.stderr
    assert "from forward" in result.stderr


def test_what_a_model_prints_is_not_in_a_stage(here):
    model()
    result = fuseflow("compile", "m.py", "--emit", "dot")
    assert result.stdout.startswith("digraph")


def test_a_model_that_returns_nothing_is_told_so(here):
    model(returned="None")
    result = fuseflow("run", "m.py")
    assert result.exit_code == 2
    assert "the model returns no tensor\n  hint: return one from its `forward`" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--frob"], "error[usage]: No such option '--frob'.\n  hint: `fuseflow --help` says what there is\n"),
        (
            ["run", "p.ein", "--tensors", "t.yaml", "--schedule", "/dev/null"],
            "error[schedule]: the schedule `/dev/null` is empty",
        ),
        (["run", "p.ein", "--tensors", "t.yaml", "--set", f"latency.add={10**20}"], "is a whole number of more than 64 bits"),
        (["run", "p.ein", "--tensors", "t.yaml", "--set", f"latency.add={2**40}"], "is above 2,147,483,647, the largest number"),
        (["run", "p.ein", "--tensors", "t.yaml", "--format", "A=(dense)"], "has 1 level, the tensor 2 dimensions"),
        (["run", "a\x1b[31m\u202eb.ein"], r"cannot read `a\x1b[31m\u202eb.ein`"),
        (["run", "p.ein", "--tensors", "/dev/zero"], "has more than 268,435,456 bytes"),
    ],
)
def test_bad_words_are_one_message(here, arguments, message):
    if "/dev/zero" in arguments:
        pytest.importorskip("resource")
    result = fuseflow(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert "\x1b" not in result.output


def test_an_empty_list_of_options_of_data_is_refused(here):
    model()
    Path("m.py").write_text(Path("m.py").read_text().replace("torch.eye(3)", "data.adjacency.to_dense()"))
    result = fuseflow("run", "m.py", "--data", ":")
    assert result.exit_code == 2
    assert "nothing follows the colon" in result.stderr


HOSTILE = "n\x1b[31m<script>alert(1)</script>\"'\u202e" + "x" * 10_000


def test_names_do_nothing_to_a_terminal_a_page_or_a_graph(here):
    """The name of a module of PyTorch may hold anything but a dot."""
    Path("m.py").write_text(
        f"import torch\nclass M(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        f"        self.add_module({HOSTILE!r}, torch.nn.Linear(3, 2))\n"
        f"    def forward(self, a):\n        return self._modules[{HOSTILE!r}](a).relu()\n"
        "def build(data):\n    return M().eval(), (torch.eye(3),)\n"
    )
    result = fuseflow("run", "m.py", "-o", "out", "--top", "2", "--memory", "--trace", "t.json")
    assert result.exit_code == 0, result.stderr[:2000]
    assert "\x1b" not in result.output
    assert "\u202e" not in result.output
    assert fuseflow("report", "out").exit_code == 0
    page = Path("out/report.html").read_text()
    assert "<script>alert(1)" not in page
    assert "\x1b" not in page
    for path in Path("out").rglob("graph.dot"):
        assert "\x1b" not in path.read_text()
    json.loads(Path("t.json").read_text())
    json.loads(Path("out/result.json").read_text())


def run_fuseflow(*arguments: str, **variables: str) -> subprocess.Popen[str]:
    environment = {**os.environ, **variables}
    return subprocess.Popen(
        [sys.executable, "-m", "fuseflow", *arguments], env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


ALL_WORDS = ["--help", "--version", "ops", "compile p.ein --emit samml", "run p.ein --tensors t.yaml --json -"]
BUFFERINGS: dict[str, dict[str, str]] = {"buffered": {}, "unbuffered": {"PYTHONUNBUFFERED": "1"}}


@pytest.mark.parametrize(
    ("words", "target", "buffering"),
    [
        *product(ALL_WORDS[:2], ["> /dev/full", ">&-"], BUFFERINGS),
        ("ops", "> /dev/full", "buffered"),
        ("ops", ">&-", "unbuffered"),
        ("compile p.ein --emit samml", "> /dev/full", "unbuffered"),
        ("run p.ein --tensors t.yaml --json -", ">&-", "buffered"),
    ],
)
def test_an_output_that_cannot_be_written_is_an_error(here, words, target, buffering):
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"} | BUFFERINGS[buffering]
    command = f"exec '{sys.executable}' -m fuseflow {words} {target}"
    done = subprocess.run(command, shell=True, stderr=subprocess.PIPE, text=True, cwd=here, env=environment)
    assert done.returncode == 2
    assert done.stderr.startswith("error[file]: cannot write the output: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("seconds", [0.15, 0.5])
def test_an_interruption_while_modules_are_imported_is_one_word(here, seconds):
    process = run_fuseflow("run", "p.ein", "--tensors", "t.yaml")
    time.sleep(seconds)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=60)
    if process.returncode != 0:  # else it was faster
        assert (process.returncode, told) in ((130, "interrupted\n"), (-signal.SIGINT, ""), (130, ""))


def test_an_interruption_of_a_text_that_is_executed_has_the_status_of_every_other(here):
    Path("model.py").write_text("exec('import os, signal; os.kill(os.getpid(), signal.SIGINT)')\n")
    process = run_fuseflow("compile", "model.py")
    _, told = process.communicate(timeout=60)
    assert (process.returncode, told) == (130, "interrupted\n")


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("run m.py --machine i", ["ideal"]),
        ("run m.py --data ci", ["citeseer"]),
        ("run m.py --fuse f", ["full"]),
        ("run m.py --train --loss cr", ["cross_entropy"]),
        ("run m.py --train --optimizer adamw", ["adamw"]),
        ("run p.ein --fuse C", ["C"]),
        ("run p.ein --par k", ["k="]),
        ("run p.ein --order C", ["C="]),
        ("run p.ein --format B", ["B="]),
        ("run p.ein --bis", ["--bisect"]),
        ("run missing.ein --par k", []),
        ("sw", ["sweep"]),
        ("explain o", ["order"]),
    ],
)
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_completes_names(here, shell, words, completed, monkeypatch):
    Path("p.ein").write_text("tensor A[4, 4] csr\ntensor B[4, 4] csr\nC[i, j] = sum(k) A[i, k] * B[k, j]\noutput C\n")
    assert complete(shell, words, monkeypatch) == completed


def complete(shell: str, words: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    last = words.split()[-1]
    monkeypatch.setenv("COMP_WORDS", f"fuseflow {words}")
    monkeypatch.setenv("COMP_CWORD", last if shell == "fish" else str(len(words.split())))
    result = CliRunner().invoke(main, [], prog_name="fuseflow", env={"_FUSEFLOW_COMPLETE": f"{shell}_complete"})
    if shell == "zsh":
        return [line for kind, line, _ in zip(*[iter(result.output.splitlines())] * 3, strict=False) if kind == "plain"]
    lines = (re.split(r"[,\t]", line) for line in result.output.splitlines())
    return [line[1] for line in lines if line[0] == "plain"]


def test_a_shell_completes_names_of_a_model_that_was_imported(here, monkeypatch):
    monkeypatch.setenv("FUSEFLOW_CACHE_DIR", str(here / "cache"))
    monkeypatch.setenv("FUSEFLOW_MODEL_CACHE_MB", "64")
    Path("m.py").write_text("raise RuntimeError('completion runs no model')\n")
    assert complete("bash", "run m.py --fuse la", monkeypatch) == ["layerwise"]
    program = parse("tensor x[4] dense\ny[i] = relu(x[i])\noutput y\n")
    placed = [replace(einsum, location=Location("layer1.act")) for einsum in program.einsums]
    source = Source("m", replace(program, einsums=tuple(placed)), {}, None)
    content = write_entry(Entry(source, {}, reference=False))
    store, digest = import_store(), request_digest(ModelSpec(Path("m.py")))
    assert store.write(digest, content)
    assert complete("bash", "run m.py --fuse la", monkeypatch) == ["layerwise", "layer1", "layer1.act"]
    assert complete("bash", "run m.py --par i", monkeypatch) == ["i="]
    assert complete("bash", "run m.py -O small=true --par i", monkeypatch) == []
    assert complete("bash", "run m.py --train --fuse la", monkeypatch) == ["layerwise"]
    step = replace(source, program=replace(program, einsums=tuple(replace(e, location=Location("lasso")) for e in placed)))
    digest = request_digest(ModelSpec(Path("m.py"), training=TrainingRequest("mse")))
    assert store.write(digest, write_entry(Entry(step, {}, reference=False)))
    assert complete("bash", "run m.py --train --loss mse --fuse la", monkeypatch) == ["layerwise", "lasso"]
    assert complete("bash", "run m.py --train --fuse la", monkeypatch) == ["layerwise"]


EXAMPLE = Path(__file__).parents[2] / "docs" / "example"
SPMM = [str(EXAMPLE / "spmm.ein"), "--tensors", str(EXAMPLE / "tensors.yaml")]
UNREAD = {
    "the help": ["--help"],
    "the help of a command": ["run", "--help-all"],
    "the version": ["--version"],
    "operators": ["ops"],
    "names": ["machines", "--quiet"],
    "machines": ["machines"],
    "data": ["data"],
    "a stage": ["compile", *SPMM, "--emit", "einsum"],
    "a table": ["run", *SPMM],
    "an estimate": ["estimate", *SPMM],
    "a summary": ["explain", *SPMM],
    "JSON": ["run", *SPMM, "--json", "-", "--quiet"],
    "JSON of a list": ["data", "--json", "-", "--quiet"],
}


@pytest.mark.parametrize("words", UNREAD.values(), ids=UNREAD)
def test_a_reader_that_stops_reading_ends_a_command_in_silence(here: Path, words: list[str]):
    """The status is that of programs that the system ends then. It is none of a check that failed, nor of bad input."""
    command = [sys.executable, "-m", "fuseflow", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b"" and process.wait() == 141


def test_a_reader_that_reads_a_part_sees_no_error(here: Path):
    with subprocess.Popen([sys.executable, "-m", "fuseflow", "ops"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.read(1)
        process.stdout.close()
        assert process.stderr.read() == b"" and process.wait() in (0, 141)
