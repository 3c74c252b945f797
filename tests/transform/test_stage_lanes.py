"""Lanes of a stage: all other nodes see the streams that they see without lanes, and nothing is computed twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_programs import Case, cases

from fuseflow.einsum.format_inference import infer
from fuseflow.einsum.parse import parse
from fuseflow.errors import FusionError, ScheduleError
from fuseflow.fusion import fuse
from fuseflow.lower.lanes import without_lanes
from fuseflow.lower.program import lower
from fuseflow.samml.nodes import Fork, Graph, Merge, Port
from fuseflow.samml.verify import verify
from fuseflow.schedule import Schedule
from fuseflow.sim import load_machine
from fuseflow.sim.outcome.statistics import Outcome
from fuseflow.sim.reference.execute import execute
from fuseflow.table import FusionTable, build_table, emit
from fuseflow.tensors import Tensor, pack
from fuseflow.transform import LaneGraph, mark_fiber_fifos, parallelize
from fuseflow.transform.stream_levels import stage_loops

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
REFUSED = ("are one loop", "has nothing to be dealt")

CHAIN = """
    tensor A[5, 6] csr
    tensor X[6, 4] csr
    tensor W[4, 3] csr
    T[i, f] = sum(k) A[i, k] * X[k, f]
    Y[i, h] = relu(sum(f) T[i, f] * W[f, h])
    output Y
"""
SOFTMAX = """
    tensor A[5, 6] dense
    m[i] = max(j) A[i, j]
    E[i, j] = exp(A[i, j] - m[i])
    s[i] = sum(j) E[i, j]
    Y[i, j] = A[i, j] * (E[i, j] / s[i])
    output Y
"""


def table_of(text: str, *order: str) -> FusionTable:
    program = infer(parse(text))
    region = fuse(program, "full", [e.name for e in program.einsums], program.outputs, {t.name: t for t in program.inputs})
    return build_table(replace(region, order=order))


def data(graph: Graph, density: float = 0.6) -> dict[str, Tensor]:
    """Small integers, so that sums are exact in any order."""
    draw = np.random.default_rng(3)
    arrays = {
        t.name: draw.integers(1, 6, t.shape) * (draw.random(t.shape) < density) for t in graph.tensors if t.name in graph.inputs
    }
    return {name: pack(array.astype(np.float64), graph.declared[name].format) for name, array in arrays.items()}


def run(graph: Graph, tensors: Mapping[str, Tensor]) -> Outcome:
    outcome = execute(graph, {name: tensors[name] for name in graph.inputs}, load_machine("ideal"), record=True)
    assert isinstance(outcome, Outcome), outcome.waiting
    return outcome


def agree(serial: Graph, made: LaneGraph, tensors: Mapping[str, Tensor]) -> None:
    """Compare a graph with lanes with the one without, node by node. Lanes have as many values to compute in all, and nodes outside of
    them make the same streams, up to the order of sums."""
    graph = mark_fiber_fifos(made.graph)
    verify(graph)
    before, after = run(mark_fiber_fifos(serial), tensors), run(graph, tensors)
    values: Counter[str] = Counter()
    for name, count in after.values.items():
        values[without_lanes(name, made.places.get(name, ()))] += count
    assert before.values == {name: values[name] for name in before.values}
    for node in serial.nodes:
        if node.name not in graph.by_name:
            assert f"{node.name}/" in " ".join(graph.by_name)  # it is in lanes
            continue
        for k in range(len(node.port_names())):
            same(before.streams[Port(node.name, k)].tokens, after.streams[Port(node.name, k)].tokens)
    assert before.written.keys() == after.written.keys()


def same(before: Sequence[object], after: Sequence[object]) -> None:
    """Compare two streams. Numbers are as equal as sums in another order are."""
    assert [_number(t) is None and str(t) for t in before] == [_number(t) is None and str(t) for t in after]
    numbers = ([n for t in stream if (n := _number(t)) is not None] for stream in (before, after))
    first, second = (np.array(list(n), np.float64) for n in numbers)
    np.testing.assert_allclose(second, first, rtol=1e-9, atol=1e-9 * max(1.0, np.abs(first[np.isfinite(first)]).max(initial=0.0)))


def _number(token: object) -> float | None:
    return float(token) if isinstance(token, int | float | np.number) else None


def test_only_the_stage_has_lanes() -> None:
    table = table_of(CHAIN, "i", "k", "f", "h")
    serial = emit(table)
    made = parallelize(serial, table.loops, {"i": 1}, table.stages, {("T", "i"): 3})
    agree(serial, made, data(serial))
    dealt = {without_lanes(name, place) for name, place in made.places.items()}
    assert {"A_k", "X_f", "acc_k"} <= dealt and not {"W_f", "acc_f", "relu"} & dealt
    assert made.places["acc_k/i2"] == (("T.i", 2),)


def test_stages_with_equal_lanes_are_one() -> None:
    """Between two stages that deal an index over equally many lanes nothing is merged: the graph is that of lanes of all."""
    table = table_of(CHAIN, "i", "k", "f", "h")
    serial = emit(table)
    own = {(stage, "i"): 3 for stage in ("T", "Y.sum", "Y")}
    apart, together = parallelize(serial, table.loops, {"i": 1}, table.stages, own), parallelize(serial, table.loops, {"i": 3})
    assert apart.graph == together.graph
    agree(serial, apart, data(serial))


def test_a_stage_has_more_lanes_than_its_region() -> None:
    table = table_of(CHAIN, "i", "k", "f", "h")
    serial = emit(table)
    made = parallelize(serial, table.loops, {"i": 2}, table.stages, {("T", "i"): 4})
    agree(serial, made, data(serial))
    assert {node.lanes for node in made.graph.nodes if isinstance(node, Fork | Merge)} == {2, 4}


def test_a_stage_without_lanes_in_a_region_with_lanes() -> None:
    table = table_of(CHAIN, "i", "k", "f", "h")
    serial = emit(table)
    made = parallelize(serial, table.loops, {"i": 2}, table.stages, {("T", "i"): 1})
    agree(serial, made, data(serial))
    assert "acc_k" in made.graph.by_name and "acc_f/i1" in made.graph.by_name


@pytest.mark.parametrize("stage", ["m", "s", "Y"])
def test_what_a_stage_shares_with_others(stage: str) -> None:
    """The values that several stages read are loaded in one of them."""
    table = table_of(SOFTMAX, "i", "j")
    serial = emit(table)
    agree(serial, parallelize(serial, table.loops, {"i": 1}, table.stages, {(stage, "i"): 2}), data(serial))


@pytest.mark.parametrize(
    ("own", "message"),
    [
        ({("S", "i"): 2}, "graph `full` has no stage `S`"),
        ({("Y", "k"): 2}, "stage `Y` of graph `full` has no loop over `k`"),
        ({("Y", "i"): 0}, "0 lanes of `Y.i`: not a number"),
        ({("T", "i"): 30_000}, "30000 lanes of `i` may take"),
    ],
)
def test_refusals(own: dict[tuple[str, str], int], message: str) -> None:
    table = table_of(CHAIN, "i", "k", "f", "h")
    with pytest.raises(ScheduleError) as error:
        parallelize(emit(table), table.loops, dict.fromkeys("ikfh", 1), table.stages, own)
    assert message in error.value.message


TWO_FORKS = """
    tensor A[3, 3, 1] (compressed, dense, dense)
    tensor B[3, 3, 1] (dense, dense, dense) order (2, 0, 1)
    T[q, k, j] = A[j, k, q] + A[j, k, q]
    M[r] = max(k, j) A[k, j, r]
    S = sum(k, i, q) (B[k, i, q] + T[q, k, i])
    output T
    output M
    output S
"""
VARIANCE = """
    tensor A[4, 3, 3, 2] csf
    T[k, j, q] = (sum(i) A[q, k, j, i]) / 2
    D[i, k, j, q] = A[q, k, j, i] - T[k, j, q]
    V[k, j, q] = sum(i) D[i, k, j, q] * D[i, k, j, q]
    Y[i, k, j, q] = D[i, k, j, q] * rsqrt(V[k, j, q] + 1)
    output Y
"""
CENTERED = """
    tensor A[3, 3, 3] dense
    T[i, k] = (sum(j) A[i, j, k]) / 3
    D[i, j, k] = A[i, j, k] - T[i, k]
    V[i, k] = sum(j) D[i, j, k] * D[i, j, k]
    output V
"""


@pytest.mark.parametrize("text", [TWO_FORKS, VARIANCE, CENTERED])
def test_every_two_loops_of_stages(text: str) -> None:
    """Programs that once failed: a fork stood in lanes of another loop than its merge; what a lane made by itself met what was dealt to
    it; and coordinates were asked for that only lanes had."""
    program = infer(parse(text))
    _, (region, *_) = lower(program, Schedule.fuse("full"), {})
    table = region.table
    serial = emit(table)
    tensors = data(serial)
    loops = [(stage, index) for stage, inside in region.stages.items() for index in inside]
    for first, second in combinations(loops, 2):
        try:
            made = parallelize(serial, table.loops, dict.fromkeys(table.order, 1), table.stages, {first: 3, second: 2})
        except ScheduleError as error:
            if any(reason in error.message for reason in REFUSED):
                continue
            raise
        agree(serial, made, tensors)


TRANSPOSED = """
    tensor A[3, 3] (compressed(nonunique), singleton) order (1, 0)
    S[j, l, k, i] = A[i, j] * A[k, l]
    R[i, j, k, l] = S[i, j, k, l] / (S[i, j, k, l] * S[i, j, k, l] + 1)
    T[i, j] = sum(k, l) R[i, j, k, l] * A[k, l]
    Y = sum(i, j) T[i, j] * T[j, i]
    output Y
"""


@pytest.mark.parametrize("lanes", [2, 5])
def test_lanes_end_before_a_stage_that_joined_what_they_were_dealt(lanes: int) -> None:
    """A lane made its part of a join from a scan of its own. That the merged parts are the join was not proved, and the graph refused."""
    program = infer(parse(TRANSPOSED))
    tensors = {"A": pack(np.array([[2.0, 3.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]), program.declared["A"].format)}
    _, (region, *_) = lower(program, Schedule.fuse("full"), tensors)
    table, serial = region.table, emit(region.table)
    for outer in table.order:
        for stage, inside in stage_loops(serial, table.loops, table.stages).items():
            if outer in inside:
                agree(serial, parallelize(serial, table.loops, {outer: lanes}, table.stages, {(stage, outer): 1}), tensors)


@settings(max_examples=50, deadline=None, suppress_health_check=SLOW)
@given(cases(max_einsums=4), st.data())
def test_random_programs(case: Case, draw: st.DataObject) -> None:
    try:
        _, (region, *_) = lower(case.program, Schedule.fuse("full"), case.tensors)
    except FusionError:
        return
    table, counts = region.table, st.sampled_from([1, 2, 3, 5])
    serial = emit(table)
    loops = [
        (stage, index) for stage, inside in stage_loops(serial, table.loops, table.stages).items() for index in sorted(inside)
    ]
    if not loops or not set(serial.inputs) <= case.tensors.keys():
        return
    own = draw.draw(st.dictionaries(st.sampled_from(loops), counts, min_size=1, max_size=3))
    lanes = {index: draw.draw(counts) if draw.draw(st.booleans()) else 1 for index in table.order}
    try:
        made = parallelize(serial, table.loops, lanes, table.stages, own)
    except ScheduleError as error:
        if any(reason in error.message for reason in REFUSED):
            return
        raise
    agree(serial, made, case.tensors)
