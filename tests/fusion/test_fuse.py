"""Algorithm 1: inlining, renaming, merged views, the partial order and its explanations."""

from __future__ import annotations

import networkx as nx
import numpy as np
import programs
import pytest
from hypothesis import HealthCheck, given, settings
from random_programs import Case, cases

import fuseflow as ff
from fuseflow.einsum.format_inference import infer
from fuseflow.einsum.interpret import evaluate
from fuseflow.einsum.nodes import Program
from fuseflow.einsum.parse import parse
from fuseflow.errors import FusionError
from fuseflow.fusion import FusedRegion, fuse
from fuseflow.fusion.fuse import MergePolicy
from fuseflow.fusion.order_candidates import candidate_orders, enumerate_orders
from fuseflow.fusion.order_graph import graph_edges
from fuseflow.fusion.region import verify_region
from fuseflow.fusion.region_program import as_program, show, show_order
from fuseflow.fusion.tree import nodes, reductions


def edges(region: FusedRegion) -> set[tuple[str, str]]:
    return {(above, below) for above, below, _ in graph_edges(region.constraints)}


@pytest.mark.parametrize("name", ["spmm", "axw", "layer", "masked_softmax", "sddmm"])
def test_printed_forms(name, golden):
    region = programs.fused(name)
    golden(f"fused/{name}.txt", show(region) + "\n" + show_order(region))


def test_reduction_indices_are_renamed_and_results_keep_their_own():
    region = programs.fused("layer")
    assert region.indices == ("i", "j", "k", "l")  # reductions continue the list: k over nodes, l over features
    assert region.local_names["T"] == {"i": "k", "j": "j", "k": "l"}


def test_softmax_reads_its_operand_through_one_view():
    region = programs.fused("masked_softmax")
    assert [str(v) for v in region.views if v.tensor == "D"] == ["D[i, j]"]
    assert {(r.label, index) for r, index in region.merges} == {("m", "j"), ("Y.sum", "j")}
    assert "j" in region.constraints["i"]


def test_without_merging_softmax_has_an_index_for_each_reduction():
    p = programs.program("masked_softmax")
    region = fuse(p, "s", [e.name for e in p.einsums], p.outputs, {t.name: t for t in p.inputs}, merge="never")
    assert len(region.indices) > 2 and not region.merges


def test_reuse_does_not_grow_the_tree():
    lines = ["tensor A[3, 3] csr", "T0[i, j] = A[i, j] + 1"]
    lines += [f"T{k}[i, j] = T{k - 1}[i, j] * T{k - 1}[i, j]" for k in range(1, 60)]
    p = infer(parse("\n".join([*lines, "output T59"])))
    region = fuse(p, "chain", [e.name for e in p.einsums], p.outputs, {t.name: t for t in p.inputs})
    assert len(nodes(*region.trees)) == 62  # A, 1, the sum and 59 products


def region_of(text: str, **options):
    p = infer(parse(text))
    return fuse(p, "r", [e.name for e in p.einsums], p.outputs, {t.name: t for t in p.inputs}, **options)


def test_a_compressed_level_follows_all_levels_above_it():
    region = region_of("tensor A[3, 4, 5] (dense, dense, compressed)\nY[i, j, k] = A[i, j, k] * 2\noutput Y")
    assert edges(region) == {("i", "k"), ("j", "k")}


def test_a_pinned_result_orders_its_loops():
    text = "tensor A[3, 4]\ntensor Y[3, 4] csc\nY[i, j] = A[i, j] * 2\noutput Y"
    assert not edges(region_of(text))
    assert edges(region_of(text, pinned=["Y"])) == {("j", "i")}


def test_a_result_that_is_an_operand_takes_the_indices_of_its_view():
    region = region_of("tensor A[3, 4]\nT[a, b] = A[a, b] * 2\nY[i] = sum(k) T[i, k]\noutput T\noutput Y")
    assert {r.name: r.indices for r in region.results} == {"T": ("i", "k"), "Y": ("i",)}


def test_stacked_softmaxes_read_one_row():
    """Each level reads the row below it at three indices: without merging these would multiply."""
    lines = ["tensor A[3, 4] csr f64", "T0[i, j] = A[i, j] + 1"]
    for k in range(1, 12):
        lines += [f"m{k}[i] = max(j) T{k - 1}[i, j]", f"E{k}[i, j] = exp(T{k - 1}[i, j] - m{k}[i])"]
        lines += [f"T{k}[i, j] = E{k}[i, j] / (sum(l) E{k}[i, l])"]
    p = infer(parse("\n".join([*lines, "output T11"])))
    region = fuse(p, "stack", [e.name for e in p.einsums], p.outputs, {t.name: t for t in p.inputs})
    assert region.indices == ("i", "j") and len(reductions(*region.trees)) == 22


def residual(depth: int) -> Program:
    """Every layer reads the one before twice: at the rows of its neighbours and at its own."""
    lines = ["tensor A[9, 9] csr", "tensor X[9, 4] dense"]
    for k in range(depth):
        before = f"T{k - 1}" if k else "X"
        lines.append(f"T{k}[i, j] = (sum(k) A[i, k] * {before}[k, j]) + {before}[i, j]")
    return infer(parse("\n".join([*lines, f"output T{depth - 1}"])))


def whole(p: Program, merge: MergePolicy = "early") -> FusedRegion:
    return fuse(p, "all", [e.name for e in p.einsums], p.outputs, {t.name: t for t in p.inputs}, merge=merge)


def test_reuse_grows_linearly_where_views_merge():
    """A loop or two a layer, though the first layer is needed at 2^12 combinations of rows."""
    assert len(whole(residual(12)).indices) <= 2 + 2 * 12
    assert len(whole(residual(4), "never").indices) == 2 + 15


def test_reuse_without_end_is_refused():
    with pytest.raises(FusionError, match=r"region `all` would compute `T2` in 512 places"):
        whole(residual(12), "never")


def test_a_long_chain_is_inlined():
    lines = ["tensor A[3, 3]", "T0[i, j] = A[i, j] + 1"]
    lines += [f"T{k}[i, j] = relu(T{k - 1}[i, j])" for k in range(1, 300)]
    assert len(nodes(*whole(infer(parse("\n".join([*lines, "output T299"])))).trees)) == 302


@pytest.mark.parametrize(("body", "line"), [("X[i, h * 2 + d]", "Y[i, h, d]"), ("X[i, k]", "Y[i, k * 1 + l]")])
def test_reshapes_have_no_graph(body: str, line: str):
    p = infer(parse(f"tensor X[3, 4]\ntensor Y{[3, 2, 2] if 'h' in line else [3, 4]}\n{line} = {body}\noutput Y"))
    with pytest.raises(FusionError, match="`Y` reshapes a dimension"):
        fuse(p, "r", ["Y"], ["Y"], {t.name: t for t in p.inputs})


def test_a_cycle_names_its_edges_and_their_reasons():
    with pytest.raises(FusionError) as error:
        programs.fused("transpose")
    message = str(error.value)
    assert "A[i, j] is stored i before j (csr)" in message and "A[j, i] is stored j before i (csr)" in message
    assert "store the tensor dense: `--format A=dense`" in error.value.hint


def test_a_diagonal_is_refused():
    p = infer(parse("tensor A[3, 3] csr\nT[i, j] = A[i, j] * 2\ns[i] = T[i, i]\noutput s"))
    with pytest.raises(FusionError, match="repeats an index"):
        fuse(p, "d", ["T", "s"], ["s"], {t.name: t for t in p.inputs})


@pytest.mark.parametrize(
    ("chain", "message"),
    [
        ("j,k,i", "puts k before i, but A[i, k] is stored i before k (csr)"),
        ("i,k,x", "has no index `x`"),
        ("i,i,k", "names an index twice"),
    ],
)
def test_illegal_orders_say_why(chain, message):
    with pytest.raises(FusionError) as error:
        programs.fused("spmm", chain=tuple(chain.split(",")))
    assert message in str(error.value)


def test_an_illegal_order_lists_the_legal_ones():
    with pytest.raises(FusionError) as error:
        programs.fused("spmm", chain=("k", "i", "j"))
    assert error.value.hint == "legal orders: i,k,j"


def test_a_partial_order_of_the_user_is_kept():
    region = programs.fused("layer", chain=("j", "i"))
    assert all(o.index("j") < o.index("i") for o in enumerate_orders(region.constraints, region.indices))


def test_enumeration_is_complete_and_lexicographic():
    graph: nx.DiGraph[str] = nx.DiGraph([("i", "k")])
    graph.add_nodes_from("ijkl")
    orders = list(enumerate_orders(graph, "ijkl"))
    assert sorted(orders) == sorted(tuple(o) for o in nx.all_topological_sorts(graph))
    assert orders[0] == tuple(nx.lexicographical_topological_sort(graph)) and len(orders) == len(set(orders)) == 12


def test_candidates_are_bounded_repeatable_and_legal():
    graph: nx.DiGraph[str] = nx.DiGraph([("a", "b"), ("c", "d")])
    graph.add_nodes_from("abcdefgh")
    orders = candidate_orders(graph, "abcdefgh", 10)
    assert (
        len(set(orders)) == 10
        and orders == candidate_orders(graph, "abcdefgh", 10)
        and orders[0] == tuple(nx.lexicographical_topological_sort(graph))
    )
    assert all(o.index("a") < o.index("b") and o.index("c") < o.index("d") for o in orders)


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(cases())
def test_the_fused_program_means_the_same(case: Case):
    p = infer(case.program)
    try:
        region = fuse(p, "all", [e.name for e in p.einsums], p.outputs, {t.name: t for t in p.inputs})
    except FusionError:
        return  # an order cycle: a tensor stored one way and read the other
    verify_region(region)
    expected, actual = evaluate(p, case.arrays), evaluate(as_program(region), case.arrays)
    for name in p.outputs:
        np.testing.assert_allclose(actual[name], expected[name], rtol=1e-9, atol=1e-9)


def test_truth_values_of_64_bit_floats_are_no_such_floats():
    """Otherwise the exponential would have 64 bits where the comparison is a result of its own, and 32 where it is fused."""
    p = infer(parse("tensor A[3] f64\nT[i] = A[i] <= A[i]\nY[i] = exp(min(copy(T[i]), 2))\noutput Y"))
    region = fuse(p, "all", [e.name for e in p.einsums], p.outputs, {t.name: t for t in p.inputs})
    arrays = {"A": np.array([0.1, 0.2, 0.3])}
    alone, fused = evaluate(p, arrays)["Y"], evaluate(as_program(region), arrays)["Y"]
    assert alone.tolist() == fused.tolist() == [float(np.float32(np.e))] * 3


TWO_LOOPS = """
tensor T[6, 7, 9] dense
s[i] = sum(j, k) T[j, k, i]
r[i] = sum(j) where(s[j] == s[i], 1, 0)
output r
"""
PRODUCT = """
tensor T[9, 12] dense
tensor x[12] dense
s[i] = sum(k) T[i, k] * x[k]
r[i] = sum(j) where(s[j] == s[i], 1, 0)
output r
"""


@pytest.mark.parametrize(
    ("text", "shapes", "lanes"),
    [
        (TWO_LOOPS, {"T": (6, 7, 9)}, ()),
        (PRODUCT, {"T": (9, 12), "x": (12,)}, ()),
        (PRODUCT, {"T": (9, 12), "x": (12,)}, (("k", 2),)),
    ],
)
def test_a_sum_equals_itself_in_full_fusion(
    text: str, shapes: dict[str, tuple[int, ...]], lanes: tuple[tuple[str, int], ...]
) -> None:
    rng = np.random.default_rng(0)
    tensors = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    schedule = ff.Schedule(fuse_regions=("full",), parallel=lanes)
    run = ff.compile(parse(text), tensors=tensors, schedule=schedule).run()
    np.testing.assert_array_equal(run.outputs["r"], np.ones(9))


@pytest.mark.parametrize(
    ("reduction", "dtype", "refused"), [("sum", "f32", True), ("prod", "f32", True), ("max", "f32", False), ("sum", "i32", False)]
)
def test_only_reductions_that_round_are_refused(reduction: str, dtype: str, refused: bool) -> None:
    text = TWO_LOOPS.replace("s[i] = sum", f"s[i] = {reduction}").replace("dense", f"dense {dtype}")
    program = infer(parse(text))
    stored = {"T": program.declared["T"]}
    if refused:
        with pytest.raises(FusionError, match="region `full` compares `s` with itself"):
            fuse(program, "full", ["s", "r"], ["r"], stored, merge="never")
    else:
        assert fuse(program, "full", ["s", "r"], ["r"], stored, merge="never").repeated == {"s"}
