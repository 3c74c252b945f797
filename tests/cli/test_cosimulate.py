"""`fuseflow cosimulate`, and `fuseflow compile --emit hw` and `verilog`: what they print, and what they refuse."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import fuseflow
from hardware_faults import faults
from hardware_tools import require

from fuseflow.hardware import cosimulate as module
from fuseflow.hardware.circuit import Circuit
from fuseflow.requirements import install_command

ROOT = Path(__file__).resolve().parents[2]
SPMM = (str(ROOT / "docs/example/spmm.ein"), "--tensors", str(ROOT / "docs/example/tensors.yaml"))


def failure(*arguments: str | Path) -> str:
    """What is printed for wrong input, without a traceback."""
    result = fuseflow(*arguments)
    assert result.exit_code == 2 and isinstance(result.exception, SystemExit), result.output
    return result.stderr


def test_regions_one_after_the_other() -> None:
    result = fuseflow("cosimulate", *SPMM, "--fuse", "none", "--wide")
    assert result.exit_code == 0, result.output
    rows = [line.split() for line in result.stdout.splitlines()[2:]]
    assert len(rows) == 2
    assert all(row[1] == "equal" and row[5] == row[6] for row in rows)
    one = fuseflow("cosimulate", *SPMM, "--fuse", "none", "--region", rows[1][0], "--wide")
    assert [line.split()[0] for line in one.stdout.splitlines()[2:]] == [rows[1][0]]


def test_a_waveform(tmp_path: Path) -> None:
    require("pycde", "iverilog", "vvp")
    result = fuseflow("cosimulate", *SPMM, "--tool", "icarus", "--wave", tmp_path / "w.vcd", "-q")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "fire_closes_with" in (tmp_path / "w.vcd").read_text()


def test_a_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    fault = next(fault for fault in faults() if fault.name == "reduce: `fold` changes nothing")
    build = module.build_circuit

    def faulty(*arguments: object) -> Circuit:
        return fault.plant(build(*arguments))  # type: ignore[arg-type]

    monkeypatch.setattr(module, "build_circuit", faulty)
    result = fuseflow("cosimulate", *SPMM)
    assert result.exit_code == 1
    assert "different" in result.stdout
    assert "error[check]: the circuit of region `full` differs from the simulator\n  note: token " in result.stderr
    assert "in the simulator" in result.stderr


def test_a_memory_that_takes_time() -> None:
    result = fuseflow("cosimulate", *SPMM, "--machine", "rda")
    assert result.exit_code == 0
    assert "equal" in result.stdout


def test_on_an_array(tmp_path: Path) -> None:
    """A run on the array takes as many cycles, and placements are read."""
    placement, machine = ("--array", "onyx", "--placement", tmp_path / "placed"), ("--machine", "rtl")
    placed = fuseflow("place", *SPMM, *machine, "--array", "onyx", "-o", tmp_path / "placed")
    assert placed.exit_code == 0, placed.output
    assert fuseflow("run", *SPMM, *machine, *placement, "--json", tmp_path / "run.json", "-q").exit_code == 0
    cycles = json.loads((tmp_path / "run.json").read_text())["cycles"]
    for words in (placement, placement[:2]):
        head, _, row = fuseflow("cosimulate", *SPMM, *words, "--wide").stdout.splitlines()
        (region, verdict, _, hops, *rest), near = row.split(), fuseflow("cosimulate", *SPMM, "--wide").stdout.splitlines()
        assert (region, verdict) == ("full", "equal") and rest[2:4] == [str(cycles)] * 2 != near[2].split()[5:7]
        assert "hops" in head and int(hops) > 20 and "hops" not in near[0]
    text = fuseflow("compile", *SPMM, "--emit", "hw", *placement).stdout
    assert "@ff_hop<" in text
    require("pycde")
    emitted = fuseflow("compile", *SPMM, "--emit", "verilog", *placement, "-o", tmp_path / "v")
    assert emitted.exit_code == 0 and emitted.stdout.splitlines()[:4] == placed.stdout.splitlines()[:4]
    (about,) = json.loads((tmp_path / "v" / "circuit.json").read_text())["regions"]
    assert about["hops"] == int(hops) and about["array"] == "onyx"
    clocks = placed.stdout.splitlines()[3].split()[-3:-1]
    assert [f"{1_000_000 / about[key]:.0f}" for key in ("tile_delay_ps", "path_delay_ps")] == clocks
    assert "ff_hop.sv" in (tmp_path / "v" / "files.f").read_text().split()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--tool", "icarsu"), "unknown tool `icarsu`\n  hint: did you mean `icarus`?"),
        (("--region", "fulll"), "there is no region `fulll`\n  hint: did you mean `full`?"),
        (("--wave", "w.vcd"), "`--wave` needs a simulator of SystemVerilog"),
        (("--machine", "comal"), "machine `comal` has `rules: comal`"),
    ],
)
def test_what_is_refused(options: tuple[str, ...], message: str) -> None:
    assert message in failure("cosimulate", *SPMM, *options)


def test_a_wave_of_several_regions(tmp_path: Path) -> None:
    require("iverilog", "vvp")
    options = ("--fuse", "none", "--tool", "icarus", "--wave", tmp_path / "w.vcd")
    assert "`--wave` is of one region" in failure("cosimulate", *SPMM, *options)


def test_a_tool_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert "`verilator` is not there" in failure("cosimulate", *SPMM, "--tool", "verilator")


def test_stages_of_circuits(tmp_path: Path) -> None:
    text = fuseflow("compile", *SPMM, "--emit", "hw").stdout
    assert "hw.module @ff_full(" in text and "seq.compreg" in text
    slower = fuseflow("compile", *SPMM, "--emit", "hw", "--set", "latency.mul=7").stdout
    assert "L: i32 = 7>" in slower and "L: i32 = 7>" not in text
    require("pycde")
    assert fuseflow("compile", *SPMM, "--emit", "verilog", "-o", tmp_path / "v").exit_code == 0
    assert {"files.f", "circuit.json", "01-ff_full.sv", "ff_channel.sv"} <= {path.name for path in (tmp_path / "v").iterdir()}


def test_stages_that_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "`--emit verilog` writes a directory" in failure("compile", *SPMM, "--emit", "verilog")
    assert "a machine is of `--emit hw`" in failure("compile", *SPMM, "--emit", "samml", "--machine", "rtl")
    assert "has no bound on this machine" in failure(
        "compile", *SPMM, "--emit", "hw", "--machine", "ideal", "--set", "arithmetic=f32"
    )
    assert "an array is of `--emit hw`" in failure("compile", *SPMM, "--array", "onyx")
    assert "`--placement` without `--array`" in failure("compile", *SPMM, "--emit", "hw", "--placement", tmp_path)
    (tmp_path / "mine.txt").write_text("mine")
    assert "is not empty and holds no `circuit.json`" in failure("compile", *SPMM, "--emit", "verilog", "-o", tmp_path)
    monkeypatch.setattr("fuseflow.hardware.circuit_files.find_spec", lambda name: None)
    monkeypatch.setitem(__import__("sys").modules, "pycde", None)
    monkeypatch.setitem(__import__("sys").modules, "pycde.circt", None)
    assert install_command("pycde") in failure("compile", *SPMM, "--emit", "verilog", "-o", tmp_path / "v")
    assert not (tmp_path / "v").exists()
