"""The interpreter against an oracle that steps every node through every cycle: the same streams, firings and cycles, always."""

from __future__ import annotations

import random
from dataclasses import replace

import cycle_oracle
import dataflow
import numpy as np
import pytest
import random_programs
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from fuseflow.einsum.format_inference import infer
from fuseflow.errors import DeadlockError, FuseFlowError
from fuseflow.fusion import fuse
from fuseflow.fusion.order_candidates import enumerate_orders
from fuseflow.samml.nodes import Edge, Graph
from fuseflow.samml.text import parse
from fuseflow.sim import Machine, Simulation, load_machine, simulate
from fuseflow.table import build_table, emit
from fuseflow.tensors import Tensor, pack


def compare(graph: Graph, tensors: dict[str, Tensor], machine: Machine) -> Simulation | None:
    """Run both, compare everything; None after a deadlock."""
    oracle = cycle_oracle.run(graph, tensors, machine)
    if oracle.cycles is None:
        last = max(max(fired, default=-1) for fired in oracle.fired.values())
        with pytest.raises(DeadlockError, match=f"after cycle {last}$|after cycle {last}\n"):
            simulate(graph, tensors, machine)
        return None
    found = simulate(graph, tensors, machine, record=True, check=True)
    assert found.cycles == oracle.cycles
    for node in found.nodes:
        fired = oracle.fired[node.name]
        assert (node.firings, node.first, node.last) == (len(fired), min(fired), max(fired)), node
        assert (node.starved, node.blocked) == oracle.idle[node.name], node
    producer = {edge: port for port, readers in graph.readers().items() for edge in readers}
    for edge in found.edges:
        key = Edge(edge.node, edge.input)
        assert (edge.tokens, edge.peak) == (len(oracle.streams[producer[key]]), oracle.peaks[key]), edge
    for port, stream in found.streams.items():
        expected = oracle.streams[port]
        assert stream.visible == tuple(cycle for _, cycle in expected), port
        np.testing.assert_equal(stream.tokens, [token for token, _ in expected], str(port))
    return found


def same_values(a: Simulation, b: Simulation) -> None:
    for name, tensor in a.outputs.items():
        np.testing.assert_array_equal(tensor.values, b.outputs[name].values)
        np.testing.assert_array_equal(tensor.coordinates(), b.outputs[name].coordinates())


@pytest.mark.parametrize("name", dataflow.TEXTS)
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=40)
def test_graphs_by_hand(name: str, seed: int) -> None:
    rng = random.Random(seed)
    graph = dataflow.with_depths(dataflow.graph(name), rng)
    tensors = dataflow.inputs(graph, np.random.default_rng(seed), rng.choice([0.0, 0.5, 1.0]))
    found = compare(graph, tensors, dataflow.random_machine(rng))
    if found is not None:
        same_values(found, simulate(replace(graph, depths=()), tensors, load_machine("ideal")))


@given(random_programs.cases(2, 3), st.integers(0, 2**32 - 1))
@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
def test_random_programs(case: random_programs.Case, seed: int) -> None:
    rng = random.Random(seed)
    program = infer(case.program)
    try:
        fused = fuse(program, "all", [e.name for e in program.einsums], program.outputs, {t.name: t for t in program.inputs})
        graph = emit(build_table(replace(fused, order=next(enumerate_orders(fused.constraints, fused.indices)))))
    except FuseFlowError:
        assume(False)
    found = compare(dataflow.with_depths(graph, rng), case.tensors, dataflow.random_machine(rng))
    if found is not None:
        same_values(found, simulate(graph, case.tensors, load_machine("ideal")))


EMPTY_ROWS = """
graph rows
tensor A[5, 2]  csr
tensor X[2, 6]  csr
tensor Y[5, 6]  csr
output Y
root = root()
A_i = scan(root) A.0
A_k = scan(A_i.ref) A.1
X_k = locate(A_k.crd) X.0
X_j = scan(X_k) X.1
X_v = load(X_j.ref) X
acc = accumulate(A_k.crd, X_j.crd, X_v) sum order=1
Y_i = write(A_i.crd) Y.0
Y_j = write(acc.crd) Y.1
Y_v = write(acc.val) Y.vals
"""


@pytest.mark.parametrize("rows", [[0], [0, 3], [1, 2]])
@pytest.mark.parametrize("depth", [1, 2, None])
def test_empty_fibers_wait_for_a_workspace_too(rows: list[int], depth: int | None) -> None:
    graph = parse(EMPTY_ROWS)
    a = np.zeros((5, 2))
    a[rows] = 1
    tensors = {"A": pack(a, graph.declared["A"].format), "X": pack(np.ones((2, 6)), graph.declared["X"].format)}
    assert compare(graph, tensors, Machine(name="m", fifo_depth=depth)) is not None


@pytest.mark.parametrize("name", ["outer_product", "pruned", "normalized", "aligned"])
def test_an_infinite_depth_equals_unbounded(name: str) -> None:
    graph = dataflow.graph(name)
    tensors = dataflow.inputs(graph, np.random.default_rng(3))
    ideal = load_machine("ideal")
    unbounded = simulate(graph, tensors, ideal, record=True)
    bounded = simulate(graph, tensors, ideal.model_copy(update={"fifo_depth": 10**12}), record=True)
    assert unbounded.nodes == bounded.nodes
    assert unbounded.streams == bounded.streams


@pytest.mark.parametrize("name", ["outer_product", "pruned", "aligned"])
def test_smaller_fifos_are_never_faster(name: str) -> None:
    graph = dataflow.graph(name)
    tensors = dataflow.inputs(graph, np.random.default_rng(5), 0.8)
    cycles = []
    for depth in (1, 2, 4, 16, None):
        machine = Machine(name="m", fifo_depth=depth)
        try:
            cycles.append(simulate(graph, tensors, machine).cycles)
        except DeadlockError:
            assert not cycles, "a deeper FIFO deadlocks where a smaller one does not"
    assert len(cycles) >= 2
    assert cycles == sorted(cycles, reverse=True)
    assert cycles[0] > cycles[-1]
