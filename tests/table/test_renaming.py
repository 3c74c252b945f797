"""The graph of a table under other names is what the table gives that has them. Where names do not tell, there is none."""

from __future__ import annotations

from dataclasses import replace

import programs

from fuseflow.einsum.format_inference import infer
from fuseflow.einsum.parse import parse
from fuseflow.fusion.fuse import fuse
from fuseflow.fusion.order_candidates import enumerate_orders
from fuseflow.samml.nodes import Drop
from fuseflow.table import FusionTable, build_table, emit
from fuseflow.table.renaming import TableNames, renamed_graph


def table_of(text: str) -> FusionTable:
    program = infer(parse(text))
    region = fuse(program, "g", [e.name for e in program.einsums], program.outputs, {t.name: t for t in program.inputs})
    return build_table(replace(region, order=next(enumerate_orders(region.constraints, region.indices))))


def same(table: FusionTable) -> TableNames:
    names = {tensor.name: tensor.name for tensor in table.tensors}
    return TableNames(table.region, names, {output: output for output in table.outputs})


def test_the_same_names_give_the_same_graph() -> None:
    for name in ("spmm", "axw", "hoist", "row_max"):
        table = programs.table(name)
        assert renamed_graph(table, emit(table), same(table)) == emit(table)


def test_nodes_that_then_want_one_name_are_numbered() -> None:
    text = programs.TEXTS["spmm"]
    table, wanted = table_of(text), table_of(text.replace("X[", "rep["))
    names = same(table)
    renamed = renamed_graph(table, emit(table), replace(names, tensors={**names.tensors, "X": "rep"}))
    assert renamed == emit(wanted)
    assert renamed is not None
    assert "rep_j'2" in renamed.by_name
    assert renamed.structure == replace(renamed).structure  # which is computed again


def test_tensors_are_declared_in_the_order_of_their_new_names() -> None:
    table = programs.table("spmm")
    names = same(table)
    renamed = renamed_graph(table, emit(table), replace(names, tensors={**names.tensors, "A": "Z"}))
    assert renamed is not None
    assert [tensor.name for tensor in renamed.tensors] == ["X", "Y", "Z"]


def test_a_drop_that_may_be_called_after_an_index_or_a_result_is_left_to_the_table() -> None:
    table = table_of("tensor A[4, 4] csr\nj[i, j] = keep(threshold 0.5) A[i, j]\noutput j")
    assert any(isinstance(node, Drop) for node in table.nodes)
    assert renamed_graph(table, emit(table), same(table)) is None


def test_a_quote_in_a_name_is_left_to_the_table() -> None:
    table = programs.table("spmm")
    names = same(table)
    assert renamed_graph(table, emit(table), replace(names, tensors={**names.tensors, "X": "X'2"})) is None
