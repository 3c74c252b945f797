"""The table of SparTA that is read from the operators: a cell that is another is seen."""

from __future__ import annotations

import copy

import sparta_table2


def test_a_cell_that_is_another_is_seen():
    data = copy.deepcopy(sparta_table2.collect())
    data["mul"]["0?"]["known"] = "unknown"
    assert [check.holds for check in sparta_table2.checks(data)] == [False]
