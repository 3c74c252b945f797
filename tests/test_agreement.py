"""Transformations of graphs change nothing that is computed, on graphs of random programs."""

from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_programs import Case, cases

from fuseflow.compiler.lower import lower
from fuseflow.errors import FusionError
from fuseflow.samml.nodes import Graph
from fuseflow.samml.verify import verify
from fuseflow.schedule import Schedule
from fuseflow.sim import load_machine, simulate
from fuseflow.tensors import Tensor
from fuseflow.transform import PASSES

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]


def execute(graph: Graph, memory: dict[str, Tensor]) -> dict[str, Tensor]:
    """Every stream of the run is checked against its type."""
    return dict(simulate(graph, {n: memory[n] for n in graph.inputs}, load_machine("ideal"), check=True).outputs)


@settings(max_examples=60, suppress_health_check=SLOW)
@given(cases(max_einsums=2), st.sampled_from(sorted(PASSES)))
def test_passes_keep_graphs_valid_and_values_equal(case: Case, name: str):
    try:
        _, regions = lower(case.program, Schedule.fuse("full"), case.tensors)
    except FusionError:
        return
    graph = regions[0].graph
    changed = PASSES[name](graph)
    verify(changed)
    before, after = execute(graph, dict(case.tensors)), execute(changed, dict(case.tensors))
    for output in graph.outputs:
        np.testing.assert_array_equal(after[output].to_dense(), before[output].to_dense())
