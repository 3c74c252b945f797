"""Which FIFOs must hold a whole fiber, and that listing them changes nothing that a graph computes."""

from __future__ import annotations

import numpy as np
import programs
import pytest
from hypothesis import HealthCheck, given, settings
from random_programs import Case, cases

from fuseflow.errors import FusionError
from fuseflow.lower.program import lower
from fuseflow.samml.nodes import Graph
from fuseflow.samml.text import parse
from fuseflow.samml.verify import verify
from fuseflow.schedule import Schedule
from fuseflow.sim import load_machine, simulate
from fuseflow.tensors import Tensor
from fuseflow.transform import mark_fiber_fifos

SYMMETRIC = """
graph symmetric
tensor A[4, 4]  dcsr
root = root()
A_i = scan(root) A.0
A_k = scan(A_i.ref) A.1
A_v = load(A_k.ref) A
turned = permute(A_i.crd, A_k.crd, A_v) order=1,0
i = join(A_i.crd; turned.crd0) union
"""


def test_a_tensor_waits_for_its_own_copy():
    edges = {f"{e.node}.{e.input}" for e in mark_fiber_fifos(parse(SYMMETRIC)).fiber_fifos}
    assert edges == {"i.0"}


@pytest.mark.parametrize(
    ("name", "order", "expected"),
    [
        ("spmm", "i,k,j", set()),
        ("sddmm", "i,j,k", set()),  # M's value waits for the inner product: one element, not a fiber
        ("masked_softmax", "i,j", {"rep_j'2.1", "sub.0", "rep_j'3.1", "div.0"}),
    ],
)
def test_fiber_fifos(name, order, expected):
    edges = {f"{e.node}.{e.input}" for e in mark_fiber_fifos(programs.graph(name, order)).fiber_fifos}
    assert edges == expected


def execute(graph: Graph, memory: dict[str, Tensor]) -> dict[str, Tensor]:
    """Every stream of the run is checked against its type."""
    return dict(simulate(graph, {n: memory[n] for n in graph.inputs}, load_machine("ideal"), check=True).outputs)


@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much])
@given(cases(max_einsums=2))
def test_a_graph_of_a_random_program_stays_valid_and_computes_the_same(case: Case):
    try:
        _, regions = lower(case.program, Schedule.fuse("full"), case.tensors)
    except FusionError:
        return
    graph = regions[0].graph
    changed = mark_fiber_fifos(graph)
    verify(changed)
    before, after = execute(graph, dict(case.tensors)), execute(changed, dict(case.tensors))
    for output in graph.outputs:
        np.testing.assert_array_equal(after[output].to_dense(), before[output].to_dense())
