"""Regions that nobody named are divided where fusion would repeat too much of their work."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import fuseflow as ff
from fuseflow.einsum.parse import parse
from fuseflow.explain.fusion import explain_fusion
from fuseflow.lower import repetition
from fuseflow.schedule import Schedule
from fuseflow.schedule.region_size import RegionDivider

Model = tuple[nn.Module, tuple[torch.Tensor, ...]]


@pytest.fixture
def convolutions(monkeypatch: pytest.MonkeyPatch) -> Model:
    """Three convolutions, of which each repeats the one before. So few repeat less than the bound, which is lowered for them."""
    monkeypatch.setattr(repetition, "MOST_REPEATS", 0.25)
    torch.manual_seed(0)
    layers = [layer for _ in range(3) for layer in (nn.Conv2d(2, 2, 3), nn.ReLU())]
    return nn.Sequential(*layers), (torch.randn(1, 2, 8, 8),)


def test_a_region_that_repeats_too_much_is_halved(convolutions: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    fused = ff.compile(*convolutions, schedule=Schedule.fuse("full"))
    assert [region.name for region in fused.regions] == ["full-1", "full-2"]
    run = fused.run()
    assert run.check is not None and run.check.passed
    monkeypatch.setattr(repetition, "MOST_REPEATS", 100)
    whole = ff.compile(*convolutions, schedule=Schedule.fuse("full"))
    assert [region.name for region in whole.regions] == ["full"]
    assert whole.run().cycles > 2 * run.cycles


@pytest.mark.parametrize("count", range(2, 9))
def test_halves_are_never_empty(count: int) -> None:
    names = [f"T{n}" for n in range(count)]
    chain = [f"T{n}[i] = relu({'A' if n == 0 else f'T{n - 1}'}[i])" for n in range(count)]
    divider = RegionDivider(parse("\n".join(["tensor A[3]", *chain, f"output {names[-1]}"])))
    first, second = divider.halves(names)
    assert first and second and [*first, *second] == names


def test_the_report_says_why(convolutions: Model) -> None:
    fused = ff.compile(*convolutions, schedule=Schedule.fuse("full"))
    decisions = explain_fusion(fused.source, fused.schedule, fused.machine).decisions
    reasons = {d.why for d in decisions if d.regions[0] != d.regions[1]}
    assert reasons == {"one region would have too many loops of reductions, or repeat too much, so it is divided"}


def test_regions_that_the_user_named_or_ordered_stay_whole(convolutions: Model) -> None:
    alone = ff.compile(*convolutions, schedule=Schedule.fuse("none"))
    whole = Schedule.region("whole", *(einsum.name for einsum in alone.program.einsums)).fuse("whole")
    (region,) = ff.compile(*convolutions, schedule=whole).regions
    ordered = Schedule.fuse("full").order("full", region.fused.order)
    assert [region.name for region in ff.compile(*convolutions, schedule=ordered).regions] == ["full"]
