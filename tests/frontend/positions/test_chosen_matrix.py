"""Values at places that `topk` chooses become matrices, and mean what PyTorch says they mean, on inputs that choose other places, too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fuseflow import Schedule
from fuseflow.compiler import compile_source
from fuseflow.einsum.nodes import Keep
from fuseflow.errors import FuseFlowError
from fuseflow.frontend.model_spec import ModelSpec
from fuseflow.frontend.sources import Source, load
from fuseflow.frontend.torch_tensors import from_torch
from fuseflow.sim import load_machine

TOKENS, WIDTH, INNER, EXPERTS = 6, 4, 8, 8


class Function(nn.Module):
    """A function of tokens, the weights of a router, and weights of two products for each expert."""

    def __init__(self, function: Callable[[Tensor, Tensor, Tensor, Tensor], Tensor], experts: int = EXPERTS) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.function = function
        self.router = nn.Parameter(torch.randn(WIDTH, experts))
        self.up, self.down = nn.Parameter(torch.randn(experts, WIDTH, INNER)), nn.Parameter(torch.randn(experts, INNER, WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x, x @ self.router, self.up, self.down)


def require_equal(model: nn.Module, tokens: int = TOKENS, cuts: tuple[str, ...] = ("none", "best", "full")) -> Source:
    """Require that a program computes what its model does, on the sample and on another input. Return the program."""
    generator = torch.Generator().manual_seed(7)
    sample, other = torch.randn(tokens, WIDTH, generator=generator), torch.randn(tokens, WIDTH, generator=generator)
    source = load(ModelSpec(model, (sample,)))
    declared = source.program.declared["x"]
    for x in (sample, other):
        given = replace(source, tensors={**source.tensors, declared.name: from_torch(x.squeeze(), declared)})
        for cut in cuts:
            result = compile_source(given, Schedule.fuse(cut), load_machine("rda")).run(check=False)
            (output,) = result.outputs.values()
            output = output.toarray() if hasattr(output, "toarray") else output
            with torch.no_grad():
                np.testing.assert_allclose(output, model(x).squeeze(), rtol=1e-4, atol=1e-4, err_msg=cut)
    return source


def is_matrix(source: Source) -> bool:
    """Return whether a program marks chosen places, and compares no pairs of elements as a sort does."""
    marks = any(isinstance(einsum.body, Keep) and einsum.body.rule.marks for einsum in source.program.einsums)  # type: ignore[union-attr]
    return marks and not any("rank" in einsum.name for einsum in source.program.einsums)


def sorted_by_expert(x: Tensor, gate: Tensor, up: Tensor, down: Tensor, k: int = 2) -> Tensor:
    weights, experts = gate.topk(k, dim=1)
    order = torch.argsort(experts.reshape(-1), stable=True)
    ends = torch.cumsum(torch.bincount(experts.reshape(-1), minlength=gate.shape[1]), 0).to(torch.int32)
    rows = order // k
    out = F.grouped_mm(F.relu(F.grouped_mm(x[rows], up, offs=ends)), down, offs=ends)
    out = out * weights.softmax(1).reshape(-1)[order, None]
    return torch.zeros_like(x).index_add(0, rows, out)


def unsorted(x: Tensor, gate: Tensor, up: Tensor, down: Tensor) -> Tensor:
    weights, experts = gate.sigmoid().topk(2, dim=-1)
    sorted_experts, order = experts.view(-1).sort()
    ends = torch.cumsum(torch.histc(sorted_experts.float(), bins=EXPERTS, min=0, max=EXPERTS - 1), 0, dtype=torch.int32)
    out = F.grouped_mm(x[order // 2], up @ down, offs=ends)
    back = torch.empty_like(order)
    back[order] = torch.arange(order.numel())
    return (out[back].view(len(x), 2, -1) * weights[..., None]).sum(1)


def weights_of_each_slot(x: Tensor, gate: Tensor, up: Tensor, down: Tensor) -> Tensor:
    weights, experts = gate.softmax(-1).topk(3, dim=-1)
    flat = experts.reshape(-1)
    hidden = torch.bmm(x.repeat_interleave(3, dim=0).unsqueeze(1), up[flat]).tanh()
    out = torch.bmm(hidden, down[flat]).squeeze(1) * weights.reshape(-1, 1)
    return out.view(len(x), 3, -1).sum(dim=1)


def products_in_einsums(x: Tensor, gate: Tensor, up: Tensor, down: Tensor) -> Tensor:
    weights, experts = gate.topk(2)
    hidden = torch.einsum("td,tkdi->tki", x, up[experts]).relu()
    return torch.einsum("tk,tkid,tki->td", weights.softmax(-1), down[experts], hidden)


def gates_taken_again(x: Tensor, gate: Tensor, up: Tensor, down: Tensor) -> Tensor:
    experts = (gate + 0.1).topk(2, sorted=False).indices
    weights = gate.sigmoid().gather(1, experts)
    weights = weights / (weights.sum(-1, keepdim=True) + 1e-20)
    hidden = torch.matmul(x[:, None, None, :], up[experts]).tanh()
    return (torch.matmul(hidden, down[experts]).squeeze(2) * weights[..., None]).sum(1)


def dispatched_by_masks(x: Tensor, gate: Tensor, up: Tensor, down: Tensor) -> Tensor:
    weights, experts = gate.topk(2)
    combine = torch.zeros_like(gate).scatter(1, experts, weights.softmax(1))
    mask = F.one_hot(experts, EXPERTS).sum(1).float()
    hidden = torch.einsum("te,td,edi->tei", mask, x, up).relu()
    return torch.einsum("te,tei,eid->td", combine, hidden, down)


def one_expert(x: Tensor, gate: Tensor, up: Tensor, down: Tensor) -> Tensor:
    weight, expert = gate.softmax(-1).max(dim=-1)
    hidden = torch.bmm(x.unsqueeze(1), up[expert]).relu()
    return weight.unsqueeze(1) * torch.bmm(hidden, down[expert]).squeeze(1)


def experts_choose(x: Tensor, gate: Tensor, up: Tensor, down: Tensor) -> Tensor:
    weights, tokens = gate.softmax(-1).t().topk(3, dim=-1)
    out = torch.bmm(torch.bmm(x[tokens], up).relu(), down) * weights.unsqueeze(-1)
    return torch.zeros_like(x).index_add(0, tokens.reshape(-1), out.reshape(-1, WIDTH))


def extremes(x: Tensor, gate: Tensor, up: Tensor, down: Tensor) -> Tensor:
    chosen = gate.topk(3).indices
    taken = (gate * 2).gather(1, chosen)
    return torch.stack((taken.amax(1), taken.mean(1), taken.amin(1)))


def bags(x: Tensor, gate: Tensor, up: Tensor, down: Tensor) -> Tensor:
    weights, experts = gate.topk(3)
    return F.embedding_bag(experts, up[:, 0], per_sample_weights=weights.softmax(-1), mode="sum")


FORMS = (
    bags,
    sorted_by_expert,
    unsorted,
    weights_of_each_slot,
    gates_taken_again,
    dispatched_by_masks,
    experts_choose,
    extremes,
)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
def test_form(form: Callable[..., Tensor]) -> None:
    """The matrix of tokens and experts computes what a common form of routing does, and no elements are sorted."""
    assert is_matrix(require_equal(Function(form)))


@pytest.mark.parametrize("form", [products_in_einsums, one_expert], ids=lambda form: form.__name__)
def test_other_form(form: Callable[..., Tensor]) -> None:
    require_equal(Function(form))


def test_work() -> None:
    """The program multiplies for the chosen experts of each token alone."""
    source = require_equal(Function(sorted_by_expert))
    products = 2 * TOKENS * (WIDTH * EXPERTS + 2 * 2 * WIDTH * INNER)
    for cut in ("best", "full"):
        result = compile_source(source, Schedule.fuse(cut), load_machine("rda")).run()
        assert result.stats["flops"] < 1.4 * products, cut


@pytest.mark.parametrize("k", [1, EXPERTS])
def test_extreme_counts(k: int) -> None:
    require_equal(Function(lambda *given: sorted_by_expert(*given, k=k)), cuts=("best",))


def test_one_token() -> None:
    require_equal(Function(weights_of_each_slot), tokens=1, cuts=("best",))


def test_one_expert_for_all() -> None:
    require_equal(Function(lambda *given: sorted_by_expert(*given, k=1), experts=1), cuts=("best",))


def test_zero_and_negative_gates() -> None:
    """A gate of zero that is chosen counts, and the greatest gates are chosen, not those of the largest magnitude."""

    def form(x: Tensor, gate: Tensor, up: Tensor, down: Tensor) -> Tensor:
        weights, experts = (gate.abs().neg() * (torch.arange(EXPERTS) > 0)).topk(2)
        return (
            torch.bmm(x.repeat_interleave(2, 0)[:, None], up[experts.view(-1)]).view(len(x), 2, -1) * (1 + weights[..., None])
        ).sum(1)

    assert is_matrix(require_equal(Function(form), cuts=("best",)))


# Gates that are no numbers, and other extremes of routing, mean what they mean in PyTorch.


def spoiled(gate: Tensor, x: Tensor, value: float, columns: int) -> Tensor:
    """Return a gate that has one value in its last columns, for about half of the tokens."""
    return torch.where((x[:, :1] > 0) & (torch.arange(EXPERTS) >= EXPERTS - columns), value, gate)


def scattered(x: Tensor, gate: Tensor, up: Tensor, down: Tensor) -> Tensor:
    weights, experts = gate.topk(2)
    return torch.zeros_like(gate).scatter(1, experts, weights.sigmoid())


@pytest.mark.parametrize("form", [sorted_by_expert, gates_taken_again, extremes, scattered], ids=lambda form: form.__name__)
@pytest.mark.parametrize(("value", "columns"), [(float("nan"), 1), (float("-inf"), EXPERTS - 1)], ids=["nan", "one_finite"])
def test_gates_without_a_number(form: Callable[..., Tensor], value: float, columns: int) -> None:
    """A gate of NaN is chosen first, and reaches its token alone. A gate of -inf is chosen where too few others are left."""
    require_equal(Function(lambda x, gate, *rest: form(x, spoiled(gate, x, value, columns), *rest)), cuts=("best",))


def test_experts_without_tokens() -> None:
    """No token chooses one of the last experts, whose groups of rows are empty."""
    form = lambda x, gate, *rest: sorted_by_expert(x, gate - 100 * (torch.arange(EXPERTS) > 3), *rest)  # noqa: E731
    assert is_matrix(require_equal(Function(form), cuts=("best",)))


@pytest.mark.parametrize("capacity", [0, 1])
def test_capacity(capacity: int) -> None:
    """An expert drops tokens that come after its capacity is used up, or all of them."""

    def form(x: Tensor, gate: Tensor, up: Tensor, down: Tensor) -> Tensor:
        weights, experts = gate.softmax(-1).topk(2)
        chosen = F.one_hot(experts, EXPERTS).sum(1)
        chosen = chosen * (chosen.cumsum(0) <= capacity)
        combine = torch.zeros_like(gate).scatter(1, experts, weights) * chosen
        return torch.einsum("te,tei,eid->td", combine, torch.einsum("te,td,edi->tei", chosen.float(), x, up).relu(), down)

    require_equal(Function(form), cuts=("best",))


def test_more_choices_than_experts() -> None:
    """PyTorch refuses it, and the error says so at the line of the model."""
    with pytest.raises(FuseFlowError, match=r"test_chosen_matrix\.py:\d+: .*index k out of range"):
        load(ModelSpec(Function(lambda *given: sorted_by_expert(*given, k=EXPERTS + 1)), (torch.randn(TOKENS, WIDTH),)))


# What reads slots in their order stays as it is.


def by_rank(x: Tensor, gate: Tensor, up: Tensor, down: Tensor) -> Tensor:
    weights = gate.topk(2).values
    return (weights * torch.tensor([1.0, 0.5])).sum(1)


def running_sum(x: Tensor, gate: Tensor, up: Tensor, down: Tensor) -> Tensor:
    return gate.softmax(-1).topk(3).values.cumsum(-1)


def first_slot(x: Tensor, gate: Tensor, up: Tensor, down: Tensor) -> Tensor:
    return gate.topk(3).values[:, 0]


def sorted_otherwise(x: Tensor, gate: Tensor, up: Tensor, down: Tensor) -> Tensor:
    """Rows are sorted by weight and multiplied in groups of experts, which are other rows."""
    weights, experts = gate.topk(2)
    order = torch.argsort(weights.reshape(-1), stable=True)
    ends = torch.cumsum(torch.bincount(experts.reshape(-1), minlength=EXPERTS), 0).to(torch.int32)
    out = F.grouped_mm(x[order // 2], up, offs=ends)
    return torch.zeros(len(x), INNER).index_add(0, order // 2, out)


def other_divisor(x: Tensor, gate: Tensor, up: Tensor, down: Tensor) -> Tensor:
    """The numbers of slots are divided by another number than the slots of a token."""
    experts = gate.topk(2).indices
    order = torch.argsort(experts.reshape(-1), stable=True)
    ends = torch.cumsum(torch.bincount(experts.reshape(-1), minlength=EXPERTS), 0).to(torch.int32)
    out = F.grouped_mm(x[order // 3], up, offs=ends)
    return torch.zeros(len(x), INNER).index_add(0, order // 3, out)


def rows_in_other_order(x: Tensor, gate: Tensor, up: Tensor, down: Tensor) -> Tensor:
    """The weights of slots are in the order of tokens, and the products in the order of experts."""
    weights, experts = gate.topk(2)
    order = torch.argsort(experts.reshape(-1), stable=True)
    ends = torch.cumsum(torch.bincount(experts.reshape(-1), minlength=EXPERTS), 0).to(torch.int32)
    out = F.grouped_mm(x[order // 2], up, offs=ends) * weights.reshape(-1, 1)
    return torch.zeros(len(x), INNER).index_add(0, order // 2, out)


def two_choices(x: Tensor, gate: Tensor, up: Tensor, down: Tensor) -> Tensor:
    """The weights of one choice meet the experts of another."""
    weights, experts = gate.topk(2).values, (-gate).topk(2).indices
    return (up[experts].sum(-2) * weights[..., None]).sum(1)


def written_later(x: Tensor, gate: Tensor, up: Tensor, down: Tensor) -> Tensor:
    """A value that has slots is written to between two of its readers."""
    weights, experts = gate.topk(2)
    part = weights[:, :1]
    weights.mul_(2)
    return (up[experts].sum(-2) * weights[..., None]).sum(1) + part


ORDERED = (by_rank, running_sum, first_slot, sorted_otherwise, other_divisor, rows_in_other_order, two_choices, written_later)


LONG = (sorted_otherwise, other_divisor)
"""As `rows_in_other_order`, they become comparisons of all pairs, by another way of writing it."""


@pytest.mark.parametrize(
    "form", [pytest.param(form, marks=[pytest.mark.slow] * (form in LONG), id=form.__name__) for form in ORDERED]
)
def test_order_of_slots(form: Callable[..., Tensor]) -> None:
    require_equal(Function(form), cuts=("best",))


def test_returned_ranks() -> None:
    """What a model returns in the order of ranks is ranked, beside the matrix."""

    class Router(Function):
        def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:  # type: ignore[override]
            gate = x @ self.router
            return sorted_by_expert(x, gate, self.up, self.down), gate.topk(2).values.softmax(-1)

    model, x = Router(sorted_by_expert), torch.randn(TOKENS, WIDTH, generator=torch.Generator().manual_seed(3))
    result = compile_source(load(ModelSpec(model, (x,))), Schedule.fuse("best"), load_machine("rda")).run()
    assert result.check is not None and result.check.passed
