"""Regions that nobody named are divided where fusion would repeat too much of their work."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import fuseflow as ff
from fuseflow.einsum.parse import parse
from fuseflow.errors import FusionError
from fuseflow.explain.fusion import explain_fusion
from fuseflow.fusion.inline import Inliner
from fuseflow.lower import program
from fuseflow.schedule import Schedule
from fuseflow.schedule.region_size import MOST_PLACES, RegionDivider

Model = tuple[nn.Module, tuple[torch.Tensor, ...]]


@pytest.fixture
def convolutions(monkeypatch: pytest.MonkeyPatch) -> Model:
    """Three convolutions, of which each repeats the one before. So few repeat less than the bound, which is lowered for them."""
    monkeypatch.setattr(program, "MOST_REPEATS", 0.25)
    torch.manual_seed(0)
    layers = [layer for _ in range(3) for layer in (nn.Conv2d(2, 2, 3), nn.ReLU())]
    return nn.Sequential(*layers), (torch.randn(1, 2, 8, 8),)


def test_a_region_that_repeats_too_much_is_halved(convolutions: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    fused = ff.compile(*convolutions, schedule=Schedule.fuse("full"))
    assert [region.name for region in fused.regions] == ["full-1", "full-2"]
    run = fused.run()
    assert run.check is not None and run.check.passed
    monkeypatch.setattr(program, "MOST_REPEATS", 100)
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


class Inverse(nn.Module):
    """The approximate inverse of a matrix, in steps as Nystroem attention takes them: each reads the one before twelve times."""

    def __init__(self, steps: int) -> None:
        super().__init__()
        self.steps = steps

    def forward(self, k: torch.Tensor) -> torch.Tensor:
        one, z = torch.eye(4), k.T / k.abs().sum() ** 2
        for _ in range(self.steps):
            kz = k @ z
            z = 0.25 * z @ (13 * one - kz @ (15 * one - kz @ (7 * one - kz)))
        return z


class Powers(nn.Module):
    """Squares of squares: every result is read at two places."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(8):
            x = x @ x / 4
        return x


class Gram(nn.Module):
    """Products of each result with its Gram matrix."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(5):
            x = torch.tanh(x @ x.T) @ x
        return x


class NewtonSchulz(nn.Module):
    """The iteration that makes a matrix orthogonal, as the optimizer Muon takes it."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x / x.norm()
        for _ in range(4):
            gram = x @ x.T
            x = 3.4445 * x + (-4.775 * gram + 2.0315 * gram @ gram) @ x
        return x


@pytest.mark.parametrize("fuse", ["none", "full"])
@pytest.mark.parametrize("model", [Inverse(5), Powers(), Gram(), NewtonSchulz()], ids=lambda model: type(model).__name__)
def test_an_iteration_compiles_at_every_cut(model: nn.Module, fuse: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Five steps of the inverse were refused, since a product would be computed in 768 places, and four took 14 s."""
    most = list[int]()
    expand = Inliner.expand
    monkeypatch.setattr(Inliner, "expand", lambda self, fused, e: (expand(self, fused, e), most.append(self.most_places))[0])
    torch.manual_seed(0)
    compiled = ff.compile(model, (torch.randn(4, 4) / 2,), schedule=Schedule.fuse(fuse))
    if fuse == "full":
        assert 1 < len(compiled.regions) <= 5 and set(most) == {MOST_PLACES}


def test_a_notice_says_why_a_region_is_divided() -> None:
    torch.manual_seed(0)
    compiled = ff.compile(Powers(), (torch.randn(4, 4) / 2,), schedule=Schedule.fuse("full"))
    assert "region `full` would compute `div_3` in 32 places, so it is divided" in compiled.notices
    run = compiled.run()
    assert run.check is not None and run.check.passed


def test_twice_as_many_steps_have_twice_as_many_searches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every attempt at a region ends after a bounded number of views, and all regions that are too crowded are divided at once."""
    expanded = list[int]()
    expand = Inliner.expand
    monkeypatch.setattr(Inliner, "expand", lambda self, fused, e: (expanded.append(len(fused.views)), expand(self, fused, e))[1])
    torch.manual_seed(0)
    work = []
    for steps in (3, 6, 12):
        ff.compile(Inverse(steps), (torch.randn(4, 4),), schedule=Schedule.fuse("full"))
        work.append(sum(expanded))
        expanded.clear()
    assert work[2] < 3 * work[1] and work[1] < 4 * work[0]


def test_a_region_that_the_user_named_is_not_divided() -> None:
    """Ten squarings compute the first in 1,024 places."""
    model = nn.Sequential(*(Powers() for _ in range(2)))
    alone = ff.compile(model, (torch.randn(4, 4),), schedule=Schedule.fuse("none"))
    whole = Schedule.region("whole", *(einsum.name for einsum in alone.program.einsums)).fuse("whole")
    with pytest.raises(FusionError, match=r"region `whole` would compute `.*` in \d+ places"):
        ff.compile(model, (torch.randn(4, 4),), schedule=whole)
