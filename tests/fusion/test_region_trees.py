"""The nodes of trees that were renamed or expanded are those that a visit of them finds, in the same order."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings
from program_levels import selected
from random_programs import Case, planned, view_programs

from fuseflow.errors import FuseFlowError
from fuseflow.fusion.region_trees import RegionTrees
from fuseflow.fusion.tree import Tree, nodes
from fuseflow.lower.program import lower
from fuseflow.schedule import Schedule

visiting = RegionTrees.visiting


def test_known_nodes_are_those_that_a_visit_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    visits = 0

    def compared(trees: RegionTrees, known: Iterable[Tree]) -> RegionTrees:
        nonlocal visits
        visits += 1
        visited = visiting(trees, known)
        assert visited.nodes == nodes(*visited.trees)
        return visited

    monkeypatch.setattr(RegionTrees, "visiting", compared)

    @settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
    @given(planned() | view_programs())
    def check(case: Case) -> None:
        case = selected(case)
        with suppress(FuseFlowError):
            lower(case.program, Schedule.fuse("full"), case.tensors)

    check()
    assert visits > 100
