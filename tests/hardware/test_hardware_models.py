"""Whole models as circuits; and a bit that a circuit writes otherwise, a latch and a loop are seen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import figure13
import hardware_models as tool
import numpy as np
import pytest
from energy_counters import circuit_counters, energy_counters
from hardware_models import ALL_MODELS
from hardware_tools import require

from fuseflow.firing_rules.rules import DONE, EMPTY, STOP
from fuseflow.hardware.cosimulate import Cosimulation, cosimulate
from fuseflow.hardware.rtl_simulators import library_text
from fuseflow.samml.nodes import Graph
from fuseflow.samml.text import parse
from fuseflow.sim import Machine, Simulation, load_machine
from fuseflow.tensors import Format, pack

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


def in_circuits(report: Callable[[Graph, Machine, Cosimulation], None]) -> Callable[..., Simulation]:
    """How regions run in Verilator beside the simulator, each of which is reported."""

    def execute(graph: Graph, tensors: Mapping[str, Any], machine: Machine, *_: Any, **__: Any) -> Simulation:
        run = cosimulate(graph, tensors, machine, "verilator")
        assert run.simulation is not None, f"{graph.name} has a deadlock: {run.waiting}"
        report(graph, machine, run)
        return run.simulation

    return execute


@pytest.mark.slow
@pytest.mark.parametrize("memory", ["ideal", "hbm2"])
@pytest.mark.parametrize("name", ALL_MODELS)
def test_a_model_in_verilator(name: str, memory: str) -> None:
    """Every token is given in the cycle of the simulator, what is written has its bits, and the counts of energy are those of the circuit.
    The outputs are those of PyTorch."""
    require("pycde", "verilator")

    def report(graph: Graph, machine: Machine, run: Cosimulation) -> None:
        assert run.difference is None, graph.name
        assert circuit_counters(graph, machine, run) == energy_counters(graph, machine, run), graph.name
        values, wrong = tool.compared_values(graph, run)
        assert values > 0 and not wrong, graph.name

    compiled = ALL_MODELS[name].compile(load_machine("rtl", {"memory": memory}))
    check = compiled.run(dedup=False, execute=in_circuits(report)).check
    assert check is not None and check.reference == "PyTorch" and check.max_rel_error <= 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("memory", ["ideal", "hbm2"])
@pytest.mark.parametrize("kernels", figure13.MODELS, ids=lambda kernels: kernels.name)
def test_the_kernels_of_figure_13_in_verilator(kernels: figure13.Kernels, memory: str) -> None:
    require("pycde", "verilator")
    runs = list[Cosimulation]()
    figure13.compare(kernels, lambda _, __, run, ___: runs.append(run), "verilator", load_machine("rtl", {"memory": memory}))
    assert runs and all(run.difference is None and run.cycles == run.simulator_cycles for run in runs)


@pytest.mark.slow
@pytest.mark.parametrize("memory", ["ideal", "hbm2"])
@pytest.mark.parametrize(("program", "accepts"), [("verilator", tool.linted), ("yosys", tool.synthesized)])
@pytest.mark.parametrize("name", [*ALL_MODELS, "random"])
def test_other_tools_accept_all_modules(
    name: str, program: str, accepts: Callable[[Path], str], memory: str, draws: Callable[[int], range], tmp_path: Path
) -> None:
    """Verilator has nothing to say, and yosys finds no latch, no loop and no wire that nothing drives."""
    require("pycde", program)
    if name == "random":
        for seed, graph, machine in islice(tool.random_circuits(memory), len(draws(100))):
            assert not tool.refused([graph], machine, accepts, tmp_path / seed), seed
    else:
        compiled = ALL_MODELS[name].compile(load_machine("rtl", {"memory": memory}))
        assert not tool.refused([region.graph for region in compiled.regions], compiled.machine, accepts, tmp_path / "verilog")


def test_bits_that_a_circuit_writes() -> None:
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


def test_values_of_tokens() -> None:
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
def test_modules_that_yosys_refuses(what: str, tmp_path: Path) -> None:
    require("yosys")
    body, good = MODULES[what]
    (tmp_path / "01-ff_top.sv").write_text(f"module m(\n  input e, a,\n  output y\n);\n  {body}\nendmodule\n{TOP}")
    (tmp_path / "ff_f32_unit.sv").write_text("module ff_f32_unit(input a, output y); assign y = !a; endmodule\n")
    (tmp_path / "ff_memory.sv").write_text(
        library_text("ff_memory1.sv").replace("ff_memory1", "ff_memory").replace("W = 8, A = 4", "W = 1, A = 1")
    )
    (tmp_path / "ff_channel.sv").write_text("module ff_channel(input a, output y); assign y = a; endmodule\n")
    (tmp_path / "files.f").write_text("ff_f32_unit.sv\nff_memory.sv\nff_channel.sv\n01-ff_top.sv\n")
    assert (tool.synthesized(tmp_path / "01-ff_top.sv") == "") == good
