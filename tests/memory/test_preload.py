"""Preloaded tensors: what their ports ask for and when it is there, and that both simulators say the same of them."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import preloads
import pytest
import reuse_buffers
from engines import LIMITS, differences, on_engine, on_reference
from memories import at_memory, contradictions
from random_graphs import Case, Size, random_case

from fuseflow.errors import GraphError
from fuseflow.memory.buffer_assignment import preloaded_readers, preloading_nodes
from fuseflow.samml.text import parse, show
from fuseflow.samml.verify import verify
from fuseflow.sim import load_machine
from fuseflow.sim.engine.traced_run import trace as trace_on_engine
from fuseflow.sim.events.critical_path import critical_path
from fuseflow.sim.outcome.statistics import Outcome
from fuseflow.sim.reference.traced_run import trace as trace_on_reference
from fuseflow.sim.signature import signature
from fuseflow.tensors import pack

CASES: tuple[tuple[Size, int], ...] = (
    *(("medium", seed) for seed in (7011, 7039, 7047, 8019, 8027, 8059, 8127, 8217, 8277, 8311, 8395, 8443)),
    *(("large", seed) for seed in (7011, 7039, 7089, 8019, 8027, 8069, 8087)),
)
"""Random graphs in which up to fourteen nodes read what is preloaded."""

PRODUCT = """graph product
tensor A[40, 600]  csr
tensor X[600]  dense{words}
tensor Y[40]  dense
output Y

root = root()
A_i = scan(root) A.0 sequential
A_k = scan(A_i.ref) A.1 sequential
X_k = locate(A_k.crd) X.0
A_val = load(A_k.ref) A sequential
X_val = load(X_k) X
mul = alu(A_val, X_val) mul N->0,N->0
sum_k = reduce(mul) sum
write_Y_i = write(A_i.crd) Y.0
write_Y_val = write(sum_k) Y.vals
"""
LAST = """graph last
tensor J[600]  (compressed)
tensor X[600]  dense preload {ports}
tensor Y[600]  (compressed)
output Y

root = root()
J_i = scan(root) J.0 sequential
X_i = locate(J_i.crd) X.0
X_val = load(X_i) X
write_Y_i = write(J_i.crd) Y.0
write_Y_val = write(X_val) Y.vals
"""


def preloaded(size: Size, seed: int) -> Case:
    return preloads.in_graph(at_memory(random_case(seed, size), seed), seed)


def without(case: Case) -> Case:
    return replace(case, graph=replace(case.graph, tensors=tuple(replace(t, preload=0) for t in case.graph.tensors)))


@pytest.mark.parametrize("part", range(4))
def test_both_simulators_agree_on_random_graphs(part: int) -> None:
    seen = 0
    for size, seed in CASES[part::4]:
        case = preloaded(size, seed)
        expected = on_reference(case)
        lines = [*differences(case, expected, on_engine(case, LIMITS[seed % len(LIMITS)])), *contradictions(expected)]
        assert not lines, f"seed {seed}: {lines[:5]}"
        seen += isinstance(expected, Outcome)
    assert seen >= 2


@pytest.mark.parametrize("part", range(4))
def test_the_critical_path_is_the_same_on_both_simulators(part: int) -> None:
    for size, seed in CASES[part::4]:
        case = preloaded(size, seed)
        expected = on_reference(case)
        if isinstance(expected, Outcome):
            given = case.graph, case.tensors, case.machine
            slow = critical_path(partial(trace_on_reference, *given))
            assert expected.cycles == sum(step.cycles for step in slow.steps), f"seed {seed}"
            assert critical_path(partial(trace_on_engine, *given, limits=LIMITS[seed % len(LIMITS)])) == slow, f"seed {seed}"


def test_values_and_elements_are_those_of_a_run_without_preloads() -> None:
    ran = 0
    for size, seed in CASES:
        case = preloaded(size, seed)
        expected, found = on_reference(without(case)), on_reference(case)
        if not (isinstance(expected, Outcome) and isinstance(found, Outcome)):
            continue
        ran += 1
        assert {name: list(writer.values) for name, writer in found.written.items()} == {
            name: list(writer.values) for name, writer in expected.written.items()
        }
        assert [(node.name, node.firings) for node in found.nodes] == [(node.name, node.firings) for node in expected.nodes]
    assert ran > 12


def test_each_line_is_asked_for_once_in_order_by_the_port_whose_turn_it_is() -> None:
    """From cycle 0 on, one line a cycle and port, as far as there are answers, however many nodes read the tensor."""
    ports_seen = 0
    for size, seed in CASES[:10]:
        case = preloaded(size, seed)
        first = preloading_nodes(case.graph)
        outcome, controller, _ = reuse_buffers.traced(case)
        if not isinstance(outcome, Outcome):
            continue
        memory, line = controller.memory, controller.line
        for node, count in first.items():
            numbers = [k for k, port in enumerate(controller.ports) if port.node == node]
            assert len(numbers) == count
            place = controller.places[controller.ports[numbers[0]].tensor, -1, "val"]
            for turn, number in enumerate(numbers):
                requests = memory.requests(number)  # type: ignore[attr-defined]
                lines = range(turn, -(-place.length // line), count)
                assert [int(r["address"]) for r in requests] == [place.base + line * k for k in lines]
                cycle = -1
                for k, request in enumerate(requests):
                    answered = requests[k - controller.outstanding]["visible"] if k >= controller.outstanding else 0
                    cycle = max(cycle + 1, int(answered))
                    assert request["cycle"] == cycle
                ports_seen += 1
        others = [port for port in controller.ports if port.node in preloaded_readers(case.graph) and port.node not in first]
        assert not others
    assert ports_seen > 30


def test_a_value_waits_for_its_line_and_all_lines_before_it() -> None:
    """One token, which names the last element: its load fires when the last of all lines is there."""
    for ports in (1, 3, 8):
        graph = parse(LAST.format(ports=ports))
        chosen = np.zeros(600, np.float32)
        chosen[599] = 1
        values = {"J": chosen, "X": np.arange(600, dtype=np.float32)}
        tensors = {name: pack(array, graph.declared[name].format) for name, array in values.items()}
        outcome, controller, _ = reuse_buffers.traced(Case(graph, tensors, load_machine("rda")))
        assert isinstance(outcome, Outcome) and list(outcome.written["Y"].values) == [599.0]
        numbers = [k for k, port in enumerate(controller.ports) if port.node == "X_val"]
        there = max(int(controller.memory.requests(k)["visible"].max()) for k in numbers)  # type: ignore[attr-defined]
        (load,) = [node for node in outcome.nodes if node.name == "X_val"]
        assert len(numbers) == ports and load.first == there


def test_who_reads_in_order_does_so_as_before() -> None:
    graph = parse(PRODUCT.format(words=" preload 4"))
    assert preloaded_readers(graph) == {"X_val": 2400} and preloading_nodes(graph) == {"X_val": 4}
    text = LAST.format(ports=4).replace("(J_i.crd)", "(X_i.crd)").replace("load(X_i)", "load(X_i.ref)")
    in_order = parse(text.replace("X_i = locate(X_i.crd) X.0", "X_i = scan(root) X.0 sequential"))
    assert not preloaded_readers(in_order)


def test_what_cannot_be_preloaded() -> None:
    graph = parse(PRODUCT.format(words=""))
    assert parse(show(graph)) == graph
    changes = [
        ("Y", {"preload": 1}, "output `Y` is preloaded"),
        ("A", {"preload": 1}, "tensor `A` is preloaded, and stored as csr"),
        ("X", {"preload": -1}, "preloaded by -1 ports"),
        ("X", {"preload": 2, "resident": True}, "preloaded by 2 ports and is resident"),
        ("X", {"preload": 2, "buffer": 64}, "preloaded by 2 ports and has a reuse buffer"),
    ]
    for name, values, message in changes:
        tensors = tuple(replace(t, **values) if t.name == name else t for t in graph.tensors)  # type: ignore[arg-type]
        with pytest.raises(GraphError, match=message):
            verify(replace(graph, tensors=tensors))


def test_graphs_with_other_preloads_are_other_graphs() -> None:
    graphs = [parse(PRODUCT.format(words=words)) for words in ("", " preload 1", " preload 8")]
    assert len({graph.structure.key for graph in graphs}) == len({repr(signature(graph, {})) for graph in graphs}) == 3
