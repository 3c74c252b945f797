"""Lanes compute what one lane computes: every index of many programs in all their orders, one or two at once, on both simulators."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from itertools import permutations, product

import numpy as np
import programs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_programs import Case, cases

from fuseflow.einsum.format_inference import infer
from fuseflow.einsum.interpret import evaluate
from fuseflow.einsum.nodes import Program
from fuseflow.einsum.parse import parse
from fuseflow.errors import FusionError, ScheduleError
from fuseflow.fusion import FusedRegion, fuse
from fuseflow.lower.program import lower
from fuseflow.ops import REDUCERS
from fuseflow.samml import mlir, protobuf
from fuseflow.samml.nodes import Accumulate, Align, Fork, Graph, Merge, WriteLaneValues
from fuseflow.samml.text import parse as parse_graph
from fuseflow.samml.text import show
from fuseflow.samml.verify import verify
from fuseflow.schedule import Schedule
from fuseflow.sim import Engine, load_machine, simulate
from fuseflow.table import FusionTable, build_table, emit
from fuseflow.tensors import Tensor, pack
from fuseflow.transform import mark_fiber_fifos, parallelize

ENGINES: tuple[Engine, ...] = ("reference", "fast")
SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]

TEXTS = {name: text for name, text in programs.TEXTS.items() if name not in ("transpose", "enclosed")} | {
    "attention": """
        tensor Q[5, 3] dense
        tensor K[6, 3] dense
        tensor V[6, 2] dense
        tensor M[5, 6] csr
        S[i, j] = where(M[i, j] == 0, -inf, sum(d) Q[i, d] * K[j, d])
        m[i] = max(j) S[i, j]
        E[i, j] = exp(S[i, j] - m[i])
        P[i, j] = E[i, j] / (sum(k) E[i, k])
        Y[i, d] = sum(j) P[i, j] * V[j, d]
        output Y
    """,
    "elementwise": """
        tensor A[5, 6] csr
        tensor B[5, 6] dcsr
        Y[i, j] = relu(A[i, j] - 3) + B[i, j]
        output Y
    """,
    "columns": """
        tensor A[7, 4] dcsr
        s[j] = sum(i) A[i, j]
        t[j] = max(i) A[i, j]
        output s
        output t
    """,
    "all": """
        tensor A[7, 4] csr
        s = sum(i, j) A[i, j]
        output s
    """,
    "product": """
        tensor A[7, 4] csr
        s[j] = prod(i) A[i, j]
        output s
    """,
    "three": """
        tensor B[3, 4, 5] csf
        tensor C[4, 2] dense
        tensor D[5, 2] dcsr
        Y[i, j] = sum(k, l) B[i, k, l] * C[k, j] * D[l, j]
        output Y
    """,
    "beside": """
        tensor A[4, 5] dcsc
        tensor X[5, 3] dcsr
        tensor B[4, 3] dcsr
        Y[i, j] = (sum(k) A[i, k] * X[k, j]) + B[i, j]
        output Y
    """,
    "equal_sizes": """
        # coordinates of i and of j are all those below 3: what is dealt with i goes by those of i
        tensor A[3, 3, 3] (dense, dense, compressed) order (2, 0, 1)
        T[i, j] = sum(k) A[i, j, k] * A[i, j, k]
        U[j] = sum(i) (T[i, j] + 1)
        Y[j] = U[j] + U[j]
        output Y
    """,
    "cube": """
        tensor A[3, 4, 5] csf
        Y[j, k] = sum(i) A[i, j, k]
        output Y
    """,
}


def program(name: str) -> Program:
    return infer(parse(TEXTS[name]))


def fused(name: str) -> FusedRegion:
    p = program(name)
    return fuse(p, name, [e.name for e in p.einsums], p.outputs, {t.name: t for t in p.inputs})


def tables(name: str, limit: int = 24) -> list[FusionTable]:
    """In all orders that can be streamed."""
    region, found = fused(name), []
    for order in permutations(region.indices):
        if (
            all(order.index(a) < order.index(b) for a, inside in region.constraints.items() for b in inside)
            and len(found) < limit
        ):
            try:
                found.append(build_table(replace(region, order=order)))
            except FusionError:
                continue  # an enclosed loop
    assert found
    return found


def data(graph: Graph, density: float, seed: int = 0) -> dict[str, Tensor]:
    """Small integers, so that sums are exact in any order."""
    draw = np.random.default_rng(seed)
    found = {}
    for decl in graph.tensors:
        if decl.name in graph.inputs:
            kept = draw.random(decl.shape) < density
            if kept.ndim and len(kept) > 1:
                kept[draw.integers(len(kept))] = False  # an empty row at least
            found[decl.name] = pack((draw.integers(1, 6, decl.shape) * kept).astype(np.float64), decl.format)
    return found


def outputs(graph: Graph, tensors: Mapping[str, Tensor], engine: Engine = "reference") -> dict[str, np.ndarray]:
    run = simulate(graph, tensors, load_machine("ideal"), engine=engine, check=engine == "reference")
    return {name: tensor.to_dense() for name, tensor in run.outputs.items()}


def same(found: Mapping[str, np.ndarray], wanted: Mapping[str, np.ndarray]) -> None:
    for name, array in wanted.items():
        np.testing.assert_allclose(found[name], array, rtol=1e-6)


@pytest.mark.parametrize("name", TEXTS)
def test_every_index_in_every_order(name: str) -> None:
    p = program(name)
    for n, table in enumerate(tables(name)):
        serial = emit(table)
        for density in (0.0, 0.5):
            tensors = data(serial, density, seed=n)
            wanted = outputs(serial, tensors)
            meant = evaluate(p, {t: tensor.to_dense() for t, tensor in tensors.items()}, outputs_only=True)
            same(wanted, {output: meant[output] for output in p.outputs})
            for at, index in enumerate(table.order):
                graph = mark_fiber_fifos(parallelize(serial, table.loops, {index: 2 + (n + at) % 3}).graph)
                verify(graph)
                same(outputs(graph, tensors), wanted)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", ["beside", "attention", "columns", "layer", "three"])
def test_dense_results_written_in_lanes(name: str, engine: Engine) -> None:
    """What lanes of one index, or of two, write is what one lane writes; lanes of the second index are merged before."""
    in_lanes = 0
    for n, table in enumerate(tables(name)):
        serial = emit(table)
        tensors = data(serial, 0.5, seed=n)
        wanted = outputs(serial, tensors)
        v, w = table.order[0], table.order[-1]
        for lanes in ({v: 3}, {w: 2}, {v: 2, w: 3}):
            graph = mark_fiber_fifos(parallelize(serial, table.loops, lanes, writers="lanes").graph)
            verify(graph)
            same(outputs(graph, tensors, engine), wanted)
            written = Counter(node.tensor for node in graph.nodes if isinstance(node, WriteLaneValues))
            assert set(written.values()) <= {3, 2}
            in_lanes += len(written)
    assert in_lanes or name != "attention"


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", ["spmm", "layer", "sddmm", "masked_softmax", "attention", "beside"])
def test_factors_and_pairs(name: str, engine: Engine) -> None:
    """Factors beyond the fiber, and lanes inside lanes, whichever is outside."""
    table = tables(name)[-1]
    serial = emit(table)
    tensors = data(serial, 0.6)
    wanted = outputs(serial, tensors)
    v, w = table.order[0], table.order[-1]
    for lanes in ({v: 1}, {v: 8}, {w: 8}, {v: 2, w: 3}, {w: 2, v: 2}):
        made = parallelize(serial, table.loops, lanes)
        verify(made.graph)
        same(outputs(made.graph, tensors, engine), wanted)
        assert (made.graph == serial) == (lanes == {v: 1})


def test_64_lanes() -> None:
    table = programs.table("layer", "i,k,l,j")
    serial = emit(table)
    tensors = data(serial, 0.6)
    for lanes in ({"i": 64}, {"i": 8, "j": 8}):
        made = parallelize(serial, table.loops, lanes)
        verify(made.graph)
        same(outputs(made.graph, tensors), outputs(serial, tensors))


SPMM = """\
graph spmm
tensor A[4, 4]  csr
tensor X[4, 5]  csr
tensor Y[4, 5]  csr
output Y

root = root()
A_i = scan(root) A.0 sequential
fork_i_A_i_ref = fork(A_i.ref) 2
A_k/i0 = scan(fork_i_A_i_ref.lane0) A.1
A_k/i1 = scan(fork_i_A_i_ref.lane1) A.1
fork_i_A_i_crd = fork(A_i.crd) 2
rep_i/i0 = repeat(root, fork_i_A_i_crd.lane0)
rep_i/i1 = repeat(root, fork_i_A_i_crd.lane1)
rep_k/i0 = repeat(rep_i/i0, A_k/i0.crd)
rep_k/i1 = repeat(rep_i/i1, A_k/i1.crd)
X_k.loc/i0 = locate(A_k/i0.crd, rep_k/i0) X.0
X_k.loc/i1 = locate(A_k/i1.crd, rep_k/i1) X.0
X_j/i0 = scan(X_k.loc/i0) X.1
X_j/i1 = scan(X_k.loc/i1) X.1
A_val/i0 = load(A_k/i0.ref) A sequential
A_val/i1 = load(A_k/i1.ref) A sequential
X_val/i0 = load(X_j/i0.ref) X sequential
X_val/i1 = load(X_j/i1.ref) X sequential
rep_j/i0 = repeat(A_val/i0, X_j/i0.crd)
rep_j/i1 = repeat(A_val/i1, X_j/i1.crd)
mul/i0 = alu(rep_j/i0, X_val/i0) mul N->0,N->0
mul/i1 = alu(rep_j/i1, X_val/i1) mul N->0,N->0
acc_k/i0 = accumulate(A_k/i0.crd, X_j/i0.crd, mul/i0) sum order=1
acc_k/i1 = accumulate(A_k/i1.crd, X_j/i1.crd, mul/i1) sum order=1
write_Y_i = write(A_i.crd) Y.0
merge_i_acc_k_crd = merge(acc_k/i0.crd, acc_k/i1.crd) levels=1
write_Y_j = write(merge_i_acc_k_crd) Y.1
merge_i_acc_k_val = merge(acc_k/i0.val, acc_k/i1.val) levels=1
write_Y_val = write(merge_i_acc_k_val) Y.vals
"""


def test_rows_of_a_product() -> None:
    table = programs.table("spmm", "i,k,j")
    graph = parallelize(emit(table), table.loops, {"i": 2}).graph
    assert show(graph) == SPMM


def test_a_reduced_index_ends_in_a_tree() -> None:
    """The accumulators of three lanes are united by two joins and two adders."""
    table = programs.table("spmm", "i,k,j")
    graph = parallelize(emit(table), table.loops, {"k": 3}).graph
    names = [node.name for node in graph.nodes]
    assert [name for name in names if name.startswith(("union_", "fold_"))] == [
        *("union_acc_k", "fold_acc_k", "union_acc_k'2", "fold_acc_k'2"),
    ]
    assert sum(isinstance(node, Accumulate) for node in graph.nodes) == 3
    assert not any(isinstance(node, Merge) for node in graph.nodes)


@pytest.mark.parametrize("function", REDUCERS)
def test_lanes_fold_infinities_and_nan_as_one_lane_does(function: str) -> None:
    """Not like the operators: those take 0 * inf for 0, and -inf + inf for -inf."""
    p = infer(parse(f"tensor A[3, 4] dense\ns[j] = {function}(i) A[i, j]\noutput s\n"))
    region = fuse(p, "folds", ["s"], p.outputs, {t.name: t for t in p.inputs})
    inf, nan = np.inf, np.nan
    array = np.array([[-inf, -inf, 0.0, 2.0], [inf, nan, inf, -inf], [1.0, 3.0, nan, 0.0]])
    with np.errstate(all="ignore"):
        wanted = REDUCERS[function].array.reduce(array)
    for order, engine in product((("i", "j"), ("j", "i")), ENGINES):  # an accumulator, a reduction
        table = build_table(replace(region, order=order))
        serial = emit(table)
        tensors = {"A": pack(array, serial.declared["A"].format)}
        for graph in (serial, parallelize(serial, table.loops, {"i": 3}).graph):
            np.testing.assert_array_equal(outputs(graph, tensors, engine)["s"], wanted)


def test_what_lies_below_joined_coordinates_is_dealt_with_them() -> None:
    """A finished reduction whose outer level is joined has no references to deal: its values are aligned with each lane's coordinates."""
    table = next(t for t in tables("beside") if t.order[0] == "k" and t.order.index("i") < t.order.index("j"))
    serial = emit(table)
    graph = parallelize(serial, table.loops, {"i": 3}).graph
    before = sum(isinstance(node, Align) for node in serial.nodes)
    assert sum(isinstance(node, Align) for node in graph.nodes) >= before + 2 * 3


def test_places_nest() -> None:
    table = programs.table("spmm", "i,k,j")
    made = parallelize(emit(table), table.loops, {"i": 2, "k": 3})
    assert made.places["mul/i1/k2"] == (("i", 1), ("k", 2))
    assert "A_i" not in made.places
    assert made.places["fork_k_A_k/i0_crd"] == (("i", 0),)
    assert made.places.keys() <= {node.name for node in made.graph.nodes}
    assert made.loops["X_j/i1/k0"] == frozenset({"j"})


def test_every_form_of_a_graph_with_lanes() -> None:
    table = programs.table("layer", "i,k,l,j")
    graph = parallelize(emit(table), table.loops, {"i": 2, "k": 2}).graph
    assert parse_graph(show(graph)) == graph
    assert show(mlir.from_mlir(mlir.to_mlir(graph))) == show(graph)
    read = protobuf.from_proto(protobuf.to_proto(graph), {})
    assert [type(n) for n in read.nodes].count(Fork) == [type(n) for n in graph.nodes].count(Fork)


@pytest.mark.parametrize(
    ("lanes", "message", "hint"),
    [
        ({"i": 0}, "0 lanes of `i`: not a number", "1 or more"),
        ({"n": 2}, "no loop over `n`", "known"),
        ({"i": 100_000}, "100000 lanes of `i` may take", "at most"),
    ],
)
def test_refusals(lanes: dict[str, int], message: str, hint: str) -> None:
    table = programs.table("spmm", "i,k,j")
    with pytest.raises(ScheduleError) as error:
        parallelize(emit(table), table.loops, lanes)
    assert message in error.value.message and hint in error.value.hint


def test_indices_that_share_a_scan_are_one_loop() -> None:
    """Two sums over the same rows, each with an index of its own."""
    p = infer(parse("tensor A[4, 4] dcsr\nY[i] = (sum(k) A[i, k]) * (sum(l) A[i, l] * A[i, l])\noutput Y\n"))
    region = fuse(p, "two", ["Y"], p.outputs, {t.name: t for t in p.inputs}, merge="never")
    table = build_table(replace(region, order=("i", "k", "l")))
    serial = emit(table)
    assert frozenset({"k", "l"}) in table.loops.values()
    tensors = data(serial, 0.7)
    for index in ("k", "l"):
        same(outputs(parallelize(serial, table.loops, {index: 3}).graph, tensors), outputs(serial, tensors))
    with pytest.raises(ScheduleError, match="`k` and `l` of graph `two` are one loop") as error:
        parallelize(serial, table.loops, {"k": 2, "l": 2})
    assert error.value.hint == "deal one of them there: `--par two.l=1`"


@settings(max_examples=50, deadline=None, suppress_health_check=SLOW)
@given(cases(max_einsums=3), st.data())
def test_random_programs(case: Case, draw: st.DataObject) -> None:
    try:
        _, regions = lower(case.program, Schedule.fuse("full"), case.tensors)
    except FusionError:
        return
    table = regions[0].table
    picked = draw.draw(st.lists(st.sampled_from(table.order), min_size=1, max_size=2, unique=True)) if table.order else []
    lanes = {index: draw.draw(st.sampled_from([1, 2, 3, 4, 8])) for index in picked}
    serial = emit(table)
    shared = [indices & lanes.keys() for indices in table.loops.values()]
    if any(len(indices) > 1 for indices in shared):
        return  # refused: two indices with one loop
    graph = mark_fiber_fifos(parallelize(serial, table.loops, lanes).graph)
    verify(graph)
    tensors = {name: case.tensors[name] for name in serial.inputs}
    before, after, fast = outputs(serial, tensors), outputs(graph, tensors), outputs(graph, tensors, "fast")
    for name, array in before.items():
        finite = array[np.isfinite(array)]
        scale = max(1.0, float(np.abs(finite).max(initial=0.0)))
        np.testing.assert_allclose(after[name], array, rtol=1e-9, atol=1e-9 * scale)
        np.testing.assert_array_equal(fast[name], after[name])
