"""`fuseflow explain cycles` and `--trace`: what is printed and written, and what is refused."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from command_line import fuseflow

EXAMPLE = Path(__file__).parents[2] / "docs" / "example"
SPMM = (EXAMPLE / "spmm.ein", "--tensors", EXAMPLE / "tensors.yaml")
GRAPH = """\
graph double
tensor A[4, 4]  csr
tensor Y[4]  dense
output Y
root = root()
A_i = scan(root) A.0
A_j = scan(A_i.ref) A.1
A_v = load(A_j.ref) A
sum = reduce(A_v) sum
Y_i = write(A_i.crd) Y.0
Y_v = write(sum) Y.vals
"""


def test_it_prints_path_nodes_fifos_and_changes():
    result = fuseflow("explain", "cycles", *SPMM, "--top", "3")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith(
        "region full: 203 cycles; 21 is the roofline, which it cannot beat\ncritical path: 53 % memory"
    )
    for title in ("critical path  op", "on path", "FIFO", "change "):
        assert title in result.stdout
    assert not result.stderr


def test_json_goes_to_standard_output_alone():
    result = fuseflow("explain", "cycles", *SPMM, "--machine", "comal", "--json", "-", "--no-changes")
    values = json.loads(result.stdout)
    assert values["changes"] == [] and sum(step["cycles"] for step in values["regions"][0]["path"]) == values["cycles"]
    assert "critical path" in result.stderr


def test_both_simulators_say_the_same():
    slow, fast = (fuseflow("explain", "cycles", *SPMM, "--engine", engine).stdout for engine in ("reference", "fast"))
    assert slow == fast


@pytest.mark.parametrize("name", ["t.json.gz", "t.json"])
def test_a_run_writes_its_trace(tmp_path: Path, name: str):
    result = fuseflow("run", *SPMM, "--trace", tmp_path / name)
    assert result.exit_code == 0, result.output
    assert f"trace of every firing: {tmp_path / name}" in result.stdout
    content = (tmp_path / name).read_bytes()
    events = json.loads(gzip.decompress(content) if name.endswith(".gz") else content)["traceEvents"]
    assert {event["ph"] for event in events} == {"M", "X", "C"}


def test_a_graph_is_traced(tmp_path: Path):
    (tmp_path / "g.samml").write_text(GRAPH)
    (tmp_path / "t.yaml").write_text(f"A: {{path: {EXAMPLE / 'A.mtx'}}}\n")
    file = tmp_path / "t.json.gz"
    result = fuseflow(
        "simulate", tmp_path / "g.samml", "--tensors", tmp_path / "t.yaml", "--trace", file, "--trace-window", "10:20"
    )
    assert result.exit_code == 0, result.output
    events = json.loads(gzip.decompress(file.read_bytes()))["traceEvents"]
    assert all(event["ts"] >= 10 and event["ts"] + event["dur"] <= 20 for event in events if event["ph"] == "X")


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--trace", "t.txt"], "`--trace t.txt` is no name of a trace"),
        (["--trace", "-"], "`--trace -` is no name of a trace"),
        (["--trace", "no/such/../t.json.gz", "--trace-window", "5"], "`--trace-window 5` is no span of cycles"),
        (["--trace", "t.json", "--trace-window", "20:10"], "`--trace-window 20:10` is no span of cycles"),
        (["--trace-window", "10:20"], "`--trace-window` without `--trace`"),
        (["--trace", "t.json", "--trace-window", "1000:2000"], "nothing runs in cycles 1,000 to 2,000"),
    ],
)
def test_what_is_refused(flags: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    result = fuseflow("run", *SPMM, *flags)
    assert result.exit_code == 2
    assert message in result.stderr
    assert not list(tmp_path.iterdir())


def test_a_trace_inside_the_output_directory_is_refused(tmp_path: Path):
    result = fuseflow("run", *SPMM, "-o", tmp_path / "out", "--trace", tmp_path / "out" / "t.json.gz")
    assert result.exit_code == 2 and "is replaced as a whole" in result.stderr
