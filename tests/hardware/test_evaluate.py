"""Circuits in the evaluator do in every cycle what the reference simulator does."""

from __future__ import annotations

from collections.abc import Callable
from typing import get_args

import pytest
from hardware_cases import MemoryKind, Tally, check, check_in, check_stalled, hardware_case, has_tiles, hop_case
from hardware_tools import require
from lane_cases import lane_case

from fuseflow.errors import HardwareError
from fuseflow.firing_rules.expressions import YES
from fuseflow.hardware.circuit import build_circuit
from fuseflow.hardware.evaluate import evaluate
from fuseflow.hardware.python_code import Step
from fuseflow.hardware.rtl_simulators import PYTHON
from fuseflow.samml.text import parse
from fuseflow.sim import Machine
from fuseflow.tensors import Format, pack

GRAPHS, TILED = 60, 35
PRIMITIVES = {
    "root", "scan dense", "scan compressed", "scan singleton", "scan bitmap", "scan nm", "range", "locate dense", "locate bitmap",
    "locate compressed", "join", "align", "repeat", "load", "alu", "reduce", "accumulate order 1", "accumulate order 2",
    "accumulate order 3", "permute", "drop", "flatten", "split", "fork", "merge", "write dense", "write compressed", "write bitmap",
    "write_values", "array of a product", "array of a fold", "array of alu", "array of reduce", "array of accumulate",
}  # fmt: skip


def test_random_graphs() -> None:
    """All primitives, with latencies, intervals and FIFOs of all kinds."""
    tally, steps, seed = Tally(), dict[str, Step](), 0
    while tally.graphs < GRAPHS:
        case = hardware_case(seed)
        assert not check(case, tally, steps), f"seed {seed}"
        seed += 1
    for seed in range(TILED):
        assert not check(hardware_case(seed, tiles=True), tally, steps), f"seed {seed} with tiles"
    assert tally.tiled > TILED and set(tally.primitives) >= PRIMITIVES
    assert tally.deadlocks > 5


def test_random_graphs_at_random_memories() -> None:
    """The requests of every port are those of the reference, too, each in its cycle."""
    tally, steps, requests = Tally(), dict[str, Step](), 0
    for seed in range(0, 8 * GRAPHS // 5, 2):
        case = hardware_case(seed + seed // 2 % 2, "any", tiles=seed % 3 == 0)
        assert not check(case, tally, steps), f"seed {seed}"
        requests += case.machine.memory.model != "ideal"
    assert tally.graphs > GRAPHS // 2 and requests == tally.graphs
    assert set(tally.primitives) >= {
        "scan compressed",
        "scan singleton",
        "scan bitmap",
        "scan nm",
        "write compressed",
        "write bitmap",
    }


def test_a_deadlock_in_which_a_port_fetches_ahead_for_a_node_that_ended() -> None:
    """Nobody needs the lines of pads, so what would fetch them waits for ever, and the load has given all of its tokens."""
    tally = Tally()
    assert not check(hardware_case(7322, "any", tiles=True), tally, {})
    assert tally.deadlocks


SUM = """
tensor A[3, 4] csr f64
tensor y[3] dense f64
output y
root = root()
A_i = scan(root) A.0
A_j = scan(A_i.ref) A.1
A_v = load(A_j.ref) A
s = reduce(A_v) sum
y_i = write(A_i.crd) y.0
y_v = write(s) y.vals
"""


def test_two_rules_at_once() -> None:
    """Rules of a process that hold at once are a fault of the primitive, which is not decided silently."""
    graph = parse(SUM)
    circuit = build_circuit(graph, Machine(name="plain"))
    module = circuit.units[4].module
    module.rule("any", YES, [module.inputs["in0"]])
    tensor = pack([[1.0, 0, 0, 2], [0, 0, 0, 0], [0, 3, 0, 0]], Format.parse("csr", 2))
    with pytest.raises(HardwareError, match=r"`s` \(reduce\): the rules `value` and `any` hold at once"):
        evaluate(circuit, {"A": tensor})


def test_cycles_that_are_too_many() -> None:
    tensor = pack([[1.0, 0, 0, 2], [0, 0, 0, 0], [0, 3, 0, 0]], Format.parse("csr", 2))
    with pytest.raises(HardwareError, match="still runs after 5 cycles"):
        evaluate(build_circuit(parse(SUM), Machine(name="plain")), {"A": tensor}, limit=5)


NEEDED = {PYTHON: (), "icarus": ("pycde", "iverilog", "vvp"), "verilator": ("pycde", "verilator")}
"""What runs circuits, and what it needs."""
QUOTA, FORM_QUOTA = 50, 20
"""In how many of 2,000 graphs each primitive is, and each form of one."""


@pytest.mark.slow
@pytest.mark.parametrize("stalls", [False, True], ids=["always ready", "stalls"])
@pytest.mark.parametrize("memory", get_args(MemoryKind))
@pytest.mark.parametrize("kind", ["graphs", "tiles", "lanes", "hops"])
@pytest.mark.parametrize("tool", NEEDED)
def test_many_random_graphs(tool: str, kind: str, memory: MemoryKind, stalls: bool, draws: Callable[[int], range]) -> None:
    """Rules in Python, or the printed SystemVerilog. Where the ports of the memory are not ready in some cycles, every token is that of the
    reference in whatever cycle."""
    if stalls and (tool == PYTHON or memory == "ideal"):
        pytest.skip("nothing stalls")
    require(*NEEDED[tool])
    tally, steps, made = Tally(), dict[str, Step](), {"lanes": lane_case, "hops": hop_case}
    for seed in draws(2000 if tool == PYTHON else 100):
        case = made[kind](seed, memory) if kind in made else hardware_case(seed, memory, kind == "tiles")
        if kind == "tiles" and not has_tiles(case):
            continue
        if stalls:
            assert not check_stalled(tool, case, tally, seed), f"seed {seed}"
        else:
            assert not (check(case, tally, steps) if tool == PYTHON else check_in(tool, case, tally)), f"seed {seed}"
    if kind == "graphs" and tally.graphs > 1500:
        assert not [name for name, count in tally.primitives.items() if count < (FORM_QUOTA if " " in name else QUOTA)]
