"""Circuits whose nodes take turns at ports: in every cycle as the reference."""

from __future__ import annotations

from dataclasses import replace

import port_turns
import pytest
from hardware_cases import Case, MemoryKind, Tally, check, check_in, firing_differences, hardware_case, placed_case
from hardware_tools import require

from fuseflow.hardware.circuit import build_circuit
from fuseflow.hardware.evaluate import evaluate
from fuseflow.hardware.python_code import Step
from fuseflow.samml.nodes import Turn


def turned(seed: int, memory: MemoryKind = "ideal") -> Case:
    return port_turns.in_graph(hardware_case(seed, memory), seed)


@pytest.mark.parametrize("memory", ["ideal", "any"])
def test_random_graphs(memory: MemoryKind) -> None:
    tally, steps = Tally(), dict[str, Step]()
    for seed in range(24):
        assert not check(turned(seed, memory), tally, steps), f"seed {seed}"
    assert tally.graphs > 20


def test_random_graphs_at_a_scratchpad() -> None:
    tally, steps = Tally(), dict[str, Step]()
    for seed in range(8):
        assert not check(port_turns.in_graph(placed_case(seed), seed), tally, steps), f"seed {seed}"
    assert tally.graphs > 4


@pytest.mark.parametrize(("seed", "memory"), [(3, "ideal"), (4, "ideal"), (5, "fixed")])
def test_in_icarus(seed: int, memory: MemoryKind) -> None:
    require("pycde", "iverilog", "vvp")
    tally = Tally()
    assert not check_in("icarus", turned(seed, memory), tally)
    assert tally.graphs == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("first", "memory"), [*((first, "ideal") for first in range(100, 200, 20)), (200, "fixed"), (220, "fixed")]
)
def test_many_in_icarus(first: int, memory: MemoryKind) -> None:
    require("pycde", "iverilog", "vvp")
    tally = Tally()
    for seed in range(first, first + 20):
        assert not check_in("icarus", turned(seed, memory), tally), f"seed {seed}"
    assert tally.graphs > 16


def test_a_circuit_with_another_turn_is_seen() -> None:
    """In some of the graphs a turn that comes a cycle later changes no cycle: what shares a port is not what decides."""
    seen = 0
    for seed in range(12):
        case = turned(seed)
        if case.graph.turns:
            late = {name: Turn((turn.number + 1) % turn.of, turn.of) for name, turn in case.graph.turns}
            faulty = build_circuit(case.graph.with_turns(late), case.machine)
            seen += bool(firing_differences(case, evaluate(faulty, case.tensors)))
            assert not firing_differences(replace(case, graph=case.graph.with_turns(late)), evaluate(faulty, case.tensors))
    assert seen > 8
