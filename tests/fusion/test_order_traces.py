"""Orders of one trace make the same table: what a region computes, and what it is refused for, follows from the trace alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import combinations, islice

import pytest
from hypothesis import HealthCheck, given, settings
from program_levels import ordered
from random_programs import Case, planned

from fuseflow.einsum.parse import parse
from fuseflow.errors import FuseFlowError
from fuseflow.fusion import FusedRegion
from fuseflow.fusion.order_candidates import candidate_orders, enumerate_orders
from fuseflow.fusion.refusal import Refusal, attempt
from fuseflow.fusion.region import LoopDependence
from fuseflow.lower.program import lower
from fuseflow.schedule import Schedule
from fuseflow.table import build_table

BESIDE = """
tensor A[4, 5]
tensor B[4, 6]
m[i] = max(k) A[i, k]
s[i] = sum(j) B[i, j]
Y[i] = m[i] / s[i]
output Y
"""
INSIDE = """
tensor A[4, 5]
tensor B[5, 6]
T[k] = sum(j) B[k, j]
Y[i] = sum(k) A[i, k] * T[k]
output Y
"""


def region_of(text: str) -> FusedRegion:
    _, regions = lower(parse(text), Schedule.fuse("full"), {})
    return regions[-1].fused


def dependent_pairs(dependence: LoopDependence) -> set[str]:
    return {u + v for u, v in combinations(sorted(dependence.bits), 2) if dependence.dependent[u] & dependence.bits[v]}


def test_loops_of_two_reductions_beside_each_other_do_not_depend_on_each_other() -> None:
    assert dependent_pairs(region_of(BESIDE).dependence) == {"ij", "ik"}


def test_loops_depend_on_those_of_a_reduction_inside_of_their_nest() -> None:
    assert dependent_pairs(region_of(INSIDE).dependence) == {"ij", "ik", "jk"}


def test_orders_that_differ_in_independent_loops_alone_are_of_one_trace() -> None:
    trace = region_of(BESIDE).dependence.trace
    assert trace(("i", "j", "k")) == trace(("i", "k", "j")) != trace(("j", "i", "k"))


def tables(region: FusedRegion) -> Iterator[tuple[object, object]]:
    """The traces of some orders of a region, with their tables but for the orders themselves, or whether they are refused."""
    if region.copies:  # copies that are not needed in the order that was chosen are gone
        return
    orders = candidate_orders(region.constraints, region.indices, 12)
    near = islice(enumerate_orders(region.constraints, region.indices), 60)
    for order in dict.fromkeys((*orders, *near)):
        table = attempt(build_table, replace(region, order=order))
        refused = isinstance(table, Refusal)
        yield region.dependence.trace(order), refused or ({*table.nodes}, table.writes, table.tensors, table.outputs, table.loops)


@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(planned())
def test_orders_of_one_trace_make_the_same_table(case: Case) -> None:
    with suppress(FuseFlowError):
        for region in ordered(case)[-1]:
            first: dict[object, object] = {}
            for trace, table in tables(region.fused):
                assert first.setdefault(trace, table) == table


def test_a_dependence_that_forgets_what_is_inside_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    region = region_of(INSIDE)
    monkeypatch.setattr(LoopDependence, "trace", lambda self, order: tuple(v for v in order if v in "ik"))
    by_trace: dict[object, list[object]] = {}
    for trace, table in tables(region):
        by_trace.setdefault(trace, []).append(table)
    assert any(table != same[0] for same in by_trace.values() for table in same)
