"""Units: which lanes operators run on, and which nodes are units at all."""

from __future__ import annotations

from fuseflow.ops import OPERATORS, REDUCERS
from fuseflow.resources.area import ARITHMETIC
from fuseflow.samml import nodes as n
from fuseflow.tile_ops import ALU_FUNCTIONS


def test_every_operator_runs_on_a_kind_of_lane() -> None:
    assert {row.unit for row in (*OPERATORS.values(), *REDUCERS.values(), *ALU_FUNCTIONS.values())} <= set(ARITHMETIC)


def test_only_a_root_is_a_source() -> None:
    assert [kind for kind in n.NODE_TYPES if kind.role == "source"] == [n.Root]
