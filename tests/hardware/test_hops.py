"""Circuits with hops and links: equal to the simulator in every token and cycle, and faults of hops are seen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import hardware_models
import numpy as np
import pytest
from hardware_cases import Tally, check, check_in, hop_case
from hardware_tools import require
from random_graphs import Case

from fuseflow.array.links import linked_graph
from fuseflow.array.placed_region import PlacementSearch, place_region
from fuseflow.array.settings import array_names, load_array
from fuseflow.errors import HardwareError, MachineError
from fuseflow.hardware import cosimulate as module
from fuseflow.hardware.area.parts import CircuitParts
from fuseflow.hardware.area.synthesis import synthesize
from fuseflow.hardware.circuit import HOP, Channel, Circuit, Fifo, build_circuit
from fuseflow.hardware.circuit_files import bounded_circuit, circuit_text
from fuseflow.hardware.cosimulate import cosimulate
from fuseflow.hardware.python_code import Step
from fuseflow.hardware.rtl_simulators import library_text
from fuseflow.samml.nodes import Edge, Graph, Hops
from fuseflow.samml.text import parse
from fuseflow.sim import Machine, Simulation, load_machine
from fuseflow.tensors import Format, Tensor, pack

GRAPH = parse("""
tensor x[40] dense f32
tensor y[40] dense f32
tensor z[40] dense f32
output y, z
root = root()
x_i = scan(root) x.0
x_v = load(x_i.ref) x
far = link(x_v)
slow = alu(far) div N->0,2
y_i = write(x_i.crd) y.0
y_v = write(far) y.vals
z_i = write(x_i.crd) z.0
z_v = write(slow) z.vals
depth y_i[0] 64
depth z_i[0] 64
""")
"""A stream of a token a cycle that goes to a writer, and to a node that takes one every third cycle."""


def backed_up(slots: int, count: int = 2) -> Case:
    """Its case with so many hops on three edges, and a load with a latency of 4."""
    hops = {Edge(name, 0): Hops(count, slots) for name in ("far", "slow", "z_v")}
    settings = {"latency": {"default": 1, "memory": 4}, "interval": {"default": 1, "div": 3}, "fifo_depth": 2}
    machine = Machine.model_validate({"name": "slow", "arithmetic": "f32", **settings})
    return Case(GRAPH.with_hops(hops), {"x": pack(np.arange(40, dtype=np.float32), Format.parse("dense", 1))}, machine)


def test_random_graphs() -> None:
    tally, steps = Tally(), dict[str, Step]()
    for seed in range(40):
        assert not check(hop_case(seed), tally, steps), f"seed {seed}"
    assert tally.graphs > 30 and tally.tiled > 5 and tally.primitives["link"] > 10


def test_random_graphs_at_a_memory() -> None:
    tally, steps = Tally(), dict[str, Step]()
    for seed in range(40, 52):
        assert not check(hop_case(seed, "any"), tally, steps), f"seed {seed}"
    assert tally.graphs > 8


@pytest.mark.parametrize("seed", [1, 2, 3, 5, 10])
def test_icarus(seed: int) -> None:
    require("pycde", "iverilog", "vvp")
    tally = Tally()
    assert not check_in("icarus", hop_case(seed), tally)
    assert tally.graphs == 1


@pytest.mark.parametrize("slots", [0, 2])
def test_a_stream_that_backs_up(slots: int) -> None:
    require("pycde", "iverilog", "vvp")
    case = backed_up(slots)
    run = cosimulate(case.graph, case.tensors, case.machine, "icarus")
    assert run.difference is None
    assert run.simulation is not None and sum(node.blocked for node in run.simulation.nodes) > 40


def fifos(circuit: Circuit, reader: str) -> tuple[Fifo, ...]:
    return next(each.fifos for each in circuit.channels if each.reader == reader)


def test_each_hop_is_a_fifo() -> None:
    """The first covers the latency of the writer, with a slot more for each of its cycles after the first."""
    case = backed_up(2, count=3)
    circuit = build_circuit(case.graph, case.machine)
    assert fifos(circuit, "far") == (Fifo("ff_channel", 5, 4), HOP, HOP, Fifo("ff_channel", 2))
    assert fifos(circuit, "slow") == (HOP, HOP, HOP, Fifo("ff_channel", 2))
    near = build_circuit(case.graph.with_hops({}), case.machine)
    assert fifos(near, "far") == (Fifo("ff_channel", 5, 4),)  # a link is a hop
    assert fifos(near, "slow") == (Fifo("ff_channel", 2),)


def test_plain_registers_are_in_front_of_one_fifo() -> None:
    case = backed_up(0, count=3)
    circuit = build_circuit(case.graph, case.machine)
    assert fifos(circuit, "slow") == (Fifo("ff_channel", 2),)
    assert {each.registers for each in circuit.channels} == {0, 3}


def test_hops_have_an_area() -> None:
    """A hop of two slots has two tokens, and two flags. Plain registers have a flag beside each token and each free slot, and for a tile
    that is computed late another."""
    require("yosys", "pycde")
    for slots, name, count, flip_flops in ((2, "hop x 34", 5, 2 * 34 + 2), (0, "2 registers x 34", 2, 2 * (34 + 1 + 1 + 1) + 2)):
        case = backed_up(slots)
        parts = CircuitParts.of(bounded_circuit(case.graph, case.machine))
        (part,) = (part for part in parts.total if part.name == name and part.values.get("D", 2) == 2)
        assert parts.total[part] == count
        assert synthesize(parts, [part])[part].counts["$_DFF_P_"] == flip_flops


def test_other_tools_accept_hops(tmp_path: Path) -> None:
    """The tile of a late token passes registers, too."""
    require("pycde", "verilator", "yosys")
    graphs = [replace(backed_up(slots).graph, name=f"hops{slots}") for slots in (0, 2)]
    for accepts in (hardware_models.linted, hardware_models.synthesized):
        assert not hardware_models.refused(graphs, backed_up(0).machine, accepts, tmp_path / accepts.__name__)


def test_what_has_no_circuit() -> None:
    case, edge = backed_up(2), Edge("slow", 0)
    with pytest.raises(MachineError, match="has hops before a FIFO of one slot"):
        build_circuit(case.graph.with_depths({edge: 1}), case.machine)
    with pytest.raises(HardwareError, match="the channel to `slow` has 1,025 hops, and in SystemVerilog there are 1,024 at most"):
        circuit_text(case.graph.with_hops({edge: Hops(1025)}), load_machine("rtl"))


def replaced(*pairs: tuple[str, str]) -> Callable[[str], str]:
    """A change of a text, in which each of these parts must be."""

    def change(text: str) -> str:
        for old, new in pairs:
            assert old in text
            text = text.replace(old, new)
        return text

    return change


ONE_SLOT = replaced(
    ("~held | (in_ready & ~in_valid)", "~(in_valid | held)"),
    ("in_valid | ~in_ready | held", "in_valid | held"),
)
READY_AT_ONCE = replaced(
    ("in_ready", "ready"),
    ("output reg ready", "output in_ready"),
    ("if (ready)", "if (in_ready)"),
    ("rst | ~held |", "rst | (~held & (ready | ~in_valid)) |"),
    ("  reg [W-1:0] head", "  reg ready;\n  assign in_ready = ready | out_take;\n  reg [W-1:0] head"),
)
VISIBLE_AT_ONCE = replaced(
    ("output reg out_valid", "output out_valid"),
    ("out_valid <=", "kept <="),
    ("assign out_data = head", "assign out_data = kept ? head : in_data"),
    ("  reg [W-1:0] head", "  reg kept;\n  assign out_valid = kept | in_valid;\n  reg [W-1:0] head"),
)
LATE_TOO_EARLY = replaced(
    (".out_data({out_late, out_data})", ".out_data({unused_late, out_data})"),
    ("wire freed", "assign out_late = late;\n  wire unused_late, freed"),
)
FAULTS = {
    "a hop of one slot": ("ff_hop.sv", ONE_SLOT, backed_up(2)),
    "a hop whose ready is no register": ("ff_hop.sv", READY_AT_ONCE, backed_up(2)),
    "a hop that passes at once": ("ff_hop.sv", VISIBLE_AT_ONCE, backed_up(2)),
    "a slot that is back a cycle early": ("ff_registers.sv", replaced((".L(H + 1)) back", ".L(H)) back")), backed_up(0)),
    "a word that comes a cycle early": ("ff_registers.sv", replaced((".L(H + 1)) forth", ".L(H)) forth")), backed_up(0)),
    "a computed tile that comes early": ("ff_registers.sv", LATE_TOO_EARLY, hop_case(200)),
}
"""Changes of SystemVerilog, and cases that show them."""


@pytest.mark.parametrize("name", FAULTS)
def test_planted_faults_are_seen(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    require("pycde", "iverilog", "vvp")
    file, change, case = FAULTS[name]
    assert not check_in("icarus", case, Tally())
    monkeypatch.setattr(module, "library_text", lambda part: (change if part == file else str)(library_text(part)))
    assert check_in("icarus", case, Tally())


@pytest.mark.parametrize("tool", ["python", "icarus"])
def test_a_first_hop_without_slots_for_the_latency_is_seen(tool: str, monkeypatch: pytest.MonkeyPatch) -> None:
    require(*({"icarus": ("pycde", "iverilog", "vvp")}.get(tool, ())))
    whole, case = Channel.fifos.fget, backed_up(2)  # type: ignore[attr-defined]

    def of_two_slots(channel: Channel) -> tuple[Fifo, ...]:
        *hops, last = whole(channel)
        return (*(replace(hop, depth=2) for hop in hops), last)

    monkeypatch.setattr(Channel, "fifos", property(of_two_slots))
    assert cosimulate(case.graph, case.tensors, case.machine, tool).difference is not None


def test_a_branch_that_does_not_wait_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A link that looks at the room of its first reader alone."""
    require("pycde", "iverilog", "vvp")
    case, to_verilog = backed_up(2), module.to_verilog

    def planted(text: str) -> str:
        (both,) = (line for line in text.splitlines() if "%n_far_out0_rooms = comb.and" in line)
        slow = next(room.strip() for room in both.partition("comb.and")[2].partition(":")[0].split(",") if "n_slow" in room)
        return to_verilog(text.replace(both, both.replace(slow, "%yes")))

    monkeypatch.setattr(module, "to_verilog", planted)
    assert cosimulate(case.graph, case.tensors, case.machine, "icarus").difference is not None


@pytest.mark.slow
@pytest.mark.parametrize("tool", ["icarus", "verilator"])
@pytest.mark.parametrize("array", array_names())
@pytest.mark.parametrize("name", hardware_models.MODELS)
def test_a_placed_model(name: str, array: str, tool: str) -> None:
    """Each region with the hops of its routes, and those of nodes of several tiles: every token in its cycle, and what is written has the
    bits of the simulator."""
    require("pycde", *({"icarus": ("iverilog", "vvp"), "verilator": ("verilator",)}[tool]))
    settings = load_array(array)

    def execute(graph: Graph, tensors: Mapping[str, Tensor], machine: Machine, *_: Any, **__: Any) -> Simulation:
        linked = linked_graph(place_region(graph, settings, machine, PlacementSearch(effort=1.0, seeds=1)))
        assert linked.hop_count > 30
        run = cosimulate(linked, tensors, machine, tool)
        assert run.difference is None and run.simulation is not None, graph.name
        values, wrong = hardware_models.compared_values(linked, run)
        assert values > 0 and not wrong, graph.name
        return run.simulation

    check = hardware_models.MODELS[name].compile(load_machine("rtl")).run(dedup=False, execute=execute).check
    assert check is not None and check.max_rel_error <= 1e-4
