"""Algorithm 2: tables as the lowering contract's worked examples print them, and the graphs that come out."""

from __future__ import annotations

from dataclasses import replace

import programs
import pytest

from fuseflow.einsum.format_inference import infer
from fuseflow.einsum.parse import parse
from fuseflow.errors import FusionError
from fuseflow.fusion import fuse
from fuseflow.samml.nodes import Accumulate, Alu, Drop, Join, Load, Locate, Port, Range, Reduce, Scan, WriteLevel
from fuseflow.samml.text import show as show_graph
from fuseflow.samml.verify import verify
from fuseflow.table import build_table, emit
from fuseflow.table.table import show, show_steps


@pytest.mark.parametrize(("name", "order"), programs.ORDERED)
def test_printed_table_and_graph(name, order, golden):
    graph = programs.graph(name, order)
    verify(graph)
    golden(f"table/{name}_{order.replace(',', '')}.txt", show(programs.table(name, order)) + "\n" + show_graph(graph))


def ops(graph, kind):
    return [n for n in graph.nodes if isinstance(n, kind)]


def test_spmm_in_order_ikj_accumulates_rows():
    graph = programs.graph("spmm", "i,k,j")
    (acc,) = ops(graph, Accumulate)
    assert acc.order == 1 and not ops(graph, Reduce)
    assert [n.tensor for n in ops(graph, Locate)] == ["X"]  # X's dense rows are located, not intersected


def test_the_mask_prunes_the_inner_product():
    graph = programs.graph("sddmm", "i,j,k")
    assert [n.tensor for n in ops(graph, Scan)] == ["M", "M", "Q"]  # only stored pairs (i, j) reach the loop over k
    assert not ops(graph, Join)


def test_a_producer_is_recomputed_inside_its_consumer():
    graph = programs.graph("layer", "i,k,l,j")
    assert len(ops(graph, Accumulate)) == 2
    x = next(n for n in ops(graph, Scan) if n.tensor == "X")
    assert not x.sequential  # reached by location, once for every (i, k)


def test_equal_views_are_loaded_once():
    graph = programs.graph("masked_softmax", "i,j")
    assert [n.tensor for n in ops(graph, Load)] == ["M", "D"]
    assert {f"{e.node}.{e.input}" for e in graph.fiber_fifos} == {"rep_j'2.1", "sub.0", "rep_j'3.1", "div.0"}


def test_absent_entries_count_where_the_identity_is_another():
    """max over a row of a compressed tensor with implicit value 0: every coordinate is visited."""
    graph = programs.graph("row_max")
    assert ops(graph, Range) and ops(graph, Join)[0].kind == "left"


def test_a_dense_level_above_a_compressed_one_is_filled():
    """Row k of Y exists for every k although the intersection leaves rows out."""
    graph = programs.graph("rows")
    assert [n.op for n in graph.nodes].count("align") == 2
    assert [n.level for n in ops(graph, WriteLevel)] == [0, 1]


def test_an_enclosed_loop_is_refused_with_its_names_of():
    with pytest.raises(FusionError, match=r"reads T\[i, j\] inside loop l"):
        programs.graph("enclosed", "k,i,l,j")


def test_hoisting_runs_an_operator_outside_the_loops_it_lacks():
    graph = programs.graph("hoist")
    types = graph.types()
    exp = next(n for n in ops(graph, Alu) if n.function == "exp")
    assert types[exp.inputs[0]].depth == 1


@pytest.mark.parametrize(("body", "implicit"), [("where(A[i] == 0, -inf, A[i])", "-inf"), ("A[i] + 0.5", "0.5")])
def test_an_integer_result_has_an_integer_for_its_absent_entries(body: str, implicit: str):
    """A program that declares such a result is refused before. A region that is made by hand is refused here."""
    p = infer(parse(f"tensor A[3] csf f64\ntensor Y[3] csf f64\nY[i] = {body}\noutput Y"))
    region = fuse(p, "r", ["Y"], ["Y"], {t.name: t for t in p.inputs})
    (result,) = region.results
    integers = replace(region, order=("i",), results=(replace(result, tensor=replace(result.tensor, dtype="i64")),))
    with pytest.raises(FusionError, match=f"`Y` is declared i64; where its operands are not stored it is {implicit}"):
        build_table(integers)


def lowered(text: str, order: str):
    p = infer(parse(text))
    region = fuse(p, "r", [e.name for e in p.einsums], p.outputs, {t.name: t for t in p.inputs}, merge="never")
    return emit(build_table(replace(region, order=tuple(order.split(",")))))


def test_a_reduction_runs_outside_a_loop_that_it_lacks():
    """Rule L4: s[i] is a value before loop j starts, not computed again for every j."""
    text = "tensor A[3, 4] csf\ntensor B[3, 5] csf\ns[i] = sum(k) B[i, k]\nY[i, j] = A[i, j] * s[i]\noutput Y"
    graph = lowered(text, "i,k,j")
    (reduce,) = ops(graph, Reduce)
    assert graph.types()[reduce.inputs[0]].depth == 2


def test_a_producer_with_a_level_left_is_carried_into_a_loop_that_it_lacks():
    """Rule L4: columns are summed over rows, then read row by row: the sums are made again inside every row."""
    graph = lowered("tensor A[3, 4]\ns[j] = sum(k) A[k, j]\nY[i, j] = A[i, j] - s[j]\noutput Y", "k,i,j")
    (accumulate,) = ops(graph, Accumulate)
    assert graph.types()[accumulate.inputs[0]].depth == 2


def test_a_producer_is_made_again_in_a_nest_that_runs_outside_its_levels():
    """Rule L6: the sum over columns runs loop l outside loop j, which is what is left of the maximum."""
    text = """
        tensor A[3, 4]
        m[j] = max(k) A[k, j]
        E[i, j] = exp(A[i, j] - m[j])
        Y[i, j] = E[i, j] / (sum(l) E[l, j])
        output Y
    """
    found = ops(lowered(text, "k,l,i,j"), Accumulate)
    assert sorted(node.function for node in found) == ["max", "max", "sum"]


def test_a_dense_level_below_an_absent_row_is_scanned_not_located():
    text = "tensor A[3, 4] (compressed, dense)\ntensor B[3, 4] csf\nY[i, j] = A[i, j] + B[i, j]\noutput Y"
    assert not ops(lowered(text, "i,j"), Range) and not ops(lowered(text, "i,j"), Locate)


def test_the_steps_of_the_table_end_in_the_table(golden):
    table = programs.table("spmm", "i,k,j")
    assert table.after(0) == {} and table.after(len(table.steps)) == table.columns
    assert [step.title for step in table.steps][:3] == ["Y: loop i", "Y: loop k", "Y: loop j"]
    golden("table/spmm_steps.txt", show_steps(table))


def test_a_compressed_result_has_no_coordinates_of_nothing():
    """Rows of an inner join may be empty: they are dropped where rows are compressed, and cannot be where they are dense."""
    assert any(isinstance(n, Drop) for n in programs.graph("axw").nodes)
    assert not any(isinstance(n, Drop) for n in programs.graph("spmm").nodes)


def test_dense_levels_scanned_and_joined_instead_of_located():
    located = emit(build_table(programs.fused("sddmm", "i,j,k")))
    joined = emit(build_table(replace(programs.fused("sddmm", "i,j,k"), locate=False)))
    verify(joined)
    count = lambda graph, kind: sum(isinstance(n, kind) for n in graph.nodes)  # noqa: E731
    assert count(located, Locate) == 3 and count(located, Join) == 0
    assert count(joined, Locate) == 0 and count(joined, Join) == 3


def in_order(statements, order, *, rescan):
    """The graph of a program that is fused as one region, whose outermost levels are kept unless it says `rescan`."""
    program = infer(parse(statements))
    fused = fuse(program, "all", [e.name for e in program.einsums], program.outputs, {t.name: t for t in program.inputs})
    graph = emit(build_table(replace(fused, order=tuple(order.split(",")), rescan=rescan)))
    verify(graph)
    return graph


PRODUCT = "program p\ntensor A[9, 9] dcsr\ntensor B[9, 9] dcsr\ntensor Y[9, 9] dcsr\nY[i, j] = sum(k) A[i, k] * B[k, j]\noutput Y"


def names_of(graph, kind):
    return [n.name for n in ops(graph, kind)]


def test_an_outermost_level_is_kept_where_an_intersection_looks_it_up():
    """B.0 would be scanned again for every row of A. Its locate is read once, and the coordinates without a reference leave."""
    kept, every = (in_order(PRODUCT, "i,k,j", rescan=rescan) for rescan in (False, True))
    assert names_of(kept, Locate) == ["B_k.loc"] and "B_k" not in names_of(kept, Scan) and "drop_k" in names_of(kept, Drop)
    assert names_of(every, Locate) == [] and "B_k" in names_of(every, Scan)


def test_an_outermost_level_is_not_kept_where_it_decides_what_is_visited():
    """A union visits what either side has, and the first loop scans a level once anyway."""
    union = "program p\ntensor x[5] dense\ntensor A[9] csf\ntensor B[9] csf\nY[i] = x[i] * (sum(j) A[j] + B[j])\noutput Y"
    kept, every = (in_order(union.replace("A[j] + B[j]", "(x[i] * A[j] + B[j])"), "i,j", rescan=r) for r in (False, True))
    assert show_graph(kept) == show_graph(every)
    first = "program p\ntensor A[9] csf\ntensor B[9] csf\ntensor Y[9] csf\nY[i] = A[i] * B[i]\noutput Y"
    assert names_of(in_order(first, "i", rescan=False), Locate) == []


def test_of_two_outermost_levels_one_says_which_coordinates_are_looked_up():
    text = "program p\ntensor x[5] dense\ntensor A[9] csf\ntensor B[9] csf\ntensor Y[5, 9] csr\nY[i, j] = x[i] * A[j] * B[j]\noutput Y"
    graph = in_order(text, "i,j", rescan=False)
    assert names_of(graph, Locate).count("B_j.loc") == 1 and "A_j" in names_of(graph, Scan) and "B_j" not in names_of(graph, Scan)


def test_a_level_that_is_scanned_for_others_is_not_kept_as_well():
    """A says which j there are, brings what B has beside itself, and is then intersected with C."""
    tensors = "".join(f"tensor {name}[9] csf\n" for name in "ABC")
    text = f"program p\ntensor x[5] dense\n{tensors}Y[i, j] = x[i] * (A[j] * (B[j] + 1)) * C[j]\noutput Y"
    graph = in_order(text, "i,j", rescan=False)
    assert [name for name in names_of(graph, Locate) if "_j" in name] == ["B_j.loc", "C_j.loc"]
    assert "A_j" in names_of(graph, Scan)


def test_repeated_references_are_loaded_where_they_are_used():
    """The published access counts: a value is loaded once for every use, not repeated after one load."""
    region = programs.fused("spmm", "i,k,j")
    early, late = (emit(build_table(replace(region, repeat=r))) for r in ("reference", "value"))
    depth = lambda graph: {n.tensor: graph.types()[Port(n.name)].depth for n in graph.nodes if isinstance(n, Load)}  # noqa: E731
    assert depth(late) == {"A": 2, "X": 3} and depth(early) == {"A": 3, "X": 3}
