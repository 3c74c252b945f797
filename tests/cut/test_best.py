"""The cut that is taken where nobody says what is fused: what it costs, and what of it the user decides."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import ordered_linalg as linalg
import pytest
import torch

import fuseflow as ff
from fuseflow.cut import best, cut_cache
from fuseflow.einsum.parse import parse
from fuseflow.errors import FuseFlowError, ScheduleError

LAYERS = """
tensor A[8, 8] csr
tensor X[8, 6] dense
tensor W[6, 4] dense
tensor V[4, 3] dense
T[i, j] = sum(k) X[i, k] * W[k, j]
H[i, j] = sum(k) A[i, k] * T[k, j]
R[i, j] = relu(H[i, j])
U[i, j] = sum(k) R[i, k] * V[k, j]
Y[i, j] = sum(k) A[i, k] * U[k, j]
output Y
"""

SHARED_SOFTMAX = """
tensor X[4, 4] dense
tensor W[4, 4] dense
S[i, j] = sum(k) X[i, k] * W[k, j]         @scores
Q[i, j] = sum(k) X[i, k] * W[j, k]         @query
T[i, j] = relu(S[i, j])
m[i]    = max(j) T[i, j]
E[i, j] = Q[i, j] * exp(T[i, j] - m[i])
output E
"""
"""The last four statements are one operator, whose first three are in another layer than the last."""


class Inverse(torch.nn.Module):
    """Steps of the approximate inverse of a matrix that Nystroem attention takes: each reads the one before four times."""

    def __init__(self, steps: int) -> None:
        super().__init__()
        self.steps = steps

    def forward(self, k: torch.Tensor) -> torch.Tensor:
        one, z = torch.eye(4), k.T / k.abs().sum() ** 2
        for _ in range(self.steps):
            kz = k @ z
            z = 0.25 * z @ (13 * one - kz @ (15 * one - kz @ (7 * one - kz)))
        return z


class PageRank(torch.nn.Module):
    def __init__(self, steps: int) -> None:
        super().__init__()
        self.steps = steps

    def forward(self, links: torch.Tensor) -> torch.Tensor:
        rank = torch.full((links.shape[0],), 1.0 / links.shape[0])
        for _ in range(self.steps):
            rank = 0.15 / links.shape[0] + 0.85 * (links @ rank)
        return rank


class ConjugateGradients(torch.nn.Module):
    def __init__(self, steps: int) -> None:
        super().__init__()
        self.steps = steps

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        x, r = torch.zeros_like(b), b
        p, rr = r, r @ r
        for _ in range(self.steps):
            ap = a @ p
            alpha = rr / (p @ ap)
            x, r = x + alpha * p, r - alpha * ap
            after = r @ r
            p, rr = r + after / rr * p, after
        return x


def links(nodes: int) -> torch.Tensor:
    weights = (torch.rand(nodes, nodes) < 0.2) * torch.rand(nodes, nodes) + torch.eye(nodes)
    return (weights / weights.sum(0)).to_sparse_csr()


def definite(size: int) -> torch.Tensor:
    sparse = (torch.rand(size, size) < 0.2) * torch.rand(size, size)
    return (sparse + sparse.T + size * torch.eye(size)).to_sparse_csr()


LONG = ("inverse_5", "gradients_10")
REPEATING: dict[str, Callable[[], tuple[torch.nn.Module, tuple[Any, ...]]]] = {
    "inverse_3": lambda: (Inverse(3), (torch.randn(4, 4),)),
    "inverse_5": lambda: (Inverse(5), (torch.randn(4, 4),)),
    "pagerank_6": lambda: (PageRank(6), (links(24),)),
    "pagerank_12": lambda: (PageRank(12), (links(16),)),
    "gradients_3": lambda: (ConjugateGradients(3), (definite(16), torch.randn(16))),
    "pagerank_30": lambda: (PageRank(30), (links(64),)),
    "gradients_5": lambda: (ConjugateGradients(5), (definite(12), torch.randn(12))),
    "gradients_10": lambda: (ConjugateGradients(10), (definite(200), torch.randn(200))),
}


@pytest.mark.parametrize("machine", ["ideal", "rda"])
@pytest.mark.parametrize("model", [pytest.param(name, marks=[pytest.mark.slow] * (name in LONG)) for name in REPEATING])
def test_what_repeats_its_producers_is_no_slower_than_without_fusion(model: str, machine: str) -> None:
    torch.manual_seed(0)
    module, inputs = REPEATING[model]()
    default = ff.compile(module, inputs, machine=machine).run()
    unfused = ff.compile(module, inputs, machine=machine, schedule=ff.Schedule.fuse("none")).run(check=False)
    assert default.check is not None and default.check.passed
    assert default.cycles <= unfused.cycles


def tensors(text: str) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {t.name: (rng.random(t.shape) * (rng.random(t.shape) < 0.5)).astype(np.float32) for t in parse(text).inputs}


def compiled(text: str = LAYERS, schedule: ff.Schedule | None = None, machine: str = "ideal") -> ff.compiler.Compiled:
    return ff.compile(parse(text), tensors=tensors(text), schedule=schedule, machine=machine)


def test_the_schedule_of_the_program_says_which_cut_was_taken() -> None:
    program = compiled()
    assert "best" not in program.schedule.fuse_regions
    again = compiled(schedule=ff.Schedule.from_yaml(program.schedule.to_yaml()))
    assert [region.graph for region in again.regions] == [region.graph for region in program.regions]


ONE = "tensor A[6, 5] csr\ntensor X[5, 4] csc\nY[i, j] = sum(k) A[i, k] * X[k, j]\noutput Y"


@pytest.mark.parametrize(
    "schedule",
    [
        ff.Schedule(),
        ff.Schedule.order("Y", ["j", "k", "i"]),
        ff.Schedule.par(**{"Y.i": 2}),
        ff.Schedule.lower(primitives="public"),
    ],
    ids=["plain", "order", "lanes", "public"],
)
def test_a_program_of_one_operator_is_not_estimated_and_is_what_a_search_would_take(
    schedule: ff.Schedule, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = ff.load_machine("rda")
    source = ff.compile(parse(ONE), tensors=tensors(ONE), schedule=ff.Schedule.fuse("none"), machine=machine).source
    taken, _, regions = best.lower_best(source, schedule, machine)
    monkeypatch.setattr(best, "lower_best", lambda *_: pytest.fail("there is nothing to cut"))
    found, _, lowered = cut_cache.lower_cut(source, schedule, machine)
    assert found == taken
    assert [region.graph for region in lowered] == [region.graph for region in regions]


def test_it_is_the_same_each_time_and_for_each_word_for_it() -> None:
    first, *others = (compiled(schedule=s) for s in (None, ff.Schedule(), ff.Schedule.fuse("best"), ff.Schedule.from_yaml("")))
    assert all(other.schedule == first.schedule for other in others)


@pytest.mark.parametrize("machine", ["ideal", "rda", "comal"])
def test_it_takes_no_more_cycles_than_no_fusion(machine: str) -> None:
    default, unfused = compiled(machine=machine), compiled(schedule=ff.Schedule.fuse("none"), machine=machine)
    assert default.run().cycles <= unfused.run().cycles


def regions(program: ff.compiler.Compiled) -> dict[str, tuple[str, ...]]:
    return {region.name: region.einsums for region in program.regions if region.einsums}


@pytest.mark.parametrize(
    ("schedule", "named"),
    [
        (ff.Schedule.order("T", "j,i,k"), "T"),
        (ff.Schedule.par(**{"R.i": 2}), "R"),
        (ff.Schedule.depth("U", 64), "U"),
        (ff.Schedule.par(**{"Y/Y.i": 2}), "Y"),
        (ff.Schedule.region("front", "T", "H").order("front", "i,k,l,j"), "front"),
    ],
)
def test_a_region_that_the_schedule_names_stays_and_the_rest_is_chosen(schedule: ff.Schedule, named: str) -> None:
    program, apart = compiled(schedule=schedule), replace(schedule, fuse_regions=(named,))
    assert set(regions(program)[named]) == set(dict(schedule.regions).get(named, (named,)))
    assert program.run().cycles <= 1.02 * compiled(schedule=apart).run().cycles


@pytest.mark.parametrize(
    ("schedule", "message"),
    [
        (ff.Schedule.order("T", "k,i,j").lower(copies=False).format("X", "csr"), "X"),
        (ff.Schedule.order("nothing", "i"), "nothing"),
        (ff.Schedule.par(q=4), "`q`"),
        (ff.Schedule.format("nothing", "csr"), "nothing"),
    ],
)
def test_what_the_user_asked_for_is_refused_and_not_passed_over(schedule: ff.Schedule, message: str) -> None:
    with pytest.raises(FuseFlowError, match=message):
        compiled(schedule=schedule)


def test_lanes_of_an_index_are_those_of_the_regions_that_are_chosen() -> None:
    program = compiled(schedule=ff.Schedule.par(i=2))
    assert dict(program.schedule.parallel) == {"i": 2}
    np.testing.assert_allclose(program.run().outputs["Y"], compiled().run().outputs["Y"], rtol=1e-5)


def test_regions_of_the_text_are_taken_as_they_are(tmp_path: Any) -> None:
    (tmp_path / "m.mlir").write_text(linalg.two_calls("ikj"))
    program = ff.compile(tmp_path / "m.mlir", tensors=linalg.operands(), machine="ideal")
    assert program.schedule.fuse_regions == ("layerwise",)


def test_a_program_that_only_sees_its_inputs_in_other_dimensions_has_a_cut() -> None:
    text = "tensor X[4, 6] dense\nT[h, i, d] = X[i, h*3 + d]\nY[j, h, d] = T[h, j, d]\noutput Y"
    array = tensors(text)["X"]
    np.testing.assert_array_equal(compiled(text).run().outputs["Y"], array.reshape(4, 2, 3))


def test_a_program_that_is_not_lowered_for_a_machine_says_what_is_fused() -> None:
    with pytest.raises(ScheduleError, match="for a machine"):
        ff.schedule.form_regions(parse(LAYERS), ff.Schedule())


def test_a_cut_that_disappoints_as_a_whole_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a cut promises is the sum over its regions, each beside single operators. SegFormer took twice the cycles of no fusion."""
    promised = best.expected_cuts
    monkeypatch.setattr(
        best, "expected_cuts", lambda costs: [replace(cut, cycles=cut.cycles * (cut.name == "none")) for cut in promised(costs)]
    )
    monkeypatch.setattr(
        best.PartCosts, "estimated_whole", lambda self, partitioned, *_: 1e9 if len(partitioned.regions) < 5 else 1.0
    )
    assert compiled().schedule.fuse_regions == ("none",)


def test_a_layer_may_end_inside_an_operator() -> None:
    x, w = (np.random.default_rng(n).random((4, 4), np.float32) for n in range(2))
    compiled = ff.compile(parse(SHARED_SOFTMAX), tensors={"X": x, "W": w})
    s = x @ w
    np.testing.assert_allclose(compiled.run().outputs["E"], x @ w.T * np.exp(s - s.max(1, keepdims=True)), rtol=1e-5)
