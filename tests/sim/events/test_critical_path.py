"""Critical paths: of graphs whose path is known, and of random graphs, whose steps add up and are the same on both simulators."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from anywhere import anywhere
from engines import LIMITS
from graph_fuzz import drawn
from hop_stages import at_nodes
from random_graphs.case import Case

from fuseflow.errors import FuseFlowError
from fuseflow.samml.nodes import Edge
from fuseflow.samml.text import parse
from fuseflow.sim import Machine, load_machine, simulate
from fuseflow.sim.engine.traced_run import trace as trace_on_engine
from fuseflow.sim.events.critical_path import CriticalPath, critical_path
from fuseflow.sim.reference.traced_run import trace as trace_on_reference
from fuseflow.sim.traced_rerun import find_critical_path
from fuseflow.tensors import pack

CHAIN = """
graph chain
tensor x[32]  dense
tensor y[32]  dense
output y
root = root()
x_i = scan(root) x.0
x_val = load(x_i.ref) x
div = alu(x_val, x_val) div N->0,N->0
neg = alu(div) neg N->0
y_i = write(x_i.crd) y.0
y_v = write(neg) y.vals
"""
SOFTMAX = """
graph softmax
tensor x[16]  dense
tensor y[16]  dense
output y
root = root()
x_i = scan(root) x.0
x_val = load(x_i.ref) x
m = reduce(x_val) max
m_i = repeat(m, x_i.crd)
sub = alu(x_val, m_i) sub N->0,N->0
e = alu(sub) exp N->0
s = reduce(e) sum
s_i = repeat(s, x_i.crd)
div = alu(e, s_i) div N->0,N->0
y_i = write(x_i.crd) y.0
y_v = write(div) y.vals
"""


def case_of(text: str, machine: Machine) -> Case:
    graph = parse(text)
    values = np.arange(1, graph.declared["x"].shape[0] + 1, dtype=np.float32)
    return Case(graph, {"x": pack(values, graph.declared["x"].format)}, machine)


def path_of(case: Case) -> CriticalPath:
    simulation = simulate(case.graph, case.tensors, case.machine, engine="reference")
    return find_critical_path(case.graph, case.tensors, case.machine, simulation)


def cycles_of(path: CriticalPath, node: str, kind: str) -> int:
    return sum(step.cycles for step in path.steps if (step.node, step.kind) == (node, kind))


def machine(**settings: object) -> Machine:
    return Machine.model_validate({"name": "test", **settings})


def with_hops(seed: int) -> Case:
    return drawn(seed, None, hops=True)


def with_node_hops(seed: int) -> Case:
    return at_nodes(drawn(seed, None), seed)


def with_turns(seed: int) -> Case:
    return drawn(seed, None, turns=True)


def test_the_node_with_the_largest_interval_works_on_it():
    """32 intervals of 8 cycles: between 32 divisions, and before the stop. Four latencies of one cycle before them, one behind; the
    writer takes the stop and `D`."""
    path = path_of(case_of(CHAIN, machine(interval={"div": 8})))
    assert path.steps[0].node == "div" and path.steps[0].kind == "work"
    assert cycles_of(path, "div", "work") == 32 * 8
    assert sum(step.cycles for step in path.steps if step.kind == "latency") == 5
    assert path.cycles == 32 * 8 + 5 + cycles_of(path, "y_v", "work") == 32 * 8 + 5 + 2


def test_a_fifo_that_is_too_shallow_is_on_the_path():
    """With one slot each token waits until the one before it was taken: its latency, and a cycle for the slot. That is a loop through the
    FIFO, and all of it but the firing of `div` itself is due to the FIFO: a deeper one takes exactly these cycles away."""
    case = case_of(CHAIN, machine(latency={"div": 5}))
    shallow = replace(case, graph=replace(case.graph, depths=((Edge("neg", 0), 1),)))
    path = path_of(shallow)
    (full,) = [step for step in path.steps if step.kind == "full"]
    assert (full.node, full.edge, full.times) == ("neg", Edge("neg", 0), 33)
    assert full.cycles == 33 * 5
    assert path.cycles - full.cycles == path_of(case).cycles
    assert cycles_of(path_of(case), "neg", "full") == 0


def test_a_load_that_waits_for_each_line():
    """One request at a time, four lines of 8 numbers, read and written: three reads are waited for, then the third line is written while
    the fourth is read, then the fourth."""
    slow = machine(memory={"model": "hbm2", "channels": 1, "outstanding": 1, "prefetch": 0, "line": 32})
    path = path_of(case_of(CHAIN, slow))
    memory = [(step.port.tensor, step.port.direction, step.times) for step in path.steps if step.port is not None]
    assert memory == [("x", "read", 3), ("y", "write", 2)]


def test_a_softmax_waits_for_both_of_its_reductions():
    path = path_of(case_of(SOFTMAX, load_machine("ideal")))
    assert cycles_of(path, "m", "latency") == cycles_of(path, "s", "latency") == 1
    assert path.cycles == sum(step.cycles for step in path.steps) > 3 * 16


@pytest.mark.parametrize("name", ["ideal", "rda", "comal"])
@pytest.mark.parametrize("text", [CHAIN, SOFTMAX])
def test_steps_add_up_on_every_machine(name: str, text: str):
    case = case_of(text, load_machine(name))
    simulation = simulate(case.graph, case.tensors, case.machine)
    path = path_of(case)
    assert simulation.cycles == path.cycles == sum(step.cycles for step in path.steps)
    assert all(step.cycles > 0 for step in path.steps)


@pytest.mark.parametrize("level", ["bitmap", "compressed"])
def test_a_level_in_memory_that_is_located_is_on_the_path(level: str):
    """Nobody reads the tokens behind the last request of a locate."""
    text = f"""
    graph looked_up
    tensor x[32]  (compressed)
    tensor t[32]  ({level})
    tensor y[32]  (compressed)
    output y
    root = root()
    x_i = scan(root) x.0
    t_i = locate(x_i.crd) t.0
    t_val = load(t_i) t
    y_i = write(x_i.crd) y.0
    y_v = write(t_val) y.vals
    """
    graph = parse(text)
    values = np.arange(32, dtype=np.float32)
    tensors = {name: pack(values * (values % k == 0), graph.declared[name].format) for name, k in (("x", 2), ("t", 3))}
    case = Case(graph, tensors, load_machine("rda"))
    path = path_of(case)
    assert sum(step.cycles for step in path.steps) == simulate(graph, tensors, case.machine, engine="reference").cycles


@pytest.mark.parametrize(
    ("first", "cases"),
    [
        *((first, anywhere) for first in range(0, 60, 20)),
        (60, with_hops),
        (80, with_hops),
        (100, with_node_hops),
        (120, with_node_hops),
        (140, with_turns),
        (160, with_turns),
    ],
)
def test_random_graphs_have_the_same_path_on_both_simulators(first: int, cases: Callable[[int], Case]):
    ran = 0
    for seed in range(first, first + 20):
        case = cases(seed)
        try:
            simulation = simulate(case.graph, case.tensors, case.machine, engine="reference")
        except FuseFlowError:
            continue
        ran += 1
        given = case.graph, case.tensors, case.machine
        slow = critical_path(partial(trace_on_reference, *given))
        fast = critical_path(partial(trace_on_engine, *given, limits=LIMITS[seed % len(LIMITS)]))
        assert simulation.cycles == slow.cycles == sum(step.cycles for step in slow.steps), f"seed {seed}"
        assert fast == slow, f"seed {seed}"
    assert ran > 8


def test_windows_give_the_same_path():
    """A run is followed window by window where its firings do not fit: on the engine, with room for a few."""
    ran = 0
    for seed in range(6):
        case = anywhere(seed)
        run = partial(trace_on_engine, case.graph, case.tensors, case.machine)
        whole, parts = critical_path(run), critical_path(run, limit=100)
        assert (parts.cycles, parts.steps) == (whole.cycles, whole.steps)
        ran += parts.windows > whole.windows
    assert ran > 0


def test_a_round_with_more_events_than_room_begins_again():
    case = anywhere(0)
    run = partial(trace_on_engine, case.graph, case.tensors, case.machine)
    assert critical_path(partial(run, room=1)) == critical_path(run)
