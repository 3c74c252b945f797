"""The tool of whole models as circuits: it sees a bit that a circuit writes otherwise, and a latch or a loop in a module."""

from __future__ import annotations

import importlib
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from hardware_tools import require

from fuseflow.hardware.cosimulate import cosimulate
from fuseflow.hardware.tools import library_text
from fuseflow.rules.rules import DONE, EMPTY, STOP
from fuseflow.samml.text import parse
from fuseflow.sim import load_machine
from fuseflow.tensors import Format, pack

ROOT = Path(__file__).resolve().parents[2]
COPY = parse("""
tensor a[3] dense f32
tensor x[3] (compressed) f32
tensor y[3] dense f32
output y
root = root()
a_i = scan(root) a.0
x_i = scan(root) x.0
x_v = load(x_i.ref) x
j = join(a_i.crd, a_i.ref; x_i.crd, x_v) union
y_i = write(j.crd) y.0
v = alu(j.out1) copy N->0
y_v = write(v) y.vals
""")


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(ROOT / "tools")
    return importlib.import_module("hardware_models")


def test_bits_that_a_circuit_writes(tool: ModuleType) -> None:
    """A value with its lowest bit flipped is seen, and one that lacks."""
    a, x = (pack(np.float32([0, 1.5, -2]), Format.parse(name, 1)) for name in ("dense", "(compressed)"))
    run = cosimulate(COPY, {"a": a, "x": x}, load_machine("rtl"))
    assert run.difference is None
    assert tool.compared_values(COPY, run) == (3, 0)
    tokens = run.evaluation.tokens["y_v", tool.WRITTEN]
    assert [hex(word) for word in tokens[:3]] == ["0x0", "0x3fc00000", "0xc0000000"]
    tokens[2] ^= 1
    assert tool.compared_values(COPY, run) == (3, 1)
    lacks = replace(run.evaluation, tokens={**run.evaluation.tokens, ("y_v", tool.WRITTEN): tokens[1:]})
    assert tool.compared_values(COPY, replace(run, evaluation=lacks)) == (3, 3)


def test_values_of_tokens(tool: ModuleType) -> None:
    """Stops and `D` are none. A pad has the value that is not stored."""
    words = [5, EMPTY << 32, 7, STOP << 32, DONE << 32]
    assert tool.written_values(words, 9).tolist() == [5, 9, 7]
    tiles = [6 << 32 | 5, EMPTY << 64, STOP << 64, DONE << 64]
    assert tool.written_values(tiles, 9, 2).tolist() == [5, 6, 9, 9]


TOP = "module ff_top(\n  input e, a,\n  output y\n);\n  m n_m (.e (e), .a (a), .y (y));\nendmodule\n"
MODULES = {
    "a register": ("reg s; always @(posedge e) s <= a; assign y = s;", True),
    "a latch": ("reg s; always_comb if (e) s = a; assign y = s;", False),
    "a latch that is written as one": ("reg s; always_latch if (e) s = a; assign y = s;", False),
    "a loop": ("wire s; assign s = (s & e) ^ a; assign y = s;", False),
    "a loop through a unit": ("wire s; ff_f32_unit u (.a (s ^ a), .y (s)); assign y = s ^ e;", False),
    "a loop through a memory": ("wire s; ff_memory u (.clk (e), .address0 (s ^ a), .read0 (s)); assign y = s;", False),
    "a wire that nothing drives": ("wire s; assign y = s & e & a;", False),
}


@pytest.mark.parametrize("what", MODULES)
def test_modules_that_yosys_refuses(tool: ModuleType, what: str, tmp_path: Path) -> None:
    require("yosys")
    body, good = MODULES[what]
    (tmp_path / "01-ff_top.sv").write_text(f"module m(\n  input e, a,\n  output y\n);\n  {body}\nendmodule\n{TOP}")
    (tmp_path / "ff_f32_unit.sv").write_text("module ff_f32_unit(input a, output y); assign y = !a; endmodule\n")
    (tmp_path / "ff_memory.sv").write_text(
        library_text("ff_memory1.sv").replace("ff_memory1", "ff_memory").replace("W = 8, A = 4", "W = 1, A = 1")
    )
    (tmp_path / "ff_channel.sv").write_text("module ff_channel(input a, output y); assign y = a; endmodule\n")
    (tmp_path / "files.f").write_text("ff_f32_unit.sv\nff_memory.sv\nff_channel.sv\n01-ff_top.sv\n")
    assert tool.synthesized("model", tmp_path / "01-ff_top.sv") == good
