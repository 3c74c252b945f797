"""Renaming of trees: what names none of the renamed indices and tensors stays as it is."""

from __future__ import annotations

from fuseflow.fusion.tree import Operation, Reduction, Tree, TreeTable, View, nodes


def product(table: TreeTable) -> Tree:
    """sum(k) A[i, k] * relu(B[k, j]) + C[i, j]"""
    relu = table.op("relu", (table.view("B", ("k", "j")),))
    body = table.op("mul", (table.view("A", ("i", "k")), relu))
    return table.op("add", (table.reduction("sum", ("k",), ("i", "j"), body, "T"), table.view("C", ("i", "j"))))


def test_only_what_names_a_renamed_index_is_made_anew() -> None:
    table = TreeTable()
    before = product(table)
    assert isinstance(before, Operation)
    after = table.rename(before, {"k": "m"}, {})
    assert isinstance(after, Operation)
    total = after.args[0]
    assert isinstance(total, Reduction)
    assert [str(node) for node in nodes(after) if isinstance(node, View)] == ["A[i, m]", "B[m, j]", "C[i, j]"]
    assert (total.over, after.args[1]) == (("m",), before.args[1])
    assert table.rename(before, {"q": "m"}, {}) is before


def test_a_view_in_the_memo_is_replaced_below_what_reads_its_tensor() -> None:
    table = TreeTable()
    before, scaled = product(table), table.op("neg", (table.view("D", ("k", "j")),))
    memo: dict[Tree, Tree] = {table.view("B", ("k", "j")): scaled}
    after = table.rename(before, {}, memo, replaced="B")
    assert [str(node) for node in nodes(after) if isinstance(node, View)] == ["A[i, k]", "D[k, j]", "C[i, j]"]


def test_nodes_of_another_table_are_all_made_anew() -> None:
    before = product(TreeTable())
    memo: dict[Tree, Tree] = {}
    after = TreeTable().rename(before, {"q": "m"}, memo)
    assert memo.keys() == set(nodes(before))
    assert set(nodes(after)).isdisjoint(nodes(before))
