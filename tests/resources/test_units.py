"""The table of units: a row for each primitive, and a kind of lane for each operator."""

from __future__ import annotations

import pytest

from fuseflow.errors import GraphError
from fuseflow.ops import OPERATORS, REDUCERS
from fuseflow.resources.units import ARITHMETIC, UNITS, unit_kind
from fuseflow.samml import nodes as n
from fuseflow.samml.primitives import NODE_TYPES
from fuseflow.tile_ops import ALU_FUNCTIONS


def test_every_primitive_has_a_row() -> None:
    assert set(UNITS) == set(NODE_TYPES)


def test_a_primitive_computes_exactly_if_it_is_an_operator() -> None:
    nodes = {
        n.Alu: n.Alu("a", (), "add", ()),
        n.Reduce: n.Reduce("r", (), "sum"),
        n.Accumulate: n.Accumulate("c", (), "sum", 1),
        n.Select: n.Select("s", (), 1, 0, 1),
        n.Permute: n.Permute("p", (), (0, 1)),
        n.Repeat: n.Repeat("q", ()),
    }
    assert {kind for kind, node in nodes.items() if node.operator} == {kind for kind in nodes if UNITS[kind].kind == "operator"}


def test_every_operator_runs_on_a_kind_of_lane() -> None:
    assert {row.unit for row in (*OPERATORS.values(), *REDUCERS.values(), *ALU_FUNCTIONS.values())} <= set(ARITHMETIC)


def test_a_primitive_without_a_row_is_refused() -> None:
    class Unlisted(n.Node):
        op = "unlisted"

    with pytest.raises(GraphError, match="`unlisted` has no row in the table of units"):
        unit_kind(Unlisted("u", ()))
