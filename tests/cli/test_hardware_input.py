"""What is wrong of hardware, areas and energies is one error with its place and a hint, and exit status 2."""

from __future__ import annotations

import os
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hardware_tools import require

from fuseflow.cli.main import main
from fuseflow.hardware import axi_ports

SPMM = ("docs/example/spmm.ein", "--tensors", "docs/example/tensors.yaml")
ENERGIES = (resources.files("fuseflow.energy") / "energy.yaml").read_text(encoding="utf-8")
FLIP_FLOP = """library(odd) { cell(FF) { area : 9; ff(IQ, IQN) { next_state : "D"; clocked_on : "C"; }
  pin(D) { direction : input; } pin(C) { direction : input; clock : true; } pin(Q) { direction : output; function : "IQ"; } } }
"""
SELECT = "tensor H[6, 4] dense\nY[i, j] = keep(2 over j) H[i, j]\noutput Y\n"


def refused(*words: str | Path) -> str:
    """What is printed for wrong input: an error with a hint, without a traceback."""
    result = CliRunner().invoke(main, [str(word) for word in words])
    assert (result.exit_code, result.stdout) == (2, "") and isinstance(result.exception, SystemExit), result.output
    assert result.stderr.count("error[") == 1 and "hint: " in result.stderr and "Traceback" not in result.stderr
    return result.stderr


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("module x; endmodule", "has no `library (NAME) {`"),
        ("library(x) { }", "has no cell with an `area`"),
        ("library(x) { cell(INV) { area : 1; } }", "has no flip-flop"),
    ],
)
def test_a_library_without_the_cells_needed(text: str, why: str, tmp_path: Path) -> None:
    file = tmp_path / "cells.lib"
    file.write_text(text)
    told = refused("area", *SPMM, "--liberty", file)
    assert str(file) in told and why in told


def test_a_library_without_gates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require("yosys", "pycde")
    monkeypatch.setenv("FUSEFLOW_CACHE_DIR", str(tmp_path))
    (tmp_path / "cells.lib").write_text(FLIP_FLOP)
    (tmp_path / "p.ein").write_text("tensor A[2] dense\ntensor B[2] dense\nY[i] = max(A[i], B[i])\noutput Y\n")
    np.save(tmp_path / "a.npy", np.ones(2))
    (tmp_path / "t.yaml").write_text("A: {path: a.npy}\nB: {path: a.npy}\n")
    told = refused("area", tmp_path / "p.ein", "--tensors", tmp_path / "t.yaml", "--liberty", tmp_path / "cells.lib")
    assert str(tmp_path / "cells.lib") in told and "maps one gate and one flip-flop" in told and "needs an inverter" in told


@pytest.mark.parametrize(
    ("old", "new", "why", "line"),
    [
        ("  div:", "  # div:", "the key `operators.div` is missing", "operators:"),
        ("value: 3.7", "value: -3.7", "`operators.mul.value`: must not be negative, not `-3.7`", "  mul:"),
        ("  div:", "  dib: {}\n  div:", "unknown key `operators.dib`", "  dib:"),
        ("    refresh:", "    # refresh:", "the key `dram.hbm2.refresh` is missing", "  hbm2:"),
    ],
)
@pytest.mark.parametrize("command", ["run", "estimate"])
def test_a_file_of_energies(command: str, old: str, new: str, why: str, line: str, tmp_path: Path) -> None:
    file = tmp_path / "own.yaml"
    file.write_text(text := ENERGIES.replace(old, new, 1))
    told = CliRunner().invoke(main, [command, *SPMM, "--energy-file", str(file)])
    place = next(number for number, found in enumerate(text.splitlines(), 1) if found.startswith(line))
    assert told.exit_code == 2 and why in told.stderr and f"own.yaml:{place}" in told.stderr
    assert "Traceback" not in told.stderr


def test_more_ports_than_ids_can_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(axi_ports, "PORT_BITS", 1)
    told = refused("compile", *SPMM, "--machine", "rtl", "--set", "memory=hbm2", "--emit", "hw", "-o", tmp_path / "c.mlir")
    assert "ports at the memory, and the ids of a circuit name 2" in told and "fewer lanes" in told
    assert not list(tmp_path.iterdir())


def test_a_node_without_a_port_module(tmp_path: Path) -> None:
    words = ("--machine", "rtl", "--set", "memory=hbm2", "--emit", "hw", "-o", tmp_path / "c.mlir")
    told = refused("compile", *SPMM, *words, "--buffer", "X=1KB")
    assert "reads `X` through a reuse buffer, and the ports of a circuit have none" in told
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("memory", ["ideal", "hbm2"])
def test_a_node_without_a_circuit(memory: str, tmp_path: Path) -> None:
    (tmp_path / "p.ein").write_text(SELECT)
    np.save(tmp_path / "h.npy", np.arange(24.0).reshape(6, 4))
    (tmp_path / "t.yaml").write_text("H: {path: h.npy}\n")
    told = refused(
        "compile",
        tmp_path / "p.ein",
        "--tensors",
        tmp_path / "t.yaml",
        "--machine",
        "rtl",
        "--set",
        f"memory={memory}",
        "--emit",
        "hw",
    )
    assert "(select) has no circuit" in told


@pytest.mark.parametrize("words", [("area", *SPMM), ("cosimulate", *SPMM, "--tool", "verilator")])
def test_programs_that_are_absent_are_told_with_what_to_install(words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", os.devnull)
    program = "yosys" if words[0] == "area" else "verilator"
    told = refused(*words)
    assert f"`{program}`" in told and f"apt-get install {program}" in told
