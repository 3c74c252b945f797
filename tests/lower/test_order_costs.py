"""The costs of orders are exactly those of the graphs, which are made here one by one to compare. A bound is never above the cost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import programs
import pytest
from hypothesis import HealthCheck, given, settings
from program_levels import compiled
from random_programs import Case, planned

from fuseflow.costs import Estimate
from fuseflow.einsum.parse import parse
from fuseflow.errors import FuseFlowError
from fuseflow.frontend.model_spec import ModelSpec
from fuseflow.frontend.sources import load
from fuseflow.fusion import FusedRegion, fusion_search
from fuseflow.fusion.order_search import CostBound
from fuseflow.fusion.refusal import Refusal, attempt
from fuseflow.lower.graphs import region_graph
from fuseflow.lower.order_costs import OrderCosts, PricedCells
from fuseflow.lower.program import lower
from fuseflow.samml.nodes import Port, Primitive
from fuseflow.schedule import Schedule
from fuseflow.table import emit

LARGE = 1e300
"""A limit that no cost reaches: everything is counted, and nothing is given up."""
MODELS = Path(__file__).resolve().parents[2] / "models"


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Compare every cost with that of the graph, and the nodes that are given names at the end with those of a table that is made anew. The
    list has the orders that were compared.
    """
    orders: list[str] = []
    cost, needed = OrderCosts.cost, PricedCells.needed

    def checked(self: OrderCosts, region: FusedRegion, limit: float = math.inf) -> Estimate | CostBound:
        expected, bound = attempt(region_graph, self.state, region), attempt(cost, self, region, limit)
        shared = attempt(cost, self, region, LARGE)
        orders.append(",".join(region.order))
        if isinstance(expected, Refusal):
            assert isinstance(shared, Refusal) and str(shared.error) == str(expected.error)
            raise expected.error
        assert shared == expected.cost, orders[-1]
        if made := self.table(region):
            assert emit(made.nodes) == expected.own, orders[-1]
            assert made.cost == expected.cost and made.written_statistics == expected.written_statistics, orders[-1]
        assert not isinstance(bound, Refusal)
        assert limit < bound.rank <= shared.rank if isinstance(bound, CostBound) else bound == shared, orders[-1]
        return bound

    def counted(self: PricedCells, writes: Sequence[Primitive]) -> int:
        bits = needed(self, writes)
        assert not self.counted & ~bits, "the bound counts a node that the table does not need"
        return bits

    monkeypatch.setattr(OrderCosts, "cost", checked)
    monkeypatch.setattr(PricedCells, "needed", counted)
    return orders


@pytest.mark.parametrize("name", programs.TEXTS)
def test_every_order_of_a_small_program_costs_what_its_graph_costs(name: str, compared: list[str]) -> None:
    try:
        lower(parse(programs.TEXTS[name]), Schedule.fuse("full"), {})
    except FuseFlowError:
        assert compared, "a program is refused in all its orders, not before"
    assert compared


@pytest.mark.parametrize("model", ["gcn", "graphsage", "sae"])
def test_every_order_of_a_model_costs_what_its_graph_costs(model: str, compared: list[str]) -> None:
    source = load(ModelSpec(MODELS / "paper" / f"{model}.py", options={"small": True}))
    lower(source.program, Schedule.fuse("full"), source.tensors)
    assert len(compared) > 1


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None)
@given(planned())
def test_every_order_of_a_random_program_costs_what_its_graph_costs(compared: list[str], case: Case) -> None:
    with suppress(FuseFlowError):  # that orders are refused alike is compared, too
        compiled(case)


def test_a_cost_that_leaves_a_node_out_is_noticed(compared: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def inputs_alone(self: PricedCells, writes: Sequence[Primitive]) -> int:
        return sum(1 << int(name) for name in {port.node for node in writes for port in node.inputs})

    monkeypatch.setattr(PricedCells, "needed", inputs_alone)
    with pytest.raises(AssertionError):
        lower(parse(programs.TEXTS["layer"]), Schedule.fuse("full"), {})


def test_a_name_that_another_order_wanted_is_noticed(compared: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def used(self: PricedCells, name: str, wanted: str) -> None:
        self.used.setdefault(name, self.nodes[name].name)

    monkeypatch.setattr(PricedCells, "use", used)
    with pytest.raises(AssertionError):
        lower(parse(SEEN_TWICE), Schedule.fuse("full"), {})


def test_a_bound_that_counts_what_may_be_left_out_is_noticed(compared: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    added = PricedCells._added

    def counted(self: PricedCells, node: Primitive) -> tuple[Port, ...]:
        ports = added(self, node)
        self.needs(ports[0])
        return ports

    monkeypatch.setattr(PricedCells, "_added", counted)
    source = load(ModelSpec(MODELS / "paper" / "graphsage.py", options={"small": True}))
    with pytest.raises(AssertionError):
        lower(source.program, Schedule.fuse("full"), source.tensors)


SEEN_TWICE = """tensor A[3, 3] csr
    Y[i, j] = sum(k) A[i, k] * A[j, k]
    output Y"""
"""The outermost level of A is that of i or of j, whichever comes first."""


MADE_AGAIN = """tensor A[3, 4]
    m[j]    = max(k) A[k, j]
    E[i, j] = exp(A[i, j] - m[j])
    Y[i, j] = E[i, j] / (sum(l) E[l, j])
    output Y"""


def test_what_is_made_again_in_an_inner_nest_is_needed_outside_of_it_too(
    compared: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sum over l runs outside of j, which is left of the maximum, so that it makes another maximum: the first is that of E."""
    monkeypatch.setattr(fusion_search, "MERGE_POLICIES", ("never",))
    _, (region,) = lower(parse(MADE_AGAIN), Schedule.fuse("full"), {})
    assert region.fused.compared.candidate(("k", "l", "i", "j")).cost is not None
    assert "k,l,i,j" in compared


ALIGNED = """tensor A1[2, 3, 3, 2] (compressed, compressed, dense, dense) order (2, 0, 1, 3)
    tensor A2[3, 3] csr
    T0[j, p, x, q] = sum(i) A1[q, j, i, p] * A2[x, i]
    T1[i, k, q]    = sum(r) T0[k, r, i, q]
    T2[l, r]       = (sum(k) T1[k, l, r]) / 3
    T3[k, l, r]    = T1[k, l, r] - T2[l, r]
    T4[l, r]       = sum(k) T3[k, l, r] * T3[k, l, r]
    output T2, T4"""


def test_coordinates_that_are_aligned_beside_values_are_not_counted(compared: list[str]) -> None:
    """The innermost loop of T1 is a level of T0 that was aligned to the loops outside it. T1 folds the values, which were aligned alike,
    and nothing reads the coordinates."""
    lower(parse(ALIGNED), Schedule.fuse("full"), {})
    assert compared
