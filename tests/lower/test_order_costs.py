"""The costs of orders are exactly those of the graphs, which are made here one by one to compare."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import programs
import pytest
from hypothesis import HealthCheck, given, settings
from program_levels import compiled
from random_programs import Case, planned

from fuseflow.einsum.parse import parse
from fuseflow.errors import FuseFlowError
from fuseflow.estimate import Estimate
from fuseflow.frontend.model_spec import ModelSpec
from fuseflow.frontend.sources import load
from fuseflow.fusion import FusedRegion
from fuseflow.fusion.refusal import Refusal, attempt
from fuseflow.lower.graphs import region_graph
from fuseflow.lower.order_costs import OrderCosts, SharedNodes
from fuseflow.lower.program import lower
from fuseflow.schedule import Schedule

MODELS = Path(__file__).resolve().parents[2] / "models"


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Compare every cost with that of the graph. The list has the orders that were compared."""
    orders: list[str] = []
    cost = OrderCosts.cost

    def checked(self: OrderCosts, region: FusedRegion) -> Estimate:
        expected, shared = attempt(region_graph, self.state, region), attempt(cost, self, region)
        orders.append(",".join(region.order))
        if isinstance(expected, Refusal):
            assert isinstance(shared, Refusal) and str(shared.error) == str(expected.error)
            raise expected.error
        assert shared == expected.cost, orders[-1]
        return expected.cost

    monkeypatch.setattr(OrderCosts, "cost", checked)
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
    costed = SharedNodes._costed

    def without_upstream(self: SharedNodes, name: str, node: object, *rest: object) -> object:
        made = costed(self, name, node, *rest)  # type: ignore[arg-type]
        return type(made)(made.bit, made.bit, made.cost)

    monkeypatch.setattr(SharedNodes, "_costed", without_upstream)
    with pytest.raises(AssertionError):
        lower(parse(programs.TEXTS["layer"]), Schedule.fuse("full"), {})
