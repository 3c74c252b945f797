"""The choice of a schedule by samples: what is sampled decides, and no sampled number is called an exact one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from memories import without_refresh

import fuseflow as ff
from fuseflow.autoscheduler.autoscheduler import ScheduleChoice, choose_schedule
from fuseflow.einsum.parse import parse
from fuseflow.errors import FuseFlowError
from fuseflow.frontend.model_spec import ModelSpec
from fuseflow.frontend.sources import Source, load
from fuseflow.sampling.sample_request import Sample
from fuseflow.schedule import Schedule
from fuseflow.sim import load_machine

PAPER = Path(__file__).parents[2] / "models" / "paper"
AUTO, RDA = Schedule.fuse("auto"), without_refresh()


@pytest.fixture(scope="module")
def gcn() -> Source:
    return load(ModelSpec(PAPER / "gcn.py", options={"small": "true"}))


@pytest.fixture(scope="module")
def simulated(gcn: Source) -> ScheduleChoice:
    return choose_schedule(gcn, AUTO, RDA, top=2)


def test_samples_of_all_choose_what_simulations_choose(gcn: Source, simulated: ScheduleChoice) -> None:
    sampled = choose_schedule(gcn, AUTO, RDA, top=2, sample=Sample(fraction=1))
    exact = {t.name: t.cycles for t in simulated.partitions if t.cycles is not None}
    assert {t.name: t.sampled.estimate for t in sampled.partitions if t.sampled is not None} == exact
    assert {"none", "layerwise", "full"} < exact.keys()
    assert [t.name for t in sampled.partitions if t.chosen] == [t.name for t in simulated.partitions if t.chosen]


def layer() -> Source:
    """A layer on a graph that is large enough to be sampled."""
    rng = np.random.default_rng(0)
    tensors = {
        "A": rng.random((800, 800)) * (rng.random((800, 800)) < 0.01),
        "X": rng.random((800, 8)),
        "W": rng.random((8, 5)),
    }
    text = "tensor A[800, 800] csr\ntensor X[800, 8]\ntensor W[8, 5]\n"
    text += "T[i, j] = sum(k) A[i, k] * X[k, j]\nY[i, h] = sum(j) T[i, j] * W[j, h]\noutput Y"
    return ff.compile(parse(text), tensors=tensors, machine=RDA).source


def test_the_sampled_number_decides_and_is_no_exact_one() -> None:
    choice = choose_schedule(layer(), AUTO, RDA, top=2, sample=Sample(error=0.3, shortest=300))
    measured = [t for t in choice.partitions if t.sampled is not None]
    assert len(measured) == 2 and all(t.cycles is None for t in choice.partitions)
    assert any(t.sampled is not None and t.sampled.half_width > 0 for t in measured), "no region is long enough to be sampled"
    (chosen,) = (t for t in measured if t.chosen)
    assert chosen.confirmed == min(t.confirmed for t in measured if t.confirmed is not None)
    assert chosen.to_json()["cycles"] is None and set(chosen.to_json()["sampled_cycles"]) == {
        "estimate",
        "low",
        "high",
        "confidence",
    }


def test_orders_are_chosen_by_their_estimates(gcn: Source) -> None:
    choice = choose_schedule(gcn, AUTO.lower(order_policy="auto"), RDA, top=1, sample=Sample(fraction=1))
    assert choice.orders and all(order.cycles is None for order in choice.orders)


def test_what_cannot_be_sampled_is_refused(gcn: Source) -> None:
    with pytest.raises(FuseFlowError, match="FIFOs of machine `comal` are unbounded"):
        choose_schedule(gcn, AUTO, load_machine("comal"), top=1, sample=Sample(fraction=1))
