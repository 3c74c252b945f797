"""Areas: the parts of a circuit, what they take by themselves and together, and what is kept of them."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from hardware_tools import require
from sum_graph import GRAPH

from fuseflow.errors import FileError, HardwareError
from fuseflow.hardware.area import circuit_area, synthesis
from fuseflow.hardware.area.circuit_area import CircuitArea, circuit_areas
from fuseflow.hardware.area.parts import CircuitParts
from fuseflow.hardware.area.synthesis import read_liberty
from fuseflow.hardware.circuit_files import bounded_circuit, save_verilog
from fuseflow.resources.gate_areas import GATE_EQUIVALENT, MEMORY_BIT, SQUARE_MICROMETRES, gate_area
from fuseflow.sim import Machine

LATENCY = {"default": 1, "add": 3}
PLAIN = Machine(name="plain", arithmetic="f32", fifo_depth=2, latency=LATENCY)
DEEP = Machine(name="deep", arithmetic="f32", fifo_depth=12, latency=LATENCY)
LIBRARY = """library(small) {
  cell(INV) { area : 1; pin(A) { direction : input; } pin(Y) { direction : output; function : "A'"; } }
  cell(BUF) { area : 1.5; pin(A) { direction : input; } pin(Y) { direction : output; function : "A"; } }
  cell(ND2) { area : 2; pin(A) { direction : input; } pin(B) { direction : input; } pin(Y) { direction : output; function : "(A*B)'"; } }
  %s
}
"""
FLIP_FLOP = """cell(FF) { area : 9; ff(IQ, IQN) { next_state : "D"; clocked_on : "C"; }
    pin(D) { direction : input; } pin(C) { direction : input; clock : true; } pin(Q) { direction : output; function : "IQ"; } }"""


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kept")


@pytest.fixture(autouse=True)
def own_cache(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FUSEFLOW_CACHE_DIR", str(cache))


def area_of(machine: Machine, library: Path | None = None) -> CircuitArea:
    (area,) = circuit_areas([bounded_circuit(GRAPH, machine)], None if library is None else read_liberty(library))
    return area


def test_equal_parts_are_one() -> None:
    total = CircuitParts.of(bounded_circuit(GRAPH, PLAIN)).total
    count = {(part.kind, part.name): number for part, number in total.items()}
    assert sum(number for part, number in total.items() if part.kind == "primitive") == len(GRAPH.nodes)
    assert count["primitive", "load"] == 2 and count["unit", "f32_add"] == 1
    assert count["fifo", "2 x 34, latency 3"] == 1  # behind the addition
    edges = sum(len(node.inputs) for node in GRAPH.nodes)
    assert sum(number for part, number in total.items() if part.kind == "fifo") == edges


def test_deep_fifos_keep_their_tokens_in_a_memory() -> None:
    parts = CircuitParts.of(bounded_circuit(GRAPH, DEEP)).total
    fifos = {part: number for part, number in parts.items() if part.kind == "fifo"}
    words = {part.values["W"]: number for part, number in parts.items() if part.kind == "memory"}
    assert sum(words.values()) == sum(fifos.values())
    assert {part.values["N"] for part in parts if part.kind == "memory"} == {12}


def test_a_fifo_of_a_circuit_has_as_many_flip_flops_as_it_stores() -> None:
    """Counted by hand: 2 tokens of 10 bits, two counters to 2, two pointers of a bit."""
    require("yosys", "pycde")
    rows = {(row.part.kind, row.part.name): row for row in area_of(PLAIN).parts}
    assert rows["fifo", "2 x 10"].flip_flops == 2 * 10 + 2 * 2 + 2 * 1
    assert rows["unit", "f32_add"].flip_flops == 0


def test_a_whole_is_about_the_sum_of_its_parts(tmp_path: Path) -> None:
    """The oracle is yosys again, which makes gates of the region as one module."""
    require("yosys", "pycde")
    area = area_of(PLAIN)
    save_verilog(tmp_path / "out", [GRAPH], PLAIN)
    folder = tmp_path / "out"
    (top,) = (region["top"] for region in json.loads((folder / "circuit.json").read_text())["regions"])
    files = (folder / "files.f").read_text().replace("\n", " ")
    script = (
        f"read_verilog -sv {files}\nhierarchy -check -top {top}\n{synthesis.STEPS}\n"
        f"abc -g {synthesis.GATES} -script {synthesis.OPTIMIZE}\nopt_clean -purge\ntee -q -o whole.json stat -json\n"
    )
    (folder / "whole.ys").write_text(script)
    subprocess.run(["yosys", "-q", "-s", "whole.ys"], cwd=folder, check=True)
    text = (folder / "whole.json").read_text()
    cells = json.loads(text[text.index("{") :])["design"]["num_cells_by_type"]
    assert gate_area(cells) / GATE_EQUIVALENT == pytest.approx(area.total, rel=0.05)
    assert sum(area.by_node.values()) == pytest.approx(area.total)


def test_what_was_made_once_is_kept(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    require("yosys", "pycde")
    before = area_of(PLAIN)
    asked = []

    def counted(parts: CircuitParts, missing: list[object], *more: object) -> dict[object, object]:
        asked.append(len(missing))
        return synthesis.synthesize(parts, missing, *more)  # type: ignore[arg-type, return-value]

    monkeypatch.setattr(circuit_area, "synthesize", counted)
    assert area_of(PLAIN).to_json() == before.to_json()
    assert asked == [0]
    file = next((cache / "area").iterdir())
    file.write_bytes(file.read_bytes()[:-1] + b"!")  # damaged, so it is made again
    assert area_of(PLAIN).to_json() == before.to_json()
    assert asked == [0, 1]


def test_a_library_of_the_user(tmp_path: Path) -> None:
    require("yosys", "pycde")
    file = tmp_path / "small.lib"
    file.write_text(LIBRARY % FLIP_FLOP)
    area = area_of(PLAIN, file)
    assert (area.unit, area.technology) == ("area", "small")
    assert area.total > sum(row.flip_flops * row.count for row in area.parts) > 100


def test_a_deep_fifo_is_cheaper_in_a_memory() -> None:
    require("yosys", "pycde")
    rows = {(row.part.kind, row.part.name): row for row in area_of(DEEP).parts}
    memory = rows["memory", "12 x 34"]
    assert memory.area == pytest.approx(12 * 34 * MEMORY_BIT / GATE_EQUIVALENT)
    assert rows["fifo", "12 x 34"].area + memory.area < 12 * 34 * SQUARE_MICROMETRES["$_DFF_P_"] / GATE_EQUIVALENT


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"\xff\xfe", "is not UTF-8 text"),
        (b"module x; endmodule", "has no `library"),
        (b"library(x) { }", "no cell with an `area`"),
        ((LIBRARY % "").encode(), "has no flip-flop"),
    ],
)
def test_libraries_that_are_refused(content: bytes, why: str, tmp_path: Path) -> None:
    file = tmp_path / "cells.lib"
    file.write_bytes(content)
    with pytest.raises(FileError, match=why):
        read_liberty(file)


def test_no_library(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="cannot read"):
        read_liberty(tmp_path / "nothing.lib")
    with pytest.raises(FileError, match="cannot read"):
        read_liberty(tmp_path)


def test_without_gates_a_library_is_refused(tmp_path: Path) -> None:
    require("yosys", "pycde")
    file = tmp_path / "odd.lib"
    file.write_text("library(odd) { %s }" % FLIP_FLOP)  # noqa: UP031
    with pytest.raises(HardwareError):
        area_of(PLAIN, file)


@pytest.mark.parametrize("does", ["kill -SEGV $$", "while :; do :; done", "exit 3"])
def test_a_library_that_yosys_does_not_survive_is_refused(does: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A yosys that breaks off, never ends or gives up is planted."""
    require("pycde")
    (tmp_path / "yosys").write_text(f"#!/bin/sh\n[ $1 = -V ] && exec echo planted\n{does}\n")
    (tmp_path / "yosys").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(synthesis, "PROBE_SECONDS", 1)
    (tmp_path / "cells.lib").write_text(LIBRARY % FLIP_FLOP)
    with pytest.raises(HardwareError, match="where it maps one gate"):
        area_of(PLAIN, tmp_path / "cells.lib")


def test_yosys_is_asked_for_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", os.devnull)
    with pytest.raises(HardwareError, match="`yosys` makes, and it is not there") as error:
        area_of(PLAIN)
    assert error.value.hint is not None and "apt-get install yosys" in error.value.hint
