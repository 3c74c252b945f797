"""All levels agree: the dense interpreter, the fused program, the graph executed with every stream checked."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_programs import Case, cases

from fuseflow.compiler import lower
from fuseflow.einsum.formats import infer
from fuseflow.einsum.interpret import evaluate
from fuseflow.errors import FusionError
from fuseflow.fusion import fuse
from fuseflow.fusion.fuse import Merge
from fuseflow.fusion.orders import candidates
from fuseflow.fusion.program import as_program
from fuseflow.samml.nodes import Graph
from fuseflow.samml.verify import verify
from fuseflow.schedule import Schedule
from fuseflow.sim import load_machine, simulate
from fuseflow.table import build_table, emit
from fuseflow.tensors import Tensor
from fuseflow.transform import PASSES

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]


def execute(graph: Graph, memory: dict[str, Tensor]) -> dict[str, Tensor]:
    """Every stream of the run is checked against its type."""
    return dict(simulate(graph, {n: memory[n] for n in graph.inputs}, load_machine("ideal"), check=True).outputs)


def agree(got: np.ndarray, want: np.ndarray) -> None:
    finite = want[np.isfinite(want)]
    scale = max(1.0, float(np.abs(finite).max(initial=0.0)))
    np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-9 * scale)


@settings(max_examples=150, suppress_health_check=SLOW)
@given(cases(), st.sampled_from(["none", "full"]))
def test_regions_chained_on_real_intermediates(case: Case, choice: str):
    try:
        program, regions = lower(case.program, Schedule.fuse(choice), case.tensors)
    except FusionError:
        return
    want, memory = evaluate(program, case.arrays), dict(case.tensors)
    for region in regions:
        memory |= execute(region.graph, memory)
        for name in region.graph.outputs:
            source = next((copy.source for r in regions for copy in r.fused.copies if copy.name == name), name)
            agree(memory[name].to_dense(), want[source] if source in want else case.arrays[source])


@settings(max_examples=150, suppress_health_check=SLOW)
@given(cases(), st.randoms(use_true_random=False), st.sampled_from(["early", "late", "never"]))
def test_any_order_of_one_region(case: Case, rng: random.Random, merge: Merge):
    program = infer(case.program)
    stored = {t.name: t for t in program.inputs}
    try:
        region = fuse(program, "all", [e.name for e in program.einsums], program.outputs, stored, merge=merge)
    except FusionError:
        return
    order = rng.choice(candidates(region.constraints, region.indices, 12))
    region = replace(region, order=order)
    try:
        graph = emit(build_table(region))
    except FusionError:
        return  # an enclosed loop
    want = evaluate(program, case.arrays)
    meant = evaluate(as_program(region), case.arrays)
    got = execute(graph, dict(case.tensors))
    for name in program.outputs:
        agree(meant[name], want[name])
        agree(got[name].to_dense(), want[name])


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
