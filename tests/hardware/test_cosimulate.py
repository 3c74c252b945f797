"""Circuits in simulators of SystemVerilog, against fuseflow's: equal in everything, or told what differs first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hardware_cases import MemoryKind, firing_differences, hardware_case, stalled_differences
from hardware_faults import Fault, faults, noticed
from hardware_tools import require

from fuseflow.errors import HardwareError, UsageError
from fuseflow.hardware import axi_ports
from fuseflow.hardware import cosimulate as module
from fuseflow.hardware.circuit import Circuit
from fuseflow.hardware.circuit_files import circuit_text
from fuseflow.hardware.comparison import simulated
from fuseflow.hardware.cosimulate import cosimulate
from fuseflow.hardware.python_code import Step
from fuseflow.hardware.rtl_simulators import TOOLS, find_tool, library_text
from fuseflow.memory.settings import DramMemory, FixedMemory
from fuseflow.memory.table_files import preset_names
from fuseflow.samml.text import parse
from fuseflow.sim import Machine

ICARUS = (1, 3, 14, 26, 29, 31, 295)
"""Seeds whose graphs have accumulates of order 2, permutes, drops, bitmaps and n:m levels, in 32 and in 64 bits. The last one keeps the
coordinates of a level that has one."""
DEADLOCK = 19
TILED = (41, 77, 87, 127)
"""Seeds whose graphs have tiles, and arrays of all kinds."""

ERF = """
tensor x[3] dense f32
tensor y[3] dense f32
output y
root = root()
x_i = scan(root) x.0
x_v = load(x_i.ref) x
e = alu(x_v) erf N->0
y_i = write(x_i.crd) y.0
y_v = write(e) y.vals
"""


@pytest.mark.parametrize("seed", ICARUS)
def test_icarus(seed: int) -> None:
    require("pycde", "iverilog", "vvp")
    case = hardware_case(seed)
    run = cosimulate(case.graph, case.tensors, case.machine, "icarus")
    assert run.difference is None
    assert run.cycles == run.simulator_cycles > 0
    assert run.tokens > run.nodes


@pytest.mark.parametrize(("seed", "memory"), [*((seed, "ideal") for seed in TILED), (31, "fixed")])
def test_icarus_on_tiles(seed: int, memory: MemoryKind) -> None:
    require("pycde", "iverilog", "vvp")
    case = hardware_case(seed, memory, tiles=True)
    run = cosimulate(case.graph, case.tensors, case.machine, "icarus")
    assert run.difference is None
    assert not firing_differences(case, run.evaluation)
    assert run.cycles == run.simulator_cycles > 0


FIXED, AT_HBM2 = (3, 14), (1, 31)
"""Seeds of graphs at a memory of a fixed latency, and at HBM2."""


@pytest.mark.parametrize("seed", [*FIXED, *AT_HBM2])
def test_icarus_at_a_memory(seed: int) -> None:
    """The memory of a fixed latency is SystemVerilog, and HBM2 is served by the model of the simulators."""
    require("pycde", "iverilog", "vvp")
    case = hardware_case(seed, "fixed")
    if seed in AT_HBM2:
        case = replace(case, machine=case.machine.model_copy(update={"memory": DramMemory(outstanding=5, line=32)}))
    run = cosimulate(case.graph, case.tensors, case.machine, "icarus")
    assert run.difference is None
    assert run.cycles == run.simulator_cycles > 0
    assert not firing_differences(case, run.evaluation)  # of requests, too
    assert sum(map(len, run.evaluation.requests.values())) > 5


@pytest.mark.parametrize("tool", ["python", pytest.param("icarus", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", preset_names())
def test_a_circuit_at_every_preset(name: str, tool: str) -> None:
    """The model of the simulators answers its requests, each in its cycle."""
    require(*({"icarus": ("pycde", "iverilog", "vvp")}.get(tool, ())))
    case = hardware_case(3, "fixed")
    machine = case.machine.model_copy(update={"memory": DramMemory(model=name, outstanding=5, line=64)})
    run = cosimulate(case.graph, case.tensors, machine, tool)
    assert run.difference is None
    assert run.cycles == run.simulator_cycles > 0
    assert not firing_differences(replace(case, machine=machine), run.evaluation)
    assert sum(map(len, run.evaluation.requests.values())) > 5


STALLED = {3: "fixed", 31: "any", 77: "any"}
"""Seeds of graphs at memories that are not always ready."""


@pytest.mark.parametrize("seed", STALLED)
def test_a_memory_that_is_not_always_ready(seed: int) -> None:
    """Requests wait in their ports. Every token is that of the simulator, in a later cycle."""
    require("pycde", "iverilog", "vvp")
    case = hardware_case(seed, STALLED[seed], tiles=seed == 77)  # type: ignore[arg-type]
    lines, run, cycles = stalled_differences(case, "icarus", seed)
    assert not lines
    assert run.cycles > cycles


def test_a_port_that_loses_a_request_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    require("pycde", "iverilog", "vvp")

    def faulty(name: str) -> str:
        return library_text(name).replace("held <= valid & !ready;", "held <= 1'b0;")

    monkeypatch.setattr(module, "library_text", faulty)
    lines, run, _ = stalled_differences(hardware_case(3, "fixed"), "icarus", 3)
    assert lines and run.waiting


ARRIVES = "arrived[lines[T'(next + T'(k))]] <= 1'b1"


@pytest.mark.parametrize("planted", ["if (T'(k) != ahead) ", "if (answer_tag[0]) "])
def test_an_element_whose_line_has_not_come_is_seen(planted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some lines never arrive, though they are answered: their elements are undefined."""
    require("pycde", "iverilog", "vvp")

    def faulty(name: str) -> str:
        return library_text(name).replace(ARRIVES, planted + ARRIVES)

    assert ARRIVES in library_text("ff_arrivals.sv")
    monkeypatch.setattr(module, "library_text", faulty)
    case = hardware_case(3, "fixed")
    try:
        found = cosimulate(case.graph, case.tensors, case.machine, "icarus").difference is not None
    except HardwareError as error:
        found = "undefined bits" in error.message
    assert found


def test_more_ports_than_ids_can_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(axi_ports, "PORT_BITS", 1)
    case = hardware_case(3, "fixed")
    with pytest.raises(HardwareError, match=r"has \d+ ports at the memory, and the ids of a circuit name 2") as error:
        circuit_text(case.graph, case.machine.model_copy(update={"fifo_depth": 4}))
    assert "fewer lanes" in error.value.hint


def test_a_fifo_that_is_too_deep() -> None:
    case = hardware_case(3, "fixed")
    memory = FixedMemory(outstanding=1 << 20)
    with pytest.raises(HardwareError, match="slots, and in SystemVerilog there are 65,536 at most") as error:
        circuit_text(case.graph, case.machine.model_copy(update={"fifo_depth": 4, "memory": memory}))
    assert "memory.outstanding" in error.value.hint


@pytest.mark.parametrize("tool", ["python", "icarus"])
def test_a_deadlock_in_both_is_agreement(tool: str) -> None:
    require(*([] if tool == "python" else ["pycde", "iverilog"]))
    case = hardware_case(DEADLOCK)
    run = cosimulate(case.graph, case.tensors, case.machine, tool)
    assert run.difference is None and run.waiting and run.simulation is None


@pytest.mark.slow
def test_verilator() -> None:
    require("pycde", "verilator", "g++", "make")
    for seed in (3, 14, 19, 77, -1):
        case = hardware_case(abs(seed), "any" if seed < 0 else "ideal", tiles=seed == 77)
        assert cosimulate(case.graph, case.tensors, case.machine, "verilator").difference is None


PLANTED = {
    "a slot fewer": 1,
    "visible at once": 3,
    "no interval": 1,
    "scan: `closes with` closes a level less": 1,
    "join: `gives 0` never": 19,
    "accumulate: `gives 0` changes nothing": 31,
    "drop: `keeps` changes nothing": 24,
    "array of alu: the next tile a cycle too early": 19,
    "array of accumulate: forgets what it keeps": 31,
    "array of reduce: the last step is lost": 8,
    "a tile is not transposed": 19,
    "a product with a transposed tile": 139,
    "a tile comes with its elements in another order": 0,
}
"""Some of the faults, and the seed of a graph that shows each."""


@pytest.mark.parametrize("fault", [fault for fault in faults() if fault.name in PLANTED], ids=lambda fault: fault.name)
def test_planted_faults_are_found(fault: Fault) -> None:
    case = fault.case(PLANTED[fault.name])
    expected = simulated(case.graph, case.tensors, fault.machine(case), engine="reference")
    assert noticed(fault, case, expected, {})


@pytest.mark.slow
@pytest.mark.parametrize("fault", faults(), ids=lambda fault: fault.name)
def test_every_planted_fault_is_found(fault: Fault, draws: Callable[[int], range]) -> None:
    """In one of the graphs that have its primitive."""
    steps = dict[str, Step]()
    for case in map(fault.case, draws(400)):
        if not fault.op or fault.op in {node.op for node in case.graph.nodes}:
            expected = simulated(case.graph, case.tensors, fault.machine(case), engine="reference")
            if noticed(fault, case, expected, steps):
                return
    pytest.fail("no graph shows it")


def test_a_unit_that_is_not_there_is_told_before_anything_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """SystemVerilog has no `erf` of 64 bits. In 32 bits it is a circuit of ours."""
    require("iverilog", "vvp")
    monkeypatch.setattr(module, "simulated", None)
    graph = parse(ERF)
    with pytest.raises(HardwareError, match="the operator `erf` has no unit of f64 in SystemVerilog") as error:
        cosimulate(graph, {}, Machine(name="plain"), "icarus")
    assert "--tool python" in error.value.hint


@pytest.mark.parametrize("tool", ["python", "icarus"])
def test_a_circuit_that_hangs_is_a_difference(tool: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The earliest token that is not given is told, in whatever runs the circuit."""
    require(*([] if tool == "python" else ["pycde", "iverilog"]))
    hangs = next(fault for fault in faults() if fault.name == "fork: `to 1` never")
    case, build = hardware_case(1), module.build_circuit

    def faulty(*arguments: object) -> Circuit:
        return hangs.plant(build(*arguments))  # type: ignore[arg-type]

    monkeypatch.setattr(module, "build_circuit", faulty)
    run = cosimulate(case.graph, case.tensors, case.machine, tool)
    assert run.difference is not None
    assert "nothing in the circuit" in str(run.difference)
    assert "fork2" in run.hanging
    assert run.difference.cycle < run.simulator_cycles


def test_names_of_tools() -> None:
    with pytest.raises(UsageError, match="unknown tool `verilater`") as error:
        find_tool("verilater")
    assert "verilator" in error.value.hint


def test_a_tool_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(HardwareError, match="`iverilog` is not there") as error:
        find_tool("icarus")
    assert "apt-get install iverilog" in error.value.hint
    assert set(TOOLS) == {"icarus", "verilator"}


@pytest.mark.parametrize("tool", ["python", "icarus"])
def test_a_circuit_without_outputs(tool: str) -> None:
    """A stream that nobody reads has no FIFO, and a module without outputs gives none."""
    require(*([] if tool == "python" else ["pycde", "iverilog"]))
    run = cosimulate(parse("graph g\nroot = root()\n"), {}, Machine(name="plain", arithmetic="f32"), tool)
    assert (run.difference, run.cycles) == (None, 2)
