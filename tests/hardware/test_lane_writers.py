"""Circuits that write in lanes: in every cycle what the reference simulator does, with its lines at a memory that takes time."""

from __future__ import annotations

import pytest
from click.testing import CliRunner
from hardware_cases import Tally, check, firing_differences, stalled_differences
from hardware_faults import Fault, faults, noticed
from hardware_tools import require
from lane_cases import lane_case, written_case

import fuseflow as ff
from fuseflow.cli.main import main
from fuseflow.hardware.comparison import simulated
from fuseflow.hardware.cosimulate import cosimulate
from fuseflow.hardware.python_code import Step
from fuseflow.memory.settings import DramMemory, FixedMemory
from fuseflow.samml import nodes as n
from fuseflow.sim import Machine, load_machine
from fuseflow.tile_ops import TileShape

LINE = 32
"""The bytes of a line: eight words."""
MEMORIES = {"fixed": FixedMemory(latency=5, outstanding=2, line=LINE), "hbm2": DramMemory(outstanding=5, line=LINE)}

FORMS: dict[str, tuple[tuple[int, ...], TileShape, int]] = {
    "scalars in lanes of the innermost index": ((3, 7), (), 1),
    "rows that do not fill a line": ((7, 3), (), 0),
    "rows that fill lines": ((5, 16), (), 0),
    "matrices of a line and a half": ((5, 4, 3), (), 0),
    "tiles whose size does not divide a line": ((4, 5), (1, 3), 1),
    "rows of such tiles": ((5, 3), (1, 3), 0),
    "elements larger than a line": ((3, 4), (5, 5), 1),
    "rows of such elements": ((5, 2), (5, 5), 0),
    "elements of two lines": ((5, 2), (4, 4), 0),
}
"""What is written: the shape, the tile of an element, and the level that is dealt."""


def machine(memory: str) -> Machine:
    settings = {"memory": MEMORIES[memory]} if memory in MEMORIES else {}
    return Machine(name="lanes", arithmetic="f32", fifo_depth=4).model_copy(update=settings)


@pytest.mark.parametrize("memory", ["ideal", *MEMORIES])
@pytest.mark.parametrize("lanes", [2, 3])
@pytest.mark.parametrize("form", FORMS)
def test_rules(form: str, lanes: int, memory: str) -> None:
    """Every token, firing and request, each in its cycle."""
    tally = Tally()
    assert not check(written_case(*FORMS[form], lanes, machine(memory)), tally, {})
    assert tally.primitives["write_lane"] and tally.primitives["write_lane_values"]
    assert not tally.deadlocks


@pytest.mark.parametrize("form", FORMS)
def test_icarus(form: str) -> None:
    require("pycde", "iverilog", "vvp")
    at = list(FORMS).index(form)
    case = written_case(*FORMS[form], 2 + at % 2, machine(["fixed", "hbm2"][at % 3 == 2]))
    run = cosimulate(case.graph, case.tensors, case.machine, "icarus")
    assert run.difference is None
    assert not firing_differences(case, run.evaluation)  # of requests, too
    assert sum(len(asked) for (node, _), asked in run.evaluation.requests.items() if node.startswith("y_v_lane")) > 2


def test_icarus_on_an_ideal_memory() -> None:
    require("pycde", "iverilog", "vvp")
    case = written_case(*FORMS["rows of such tiles"], 3, machine("ideal"))
    assert cosimulate(case.graph, case.tensors, case.machine, "icarus").difference is None


def test_a_memory_that_is_not_always_ready() -> None:
    require("pycde", "iverilog", "vvp")
    case = written_case(*FORMS["rows of such elements"], 3, machine("fixed"))
    lines, run, cycles = stalled_differences(case, "icarus", 3)
    assert not lines
    assert run.cycles > cycles


@pytest.mark.slow
def test_verilator() -> None:
    require("pycde", "verilator", "g++", "make")
    for form, lanes, memory in (
        ("rows of such tiles", 3, "ideal"),
        ("rows of such tiles", 2, "fixed"),
        ("rows of such elements", 3, "hbm2"),
        ("scalars in lanes of the innermost index", 3, "hbm2"),
    ):
        case = written_case(*FORMS[form], lanes, machine(memory))
        run = cosimulate(case.graph, case.tensors, case.machine, "verilator")
        assert run.difference is None
        assert not firing_differences(case, run.evaluation)


def test_random_sizes_lines_and_lanes() -> None:
    tally, steps = Tally(), dict[str, Step]()
    for seed in range(60):
        assert not check(lane_case(seed, "any" if seed % 2 else "fixed"), tally, steps), f"seed {seed}"
    for seed in range(12):
        assert not check(lane_case(seed), tally, steps), f"seed {seed}"
    assert tally.graphs == 72 and 0 < tally.deadlocks < 20


@pytest.mark.parametrize("machine", ["rtl", "rda"])
@pytest.mark.parametrize("index", ["i", "j"])
def test_compiled_regions(index: str, machine: str) -> None:
    """The autoencoder of the models, in lanes of its rows or of its columns."""
    lanes, chosen = {f"encoder.{index}": 2, f"decoder.{index}": 3}, load_machine(machine, {"arithmetic": "f32"})
    schedule = ff.Schedule().par(**lanes).lower(writers="lanes")
    regions = ff.compile("models/sae.py", options={"small": True}, schedule=schedule, machine=chosen).regions
    assert [sum(isinstance(node, n.WriteLaneValues) for node in region.graph.nodes) for region in regions] == [2, 3]
    words = ["--small", "--set", "arithmetic=f32", "--machine", machine, "--writers", "lanes"]
    options = [word for at, count in lanes.items() for word in ("--par", f"{at}={count}")]
    result = CliRunner().invoke(main, ["cosimulate", "models/sae.py", *words, *options, "--wide"])
    assert result.exit_code == 0, result.output
    assert [line.split()[1] for line in result.stdout.splitlines()[2:]] == ["equal", "equal"]


PLANTED = [fault for fault in faults() if fault.lanes]


@pytest.mark.parametrize("fault", PLANTED, ids=lambda fault: fault.name)
def test_planted_faults_are_found(fault: Fault) -> None:
    """Some graph of the forms shows each of them, and no graph does without them."""
    found = []
    for (form, what), lanes in ((item, lanes) for item in FORMS.items() for lanes in (2, 3)):
        case = written_case(*what, lanes, machine("fixed"))
        expected = simulated(case.graph, case.tensors, case.machine, engine="reference")
        found += [form] if noticed(fault, case, expected, {}) else []
    assert found


def test_a_lane_without_entries_asks_for_nothing() -> None:
    """Of a dimension of one, lanes 1 and 2 have nothing: their first place lies behind the array."""
    case = written_case((1, 5), (), 0, 3, machine("fixed"))
    assert not check(case, Tally(), {})
