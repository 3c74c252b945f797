"""At a memory that takes time, the engine agrees with the reference token for token, and asks for the same lines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from engines import LIMITS, Found, case_of, differences
from memories import at_memory, contradictions
from random_graphs import random_case
from random_graphs.case import Case

from fuseflow.errors import SimulationError
from fuseflow.machine.machine import Machine
from fuseflow.memory import memory as memory_module
from fuseflow.memory.mapping import CHANNEL_COUNTS, MAPPINGS
from fuseflow.memory.memory import Memory
from fuseflow.memory.memory_interface import Controller, ControllerFactory
from fuseflow.memory.models import Dram
from fuseflow.memory.settings import DramMemory
from fuseflow.native.kernel_library import library
from fuseflow.samml.nodes import Edge
from fuseflow.samml.text import parse
from fuseflow.sim import load_machine
from fuseflow.sim.engine.buffer_growth import PartOutput
from fuseflow.sim.engine.execute import DEFAULT_LIMITS, run
from fuseflow.sim.engine.execute import execute as fast
from fuseflow.sim.engine.network_layout import lay_out
from fuseflow.sim.engine.node_layout import Limits
from fuseflow.sim.outcome.deadlock import Deadlock, find_remedy
from fuseflow.sim.outcome.statistics import Outcome
from fuseflow.sim.reference.execute import execute as reference
from fuseflow.tensors import pack

EVERY_RUN, GRAPHS, CHUNK = 160, 600, 20
"""Graphs of every run, and with those that are slow."""
IDEAL = load_machine("ideal")
VECTOR = """
graph vector
tensor A[{n}]  dense f32
tensor Y[{n}]  dense f32
output Y

root = root()
A_i = scan(root) A.0
A_val = load(A_i.ref) A
write_Y_i = write(A_i.crd) Y.0
write_Y_val = write(A_val) Y.vals
"""


def disagreements(case: Case, limits: Limits, attach: ControllerFactory | None = None) -> Iterator[str]:
    """Yield one line for everything in which the engine differs from the reference at the memory of the machine, or at one that
    `attach` makes for the engine."""
    expected = _run(reference, case)
    outcome = _run(fast, case, attach=attach, limits=limits)
    yield from differences(case, expected, outcome)
    yield from contradictions(outcome)


def _run(execute: Any, case: Case, **options: Any) -> Found:
    try:
        return execute(case.graph, case.tensors, case.machine, record=True, **options)
    except SimulationError as error:
        return error


def cycle_by_cycle(machine: Machine) -> Controller | None:
    """Return the controller of the machine's memory, which never advances by more than a cycle."""
    controller = machine.controller()
    return controller and replace(controller, window=1)


@pytest.mark.parametrize(
    "first",
    [
        *range(0, EVERY_RUN, CHUNK),
        *(pytest.param(first, marks=pytest.mark.slow) for first in range(EVERY_RUN, GRAPHS, CHUNK)),
    ],
)
def test_random_graphs_agree_token_for_token(first: int) -> None:
    """Outputs, cycles, statistics of nodes, edges and memory, streams and deadlocks agree on machines with a memory that takes
    time, on the engine with its usual limits and with tiny ones."""
    for seed in range(first, first + CHUNK):
        case, limits = at_memory(random_case(seed), seed), LIMITS[seed % len(LIMITS)]
        differing = list(disagreements(case, limits, None if seed % 5 else partial(cycle_by_cycle, case.machine)))
        assert not differing, f"seed {seed} with {limits}: " + "\n".join(differing[:5])


@pytest.mark.parametrize("execute", [reference, fast])
def test_the_advised_depth_clears_a_deadlock_and_one_less_does_not(execute: Any) -> None:
    advice_count = 0
    for seed in range(100):
        case = at_memory(random_case(seed), seed)
        outcome = _run(execute, case)
        advice = find_remedy(outcome, case.graph) if isinstance(outcome, Deadlock) else None
        if advice is None:
            continue
        advice_count += 1
        assert isinstance(_run(execute, with_depth(case, advice.edge, advice.sufficient_depth)), Outcome), seed
        assert isinstance(_run(execute, with_depth(case, advice.edge, advice.sufficient_depth - 1)), Deadlock), seed
    assert advice_count >= 5


def with_depth(case: Case, edge: Edge, depth: int) -> Case:
    return replace(case, graph=replace(case.graph, depths=tuple({**dict(case.graph.depths), edge: depth}.items())))


def test_enough_of_the_random_graphs_are_at_hbm2() -> None:
    memories = [at_memory(random_case(seed), seed).machine.memory for seed in range(GRAPHS)]
    at_hbm2 = [memory for memory in memories if isinstance(memory, DramMemory)]
    assert len(at_hbm2) >= 500 and len(memories) - len(at_hbm2) >= 30
    assert {memory.channels for memory in at_hbm2} == set(CHANNEL_COUNTS)
    assert {memory.mapping for memory in at_hbm2} == set(MAPPINGS)


ROWS = """
graph rows
tensor A[{n}, {n}]  csr f32
tensor X[{n}, {m}]  dense f32
tensor Y[{n}, {m}]  csr f32
output Y

root = root()
A_i = scan(root) A.0 sequential
A_k = scan(A_i.ref) A.1 sequential
X_k = locate(A_k.crd) X.0
X_j = scan(X_k) X.1
A_val = load(A_k.ref) A
rep_j = repeat(A_val, X_j.crd)
X_val = load(X_j.ref) X
mul = alu(rep_j, X_val) mul N->0,N->0
acc = accumulate(A_k.crd, X_j.crd, mul) sum order=1
write_Y_i = write(A_i.crd) Y.0
write_Y_j = write(acc.crd) Y.1
write_Y_val = write(acc.val) Y.vals
"""


@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize(("outstanding", "ahead", "channels"), [(32, 8, 8), (32, 8, 1), (1, 8, 1), (2, 0, 8), (64, 100, 1)])
def test_a_product_agrees(limits: Limits, outstanding: int, ahead: int, channels: int) -> None:
    """The run is long enough that rings of requests and of runs turn over many times, and refreshes come between."""
    case = case_of(ROWS.format(n=12, m=40).partition("graph rows")[2], seed=1)
    memory = DramMemory(channels=channels, outstanding=outstanding, prefetch=ahead)
    case = replace(case, machine=case.machine.model_copy(update={"memory": memory}))
    assert not list(disagreements(case, limits))


def test_tiny_limits_leave_parts_for_later_windows_where_all_fifos_are_shallow() -> None:
    """With the usual limits such a graph is run in rounds, so random graphs with shallow FIFOs would not try the other way."""
    case = case_of(ROWS.format(n=6, m=20).partition("graph rows")[2], seed=1)
    machine = case.machine.model_copy(update={"memory": DramMemory(channels=8), "fifo_depth": 2})
    defers = {
        limits: bool(
            lay_out(case.graph, case.tensors, machine, library(), limits, controller=machine.controller()).agenda["defers"]
        )
        for limits in LIMITS
    }
    assert defers == {limits: limits.windows == 0 for limits in LIMITS}
    assert {*defers.values()} == {False, True}
    assert not list(disagreements(replace(case, machine=machine), Limits(windows=0)))


@pytest.mark.parametrize("room", [2, 8])
def test_a_part_that_waits_for_room_is_served(monkeypatch: pytest.MonkeyPatch, room: int) -> None:
    """Only the engine makes room for more requests. A walk that meets a part that waits for it ends there, where it once visited
    the part again and again."""
    monkeypatch.setattr(memory_module, "INITIAL_RING", room)
    case = case_of(ROWS.format(n=12, m=40).partition("graph rows")[2], seed=1)
    case = replace(case, machine=case.machine.model_copy(update={"memory": DramMemory(channels=8)}))
    assert not list(disagreements(case, DEFAULT_LIMITS))


def test_memory_does_not_grow_with_what_is_far_ahead() -> None:
    """The scans of dense levels need no memory and run ahead of the load, as far as their rings go, while the memory is behind
    them."""
    text = (
        VECTOR.replace("[{n}]", "[2000, 50]")
        .replace("load(A_i.ref)", "load(A_j.ref)")
        .replace("write(A_i.crd)", "write(A_j.crd)")
    )
    graph = parse(text.replace("A_val =", "A_j = scan(A_i.ref) A.1\nA_val =").replace("Y.0", "Y.1"))
    tensors = {"A": pack(np.ones((2000, 50), np.float32), graph.declared["A"].format)}
    controller = Controller(lambda ports: Memory(Dram(), ports))
    layout = lay_out(graph, tensors, IDEAL, library(), DEFAULT_LIMITS, controller=controller)
    assert run(layout, PartOutput(), library())
    assert layout.streams["tail"].max() > 10 * DEFAULT_LIMITS.runs
    assert max(len(ring) for ring in layout.rings) == DEFAULT_LIMITS.runs
    assert all(len(controller.memory.requests(k)) <= 128 for k in range(len(controller.ports)))


def test_more_than_the_memory_holds_is_refused_alike() -> None:
    graph = parse(VECTOR.format(n=17))
    tensors = {"A": pack(np.ones(17, np.float32), graph.declared["A"].format)}
    for execute in (fast, reference):
        with pytest.raises(SimulationError, match=r"`write_Y_val` .*: writes more than the 64 bytes that the memory has for it"):
            execute(graph, tensors, IDEAL, attach=lambda: Controller(lambda ports: Memory(Dram(), ports), capacity=192))
