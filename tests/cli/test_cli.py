"""The command line: what it prints where, what it writes, and how it fails."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import fuseflow
from scipy import sparse

from fuseflow.cli.run_options import Target
from fuseflow.run.compiled import Compiled
from fuseflow.run.reference import ProgramReference
from fuseflow.schedule import Schedule
from fuseflow.sim.processors import PROCESSORS

ROOT = Path(__file__).parents[2]
GCN = str(ROOT / "models" / "gcn.py")

PROGRAM = """\
tensor A[3, 4] csr
tensor x[4] dense
y[i] = sum(k) A[i, k] * x[k]
z[i] = relu(y[i])
output z
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a text program and its tensors."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.ein").write_text(PROGRAM)
    (tmp_path / "t.yaml").write_text("A: {path: a.npz}\nx: {path: x.npy}\n")
    matrix = sparse.coo_array(np.array([[0, 2, 0, 1], [0, 0, 0, 0], [-3, 0, 0, 0]], dtype=np.float32))
    sparse.save_npz(tmp_path / "a.npz", matrix.tocsr())
    np.save(tmp_path / "x.npy", np.array([1, 2, 3, 4], dtype=np.float32))
    return tmp_path


def test_run_prints_a_row_for_each_region(here: Path) -> None:
    result = fuseflow("run", "p.ein", "--tensors", "t.yaml", "--fuse", "none")
    assert result.exit_code == 0, result.output
    lines = [line.split() for line in result.stdout.splitlines() if line.strip()]
    assert [line[0] for line in lines if line[0] in ("region", "y", "z", "total")] == ["region", "y", "z", "total"]
    rows = {line[0]: line[1:] for line in lines}
    assert int(rows["total"][1]) == int(rows["y"][1]) + int(rows["z"][1])
    assert "check against dense interpreter: passed" in result.stdout
    assert result.stderr == ""


def test_json_follows_the_schema_and_is_alone_on_standard_output(here: Path) -> None:
    result = fuseflow("run", "p.ein", "--tensors", "t.yaml", "--json", "-", "--seed", "7")
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    about = "schema model data options schedule machine machine_settings engine seed"
    keys = f"{about} cycles regions flops bytes live_bytes config check notices versions seconds"
    assert list(document) == keys.split()
    assert document["schema"] == 2
    assert document["seed"] == 7
    assert Schedule.from_yaml(document["schedule"]) == Schedule.fuse("layerwise")
    assert {"name", "cycles", "nodes", "firings", "tokens"} <= document["regions"][0].keys()
    statistics = document["regions"][0]["statistics"]
    assert statistics.keys() == {"nodes", "edges", "lanes", "flops", "traffic", "memory"}
    assert statistics["memory"]["model"] == "hbm2"
    assert statistics["memory"]["written_bytes"] > 0
    assert document["regions"][0]["roofline"]["bound"] <= document["regions"][0]["cycles"]
    assert len(statistics["nodes"]) == document["regions"][0]["nodes"]
    assert sum(node["firings"] for node in statistics["nodes"]) == document["regions"][0]["firings"]
    assert document["flops"] == sum(sum(region["statistics"]["flops"].values()) for region in document["regions"])
    assert document["bytes"].keys() == {"read", "write", "by_tensor"}
    assert document["check"]["passed"] is True
    assert document["seconds"].keys() == {"frontend", "compile", "simulate"}
    assert "check against" in result.stderr


def test_top_adds_the_busiest_and_most_blocked_nodes(here: Path) -> None:
    plain = fuseflow("run", "p.ein", "--tensors", "t.yaml", "--fuse", "none", "--set", "interval.mul=3")
    result = fuseflow("run", "p.ein", "--tensors", "t.yaml", "--fuse", "none", "--set", "interval.mul=3", "--top", "2")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith(plain.stdout)
    busiest, blocked = result.stdout.removeprefix(plain.stdout).split("most blocked node")
    assert "busiest node" in busiest
    assert len([line for line in busiest.splitlines() if line.strip()[-1:].isdigit()]) == 4  # two of each region
    assert "alu" in blocked
    alone = fuseflow("run", "p.ein", "--tensors", "t.yaml", "--top", "1", "--quiet", "--json", "-")
    assert json.loads(alone.stdout)["schema"] == 2
    assert alone.stderr.split()[:4] == ["busy", "starved", "memory", "blocked"]
    assert fuseflow("run", "p.ein", "--tensors", "t.yaml", "--top", "0").exit_code == 2


def test_memory_prints_what_it_did(here: Path) -> None:
    """By region where memory takes time, by tensor, and where arrays lie."""
    plain = fuseflow("run", "p.ein", "--tensors", "t.yaml", "--memory", "--wide")
    assert plain.exit_code == 0, plain.output
    for title in ("turn-", "lines", "address"):
        assert title in plain.stdout
    ideal = fuseflow("run", "p.ein", "--tensors", "t.yaml", "--memory", "--machine", "ideal")
    assert ideal.exit_code == 0, ideal.output
    assert "lines" in ideal.stdout
    assert "turn-" not in ideal.stdout and "address" not in ideal.stdout
    alone = fuseflow("run", "p.ein", "--tensors", "t.yaml", "--memory", "--quiet", "--json", "-")
    assert json.loads(alone.stdout)["regions"][0]["statistics"]["memory"]["channels"]
    assert "address" in alone.stderr


def test_machine_settings_reach_the_run(here: Path) -> None:
    def document(*settings: str) -> dict[str, Any]:
        machine = ("--machine", "ideal", *(x for s in settings for x in ("--set", s)))
        result = fuseflow("run", "p.ein", "--tensors", "t.yaml", "--json", "-", *machine)
        assert result.exit_code == 0, result.output
        found: dict[str, Any] = json.loads(result.stdout)
        return found

    fast, slow = document(), document("latency.mul=7", "fifo_depth=64", "clock_ghz=2.5")
    assert (fast["machine"], slow["machine"]) == ("ideal", "ideal")
    assert fast["machine_settings"]["fifo_depth"] is None
    assert slow["machine_settings"]["fifo_depth"] == 64
    assert slow["machine_settings"]["latency"] == {"default": 1, "mul": 7}
    assert slow["machine_settings"]["clock_ghz"] == 2.5
    assert slow["cycles"] == fast["cycles"] + 6


def test_json_file_and_quiet(here: Path) -> None:
    result = fuseflow("run", "p.ein", "--tensors", "t.yaml", "--json", "r.json", "--no-check", "--quiet")
    assert (result.exit_code, result.output) == (0, "")
    assert json.loads((here / "r.json").read_text())["check"] is None


def test_output_directory_of_a_run(here: Path) -> None:
    for _ in range(2):  # the second run replaces what the first wrote
        result = fuseflow("run", "p.ein", "--tensors", "t.yaml", "-o", "out")
        assert result.exit_code == 0, result.output
    assert np.load(here / "out" / "outputs" / "z.npy").tolist() == [8, 0, 0]
    assert json.loads((here / "out" / "result.json").read_text())["cycles"] > 0
    assert Schedule.load(here / "out" / "schedule.yaml") == Schedule.fuse("layerwise")
    assert not [p for p in here.iterdir() if p.name.startswith(".")]
    (here / "out" / "outputs" / "notes.txt").write_text("mine")
    refused = fuseflow("run", "p.ein", "--tensors", "t.yaml", "-o", "out")
    assert refused.exit_code == 2
    assert "`outputs/notes.txt` is not from an earlier run" in refused.stderr


def test_compile_writes_a_directory_that_describes_itself(here: Path) -> None:
    result = fuseflow("compile", "p.ein", "--fuse", "none")
    assert result.exit_code == 0, result.output
    assert "written to out/p" in result.stdout
    about = json.loads((here / "out" / "p" / "about.json").read_text())
    assert [region["name"] for region in about["regions"]] == ["y", "z"]
    stages = {"fused.ein", "order.txt", "table.txt", "steps.txt", "region.json"}
    stages |= {f"graph.{form}" for form in ("samml", "mlir", "bin", "txtpb", "dot")}
    assert {p.name for p in (here / "out" / "p" / "01-y").iterdir()} == stages
    assert {"about.json", "program.ein", "schedule.yaml", "01-y/table.txt", "02-z/graph.dot"} <= {"about.json", *about["files"]}


@pytest.mark.parametrize("stage", ["einsum", "fused", "order", "table", "samml", "mlir", "proto-text", "dot"])
def test_emit_prints_one_stage_twice_the_same(here: Path, stage: str) -> None:
    first, second = (fuseflow("compile", "p.ein", "--emit", stage) for _ in range(2))
    assert first.exit_code == 0, first.output
    assert first.stdout == second.stdout
    assert first.stdout.strip()
    assert not (here / "out").exists()
    assert fuseflow("compile", "p.ein", "--emit", stage, "-o", "stage.txt").stdout == ""
    assert (here / "stage.txt").read_text() == first.stdout


def test_emitted_program_is_a_program(here: Path) -> None:
    assert fuseflow("compile", "p.ein", "--emit", "einsum", "-o", "again.ein").exit_code == 0
    assert fuseflow("run", "again.ein", "--tensors", "t.yaml").exit_code == 0


def test_a_program_in_mlir_runs_as_the_program(here: Path) -> None:
    assert fuseflow("compile", "p.ein", "--emit", "einsum-mlir", "-o", "q.mlir").exit_code == 0
    for command in ("--emit", "einsum"), ("--emit", "einsum-mlir"):
        assert fuseflow("compile", "q.mlir", *command).stdout == fuseflow("compile", "p.ein", *command).stdout
    wrong = (here / "q.mlir").read_text().replace('operator = "relu"', 'operator = "rely"')
    (here / "wrong.mlir").write_text(wrong)
    refused = fuseflow("compile", "wrong.mlir")
    assert refused.exit_code == 2
    assert "wrong.mlir:" in refused.output and "did you mean `relu`?" in refused.output


def test_a_table_in_mlir_is_the_table(here: Path) -> None:
    from fuseflow.table.mlir import from_mlir
    from fuseflow.table.table import show

    mlir = fuseflow("compile", "p.ein", "--fuse", "full", "--emit", "table-mlir").stdout
    assert show(from_mlir(mlir)) == fuseflow("compile", "p.ein", "--fuse", "full", "--emit", "table").stdout
    assert fuseflow("compile", "p.ein", "--dump-after", "table-mlir", "--dump-dir", "d").exit_code == 2


def test_emit_binary_and_fibertrees(here: Path) -> None:
    assert fuseflow("compile", "p.ein", "--emit", "proto", "-o", "graph.bin").exit_code == 0
    assert (here / "graph.bin").stat().st_size > 0
    assert fuseflow("compile", "p.ein", "--tensors", "t.yaml", "--emit", "fibertree", "-o", "trees").exit_code == 0
    assert any("A" in p.name for p in (here / "trees").iterdir())


def test_regions_named_like_paths_stay_in_the_directory(here: Path) -> None:
    """PyTorch allows a module called `../x y`."""
    (here / "m.py").write_text(
        "import torch\ndef build(data):\n    model = torch.nn.Sequential()\n"
        "    model.add_module('/x y', torch.nn.Linear(34, 2))\n    return model.eval(), (data.features.to_dense(),)\n"
    )
    run = fuseflow("compile", "m.py", "-o", "deep/o", "--dump-after", "dot", "--dump-dir", "deep/d", "--fuse", "layerwise")
    assert run.exit_code == 0, run.output
    assert (here / "deep" / "o" / "01-_x_y").is_dir()
    assert [p.name for p in (here / "deep" / "d").iterdir()] == ["11-dot-_x_y.dot"]


def test_what_the_locale_cannot_show_is_escaped(here: Path) -> None:
    (here / "p.ein").write_text(PROGRAM.replace("z", "zürich"))
    command = [sys.executable, "-c", "from fuseflow.cli.main import main; main()", "run", "p.ein", "--tensors", "t.yaml"]
    environment = {"PATH": "", "PYTHONIOENCODING": "ascii"}
    options = ["--fuse", "none", "--engine", "reference", "--machine", "ideal"]  # nothing to compile
    done = subprocess.run([*command, *options], capture_output=True, text=True, check=False, env=environment)
    assert (done.returncode, done.stderr) == (0, "")
    assert "z\\xfcrich" in done.stdout


def test_dump_after(here: Path) -> None:
    assert (
        fuseflow("compile", "p.ein", "--emit", "dot", "--dump-after", "all", "--dump-dir", "d", "--fuse", "none").exit_code == 0
    )
    names = sorted(p.name for p in (here / "d").iterdir())
    assert names[0] == "02-einsum.ein"
    assert {"05-table-y.txt", "05-table-z.txt", "09-proto-y.bin"} <= set(names)
    assert fuseflow("run", "p.ein", "--tensors", "t.yaml", "--dump-after", "table", "--dump-dir", "e").exit_code == 0
    assert [p.name for p in (here / "e").iterdir()] == ["05-table-full.txt"]


def test_print_schedule_ends_before_any_work(here: Path) -> None:
    (here / "s.yaml").write_text("fuse: [y]\npar: {i: 2}\n")
    result = fuseflow("run", "p.ein", "--schedule", "s.yaml", "--order", "y=i,k", "--print-schedule")
    assert (result.exit_code, result.stdout) == (0, "fuse: [y]\norder:\n  y: [i, k]\npar: {i: 2}\n")


def test_flags_reach_the_compiler(here: Path) -> None:
    run = fuseflow("compile", "p.ein", "--order", "full=k,i", "--format", "A=csc", "--emit", "order")
    assert run.exit_code == 0, run.output
    assert "k" in run.stdout
    assert "csc" in fuseflow("compile", "p.ein", "--order", "full=k,i", "--format", "A=csc", "--emit", "einsum").stdout


def test_a_check_that_fails_names_selections_of_finite_values(here: Path) -> None:
    """The public form of `==` takes a difference, and inf - inf is no number."""
    (here / "e.ein").write_text("tensor A[2]\ntensor B[2]\nY[i] = where(A[i] == B[i], 3, 4)\noutput Y\n")
    for name, values in {"A": [np.inf, 1.0], "B": [np.inf, 2.0]}.items():
        np.save(here / f"{name}.npy", np.array(values, np.float32))
    (here / "e.yaml").write_text("A: {path: A.npy}\nB: {path: B.npy}\n")
    notice = (
        "region `full` computes `eq`, `where` in public primitives, which holds for finite values alone; `--primitives own` holds"
    )
    run = ("run", "e.ein", "--tensors", "e.yaml", "--fuse", "full", "--machine", "ideal")
    public = fuseflow(*run, "--primitives", "public")
    assert public.exit_code == 1 and notice in " ".join(public.output.split()), public.output
    own = fuseflow(*run, "--primitives", "own")
    assert own.exit_code == 0 and "public primitives" not in own.output
    explain = ("explain", "fusion", "e.ein", "--tensors", "e.yaml", "--fuse", "full", "--primitives")
    assert notice in " ".join(fuseflow(*explain, "public").output.split())
    assert notice not in " ".join(fuseflow(*explain, "own").output.split())


SAE = str(ROOT / "models" / "sae.py")
GPT = str(ROOT / "models" / "gpt_bigbird.py")


def test_options_reach_the_model_and_the_result(here: Path) -> None:
    run = ("run", SAE, "--machine", "ideal", "--json", "-", "-q")
    small, wider = fuseflow(*run, "--small"), fuseflow(*run, "-O", "small=yes", "--option", "density=1")
    assert (small.exit_code, wider.exit_code) == (0, 0), small.output + wider.output
    first, second = json.loads(small.stdout), json.loads(wider.stdout)
    assert (first["options"], second["options"]) == ({"small": True}, {"small": True, "density": 1.0})
    assert (first["data"], first["check"]["passed"]) == ("images:side=6,count=3", True)
    assert first["flops"] < second["flops"]


def test_threads_are_limited_for_one_command(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limits = []
    monkeypatch.setattr("fuseflow.cli.run_options.Target", lambda *words: limits.append(PROCESSORS.limit) or Target(*words))
    for words in (["--threads", "3"], []):
        assert fuseflow("run", SAE, "--machine", "ideal", "--small", *words).exit_code == 0
    assert limits == [3, None]
    refused = fuseflow("run", SAE, "--machine", "ideal", "--threads", "2", "--engine", "reference")
    assert refused.exit_code == 2 and "`--threads` beside `--engine reference`" in refused.stderr


def test_what_must_stand_beside_a_result_does(here: Path) -> None:
    text = fuseflow("run", SAE, "--machine", "ideal", "--small")
    assert text.stdout.splitlines()[-1] == "note: synthetic data: random images"
    (here / "tokens.py").write_text(
        "import torch\ndef build(seed=0):\n    return torch.nn.Sequential(torch.nn.Embedding(5, 3), torch.nn.Linear(3, 2)), "
        "(torch.tensor([1, 4]),)\n"
    )
    result = fuseflow("run", "tokens.py", "--machine", "ideal", "--json", "-")
    assert result.exit_code == 0, result.output
    said = "`embedding` is evaluated by PyTorch before import; its result `0` is an input of the program"
    assert json.loads(result.stdout)["notices"] == [said.replace("`0`", "`_0`")] and "note: `embedding`" in result.stderr


def test_one_part_of_a_model(here: Path) -> None:
    result = fuseflow("compile", GPT, "--small", "--part", "attention", "--emit", "einsum")
    assert result.exit_code == 0, result.output
    assert "mask" in result.stdout and "decoders" not in result.stdout


def test_ops_lists_the_table() -> None:
    result = fuseflow("ops")
    assert result.exit_code == 0
    words = set(result.stdout.split())
    assert {"relu", "exp", "where", "sum", "prod"} <= words


@pytest.mark.parametrize("command", ["compile", "run", "doctor", "ops"])
def test_help(command: str) -> None:
    result = fuseflow(command, "--help")
    assert result.exit_code == 0
    assert result.stdout.startswith(f"Usage: fuseflow {command}")


BAD: dict[str, tuple[list[str], str]] = {
    "missing model file": (["run", "nothing.py"], "nothing.py"),
    "missing program": (["run", "nothing.ein"], "nothing.ein"),
    "unknown kind of model": (["run", "t.yaml"], "give a .py file, `file.py:function`"),
    "missing tensors": (["run", "p.ein"], "--tensors"),
    "missing tensor file": (["run", "p.ein", "--tensors", "no.yaml"], "no.yaml"),
    "program that does not parse": (["compile", "bad.ein"], "bad.ein:2"),
    "data with a program": (["run", "p.ein", "--tensors", "t.yaml", "--data", "karate"], "takes no `data`"),
    "tensors with a PyTorch model": (["run", GCN, "--tensors", "t.yaml"], "takes no `tensors`"),
    "unknown region": (["run", "p.ein", "--tensors", "t.yaml", "--fuse", "yy"], "did you mean `y`?"),
    "unknown keyword": (["compile", "p.ein", "--fuse", "fulll"], "did you mean `full`?"),
    "unknown region of an order": (["compile", "p.ein", "--fuse", "full", "--order", "fulll=i,k"], "did you mean `full`?"),
    "unknown index of an order": (["compile", "p.ein", "--order", "full=i,q"], "`q`"),
    "illegal order": (["compile", "p.ein", "--fuse", "none", "--order", "y=k,i", "--format", "A=dcsr", "--no-copies"], "error["),
    "unknown format": (["compile", "p.ein", "--format", "A=crs"], "did you mean `csr`?"),
    "format of an unknown tensor": (["compile", "p.ein", "--format", "B=csr"], "`B`"),
    "format of the wrong rank": (["compile", "p.ein", "--format", "x=csr"], "1 dimensions"),
    "lanes of an unknown index": (["compile", "p.ein", "--par", "q=4"], "4 lanes of `q`: no region has this index"),
    "no lanes": (["compile", "p.ein", "--par", "i=0"], "`0` is not a number of lanes"),
    "malformed order": (["compile", "p.ein", "--order", "i,k"], "write `--order"),
    "malformed lanes": (["compile", "p.ein", "--par", "i"], "write `--par i=4`"),
    "missing schedule": (["compile", "p.ein", "--schedule", "no.yaml"], "cannot read the schedule `no.yaml`"),
    "bad schedule key": (["compile", "p.ein", "--schedule", "bad.yaml"], "bad.yaml:1:1: error[schedule]: unknown key `fuze`"),
    "unknown machine": (["run", "p.ein", "--tensors", "t.yaml", "--machine", "idael"], "did you mean `ideal`?"),
    "unknown machine setting": (["run", "p.ein", "--set", "fifo_dept=4"], "unknown key `fifo_dept`\n  hint: did you mean `fifo_depth`?"),
    "machine setting of the wrong kind": (["run", "p.ein", "--set", "latency.add=fast"], "`latency.add: fast`: must be a whole number"),
    "machine setting without a value": (["run", "p.ein", "--set", "fifo_depth"], "`--set fifo_depth` is not KEY=VALUE"),
    "machine setting that is a list": (["run", "p.ein", "--set", "fifo_depth=[1]"], "is not a YAML scalar"),
    "machine setting that is not YAML": (["run", "p.ein", "--set", "fifo_depth=[1"], "is not a YAML scalar"),
    "machine setting twice": (["run", "p.ein", "--set", "fifo_depth=1", "--set", "fifo_depth=2"], "`--set fifo_depth` is given twice"),
    "machine setting that the rules refuse": (["run", "p.ein", "--machine", "comal", "--set", "fifo_depth=4"], "FIFOs are unbounded"),
    "unknown data": (["run", GCN, "--data", "kerate"], "did you mean `karate`?"),
    "unknown stage": (["compile", "p.ein", "--emit", "tabel"], "did you mean `table`?"),
    "unknown dump stage": (["compile", "p.ein", "--dump-after", "al", "--dump-dir", "d"], "did you mean `all`?"),
    "dump of a stage that is not there": (
        ["compile", "p.ein", "--dump-after", "linalg", "--dump-after", "table", "--dump-dir", "d"],
        "does not go through Linalg",
    ),
    "exported program of a text program": (["compile", "p.ein", "--emit", "torch"], "`p` is no PyTorch model"),
    "dump without a place": (["compile", "p.ein", "--dump-after", "all"], "needs `--dump-dir DIR`"),
    "place without a dump": (["compile", "p.ein", "--dump-dir", "d"], "needs `--dump-after STAGE`"),
    "fibertree without a place": (["compile", "p.ein", "--emit", "fibertree"], "`-o DIR`"),
    "directory on standard output": (["compile", "p.ein", "-o", "-"], "`compile --emit STAGE -o -`"),
    "directory of a run on standard output": (["run", "p.ein", "--tensors", "t.yaml", "-o", "-"], "standard output"),
    "option twice": (["run", "p.ein", "--tensors", "t.yaml", "--json", "a.json", "--json", "b.json"], "`--json` is given twice"),
    "stage twice": (["compile", "p.ein", "--emit", "dot", "--emit", "table"], "`--emit` is given twice"),
    "empty file name": (["compile", "p.ein", "--dump-after", "all", "--dump-dir", ""], "the name is empty"),
    "json in the output": (["run", "p.ein", "--tensors", "t.yaml", "-o", "o", "--json", "o/r.json"], "is in `o`"),
    "dump in the output": (["compile", "p.ein", "-o", "o", "--dump-after", "all", "--dump-dir", "o/d"], "is in `o`"),
    "output where one is": (["compile", "p.ein", "-o", "."], "is not empty"),
    "output is a file": (["compile", "p.ein", "-o", "p.ein"], "is a file, not a directory"),
    "output below a file": (["run", "p.ein", "--tensors", "t.yaml", "-o", "p.ein/out"], "cannot write `p.ein/out`"),
    "output of somebody else": (["run", "p.ein", "--tensors", "t.yaml", "-o", "mine"], "is not empty"),
    "json is a directory": (["run", "p.ein", "--tensors", "t.yaml", "--json", "mine"], "cannot write `mine`: it is a directory"),
    "json below a file": (["run", "p.ein", "--tensors", "t.yaml", "--json", "p.ein/r.json"], "cannot write `p.ein/r.json`"),
    "negative seed": (["run", "p.ein", "--seed", "-1"], "-1 is not in the range"),
    "unknown option": (["run", "p.ein", "--fues", "y"], "--fuse"),
    "unknown command": (["rnu", "p.ein"], "error[usage]: No such command 'rnu'. Did you mean 'run'?"),
    "no model": (["run"], "error[usage]: Missing argument 'MODEL'.\n  hint: `fuseflow run --help`"),
    "model option that there is not": (["run", SAE, "-O", "densty=1"], "did you mean `density`?"),
    "model option of the wrong kind": (["run", SAE, "-O", "hidden=many"], "is a whole number, not `many`"),
    "model option without a value": (["run", SAE, "-O", "small"], "`-O small` is not KEY=VALUE\n  hint: as in `-O small=true`"),
    "model option twice": (["run", SAE, "--small", "-O", "small=no"], "the model option `small` is given twice"),
    "part that there is not": (["run", GPT, "--part", "decoders"], "did you mean `decoder`?"),
    "part of a model without parts": (["run", SAE, "--part", "encoder"], "has no option `part`"),
    "model option of a program": (["run", "p.ein", "--small"], "takes no `options`"),
    "model without build": (["run", "empty.py"], "build"),
    "model that is not Python": (["run", "broken.py"], "broken.py"),
    "operator without an Einsum form": (["run", "erfinv.py"], "erfinv"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_message(here: Path, case: str) -> None:
    (here / "bad.ein").write_text("tensor A[3] dense\ny[i] = = A[i]\noutput y\n")
    (here / "bad.yaml").write_text("fuze: y\n")
    (here / "mine").mkdir()
    (here / "mine" / "thesis.txt").write_text("precious")
    (here / "empty.py").write_text("x = 1\n")
    (here / "broken.py").write_text("def build(data:\n")
    (here / "erfinv.py").write_text(
        "import torch\nclass M(torch.nn.Module):\n    def forward(self, x):\n        return x.erfinv()\n"
        "def build(data):\n    return M().eval(), (data.features.to_dense(),)\n"
    )
    before = sorted(str(p) for p in here.rglob("*"))
    arguments, what = BAD[case]
    result = fuseflow(*arguments)
    assert result.exit_code == 2, result.output
    assert what in result.stderr
    assert result.stdout == ""
    assert "Traceback" not in result.output
    assert "internal error" not in result.stderr
    assert sorted(str(p) for p in here.rglob("*") if "__pycache__" not in str(p)) == before


def test_debug_shows_the_traceback(here: Path) -> None:
    for arguments in (["--debug", "run", "nothing.ein"], ["run", "nothing.ein", "--debug"]):
        result = fuseflow(*arguments)
        assert result.exit_code == 2
        assert "Traceback" in result.stderr
        assert result.stderr.rstrip().splitlines()[-1].startswith("error[file]")


def _failing(error: BaseException) -> Callable[..., Compiled]:
    def fail(*_: object, **__: object) -> Compiled:
        raise error

    return fail


@pytest.mark.parametrize(
    ("error", "status", "what"),
    [
        (KeyError("x"), 1, "internal error: KeyError"),
        (
            MemoryError(),
            1,
            "not enough memory for that\n  hint: try less data, or smaller regions; `run --no-check` does without the dense reference",
        ),
        (KeyboardInterrupt(), 130, "interrupted"),
        (OSError(28, "No space left on device"), 2, "error[file]: cannot write the output: No space left on device"),
    ],
)
def test_the_unexpected_is_a_message_too(
    here: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, status: int, what: str
) -> None:
    monkeypatch.setattr("fuseflow.cli.request.load", _failing(error))
    result = fuseflow("run", "p.ein")
    assert result.exit_code == status
    assert what in result.stderr
    assert "Traceback" not in result.stderr


def test_a_failed_check_is_printed_and_exits_with_1(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ProgramReference, "interpret", lambda self: {"z": np.array([8, 0, 1], dtype=np.float32)})
    result = fuseflow("run", "p.ein", "--tensors", "t.yaml", "--json", "r.json")
    assert result.exit_code == 1
    assert "FAILED" in result.stdout
    assert "output `z` differs from dense interpreter" in result.stderr
    assert json.loads((here / "r.json").read_text())["check"]["passed"] is False


def test_a_model_file(here: Path) -> None:
    result = fuseflow("run", GCN, "--fuse", "layer1", "--data", "random:nodes=20,degree=3,features=8")
    assert result.exit_code == 0, result.output
    assert "layer1" in result.stdout
    assert "check against PyTorch: passed" in result.stdout


def test_a_text_program_needs_neither_torch_nor_mlir(here: Path) -> None:
    code = (
        "import sys\nfrom fuseflow.cli.main import main\n"
        "main(['run', 'p.ein', '--tensors', 't.yaml', '-q'], standalone_mode=False)\n"
        "sys.exit(' '.join({'torch', 'torch_mlir'} & sys.modules.keys()) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.strip()) == (0, "")


def test_stages_before_an_error_are_dumped(here: Path) -> None:
    """The second region has no legal order; the first one and the program are there to look at."""
    text = "tensor A[3, 3] csr\nB[i, j] = A[i, j] * 2\nC[i, j] = B[i, j] + A[j, i]\noutput C\n"
    (here / "cycle.ein").write_text(text)
    result = fuseflow("compile", "cycle.ein", "--fuse", "none", "--no-copies", "--dump-after", "all", "--dump-dir", "d")
    assert result.exit_code == 2
    assert {"02-einsum.ein", "05-table-B.txt"} <= {p.name for p in (here / "d").iterdir()}


def test_an_empty_program_is_named(here: Path) -> None:
    for name in ("empty.ein", "empty.mlir"):
        (here / name).write_text("")
        result = fuseflow("compile", name)
        assert result.exit_code == 2 and f"{name}:1: error" in result.stderr


def test_a_data_directory_that_nothing_reads_is_refused(here: Path) -> None:
    result = fuseflow("run", str(ROOT / "models" / "gcn.py"), "--data-dir", ".")
    assert result.exit_code == 2 and "data set `karate` reads no files" in result.stderr


def test_the_package_is_the_command() -> None:
    shown = subprocess.run([sys.executable, "-m", "fuseflow", "--version"], capture_output=True, text=True, check=True)
    assert shown.stdout.startswith("fuseflow, version")


def test_adjacency_and_intermediates() -> None:
    """`--adj` is an option of the data, of the default data too; what a schedule says of intermediates is in the result."""
    for data in ([], ["--data", "karate:nodes=20"]):
        model = [ROOT / "models" / "paper" / "gcn.py", "--small", *data, "--adj", "gcn"]
        result = fuseflow("run", *model, "--intermediates", "dense", "--order", "first", "--machine", "ideal", "--json", "-")
        found = json.loads(result.stdout)
        assert found["data"] == ("karate:nodes=20,adj=gcn" if data else "karate:adj=gcn")
        assert "intermediates: dense" in found["schedule"] and "order_policy: first" in found["schedule"]
        assert found["check"]["passed"] and "each region by itself" in found["check"]["reference"]
