"""What is known before a model runs is evaluated by PyTorch where it has no Einsum form, and the user is told."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import fuseflow as ff
from fuseflow.einsum.interpret import evaluate
from fuseflow.einsum.text import show
from fuseflow.errors import FrontendError
from fuseflow.frontend import import_model
from fuseflow.frontend.imported_program import Source
from fuseflow.frontend.trace.constant_folding import flop_counter, program_flops


def checked(module: nn.Module, *inputs: Tensor, formats: dict[str, str] | None = None) -> Source:
    before = [value.clone() for value in module.state_dict().values()]
    imported = import_model(module.eval(), inputs, formats)
    assert all(torch.equal(a, b) for a, b in zip(before, module.state_dict().values(), strict=True))
    results = evaluate(imported.program, {name: t.to_dense() for name, t in imported.tensors.items()})
    for name, expected in imported.expected.items():
        np.testing.assert_allclose(results[name], expected, rtol=2e-5, atol=2e-6, err_msg=name)
    return imported


class Embedded(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.wte, self.wpe = nn.Embedding(20, 6), nn.Embedding(10, 6)
        self.lin = nn.Linear(6, 6)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.wte(tokens) + self.wpe(torch.arange(tokens.shape[1]))
        return F.relu(self.lin(x)) @ self.wte.weight.t()


def test_an_embedding_of_tokens_is_an_input() -> None:
    tokens = torch.randint(0, 20, (1, 5), generator=torch.Generator().manual_seed(0))
    module = Embedded()
    imported = checked(module, tokens)
    assert {"wte", "wpe", "lin.weight", "lin.bias", "wte.weight"} == set(imported.tensors)
    np.testing.assert_array_equal(imported.tensors["wte"].to_dense(), module.wte(tokens)[0].detach())
    assert imported.notices == (
        "`embedding` is evaluated by PyTorch before import; its results `wte`, `wpe` are inputs of the program",
    )


def test_a_mask_of_positions_is_an_input_and_can_have_a_format() -> None:
    class Causal(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            mask = torch.tril(torch.ones(5, 5))
            return torch.softmax((x @ x.t()).masked_fill(mask == 0, float("-inf")), -1)

    imported = checked(Causal(), torch.randn(5, 3), formats={"tril": "csr"})
    assert imported.tensors["tril"].stored == 15
    assert "where(tril[i, j] == 0, -inf, " in show(imported.program)  # the comparison has an Einsum form: it stays

    class Positions(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            position = torch.arange(5)
            return (x @ x.t()).masked_fill(position[:, None] < position, -1.0)

    assert [t.dtype for t in checked(Positions(), torch.randn(5, 3)).program.inputs] == ["f32", "i32"]


class Parts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(6, 8))

    def forward(self, x: Tensor) -> Tensor:
        gate, value = self.weight.chunk(2, dim=1)
        return (
            torch.sigmoid(x @ gate) * (x @ value) + torch.cat([self.weight[:, :2], self.weight[:, 6:]], 1).sum(0) + torch.eye(4)
        )


def test_parts_of_weights_are_inputs() -> None:
    imported = checked(Parts(), torch.randn(4, 6))
    assert set(imported.tensors) == {"x", "weight.part", "weight.part_2", "sum", "eye"}
    assert len(imported.notices) == 3


def test_many_results_are_counted() -> None:
    class Many(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.randn(6, 3))

        def forward(self, x: Tensor) -> Tensor:
            return sum(x * row for row in self.weight.unbind())

    (notice,) = checked(Many(), torch.randn(3)).notices
    assert "`weight.part_3`, `weight.part_4` and 2 more are inputs" in notice


class Written(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("table", torch.ones(4, 3))


def test_what_is_written_in_place_is_not_known() -> None:
    class OfItself(Written):
        def forward(self, x: Tensor) -> Tensor:
            self.table[0].add_(1)
            return x * self.table[0]

    class OfConstants(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            mask = torch.zeros(4, 3)
            mask[0].fill_(2)
            return x * mask

    with pytest.raises(FrontendError, match="mutates `table`"):
        import_model(OfItself(), (torch.ones(4, 3),))
    imported = import_model(OfConstants(), (torch.ones(4, 3),))
    assert set(imported.tensors) == {"x"}


def test_random_numbers_and_floating_inputs_are_not_known() -> None:
    class Random(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x + torch.rand(6, 4)[:3]

    with pytest.raises(FrontendError, match="random numbers"):
        import_model(Random(), (torch.ones(3, 4),))


def test_a_slice_of_an_input_stays_in_the_program() -> None:
    class OfInput(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x[:2] * 2

    assert not checked(OfInput(), torch.ones(3, 4)).notices


def test_what_is_repeated_is_stored_once() -> None:
    """The degrees of nodes are numbers of nodes, not of nodes and features, which a mean over neighbours divides by."""
    source, target = torch.tensor([[0, 1, 2, 2], [1, 0, 0, 1]])

    class Mean(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            degree = torch.zeros(3).index_add(0, target, torch.ones(4)).clamp(min=1)
            total = torch.zeros_like(x).scatter_add(0, target.view(-1, 1).expand(-1, 5), x[source])
            return total / degree.view(-1, 1).expand_as(x)

    imported = checked(Mean(), torch.randn(3, 5, generator=torch.Generator().manual_seed(0)))
    assert sorted(t.shape for name, t in imported.tensors.items() if name != "x") == [(3,), (3, 3)]


def eager_flops(module: torch.nn.Module, *args: torch.Tensor) -> int:
    """The FLOPs that PyTorch counts."""
    with flop_counter() as counter:
        module(*args)
    return counter.get_total_flops()


def test_the_flops_of_a_program_are_those_of_its_products() -> None:
    mlp = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
    x = torch.rand(4, 8)
    flops = 2 * 4 * (8 * 16 + 16 * 4)
    assert program_flops(ff.compile(mlp, (x,)).program) == eager_flops(mlp, x) == flops


def test_the_flops_of_a_convolution_are_those_that_pytorch_counts() -> None:
    convolution, x = torch.nn.Conv1d(3, 5, 3), torch.rand(1, 3, 9)
    assert program_flops(ff.compile(convolution, (x,)).program) == eager_flops(convolution, x)


def test_a_product_whose_sums_have_one_term_is_left_out_on_both_sides() -> None:
    narrow, x = torch.nn.Sequential(torch.nn.Linear(1, 8), torch.nn.Linear(8, 3)), torch.rand(4, 1)
    assert program_flops(ff.compile(narrow, (x,)).program) == eager_flops(narrow, x) == 2 * 4 * 8 * 3


@pytest.mark.parametrize("layout", [torch.sparse_csr, torch.sparse_coo])
def test_products_with_a_sparse_tensor_are_left_out_on_both_sides(layout: torch.layout) -> None:
    class Layer(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(3, 2)

        def forward(self, x: torch.Tensor, a: torch.Tensor) -> torch.Tensor:
            return a @ self.linear(x)

    args = torch.rand(4, 3), torch.eye(4).to_sparse(layout=layout)
    assert program_flops(ff.compile(Layer(), args).program) == eager_flops(Layer(), *args) == 2 * 4 * 3 * 2


class Positions(torch.nn.Module):
    """A layer that adds a product of known positions, which PyTorch evaluates: 2 * 4 * 4 * 4 = 128 FLOPs."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(features, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        positions = torch.arange(16).reshape(4, 4).float()
        return self.linear(x) + positions @ positions


@pytest.mark.parametrize(
    ("features", "notice"),
    [
        (96, "what PyTorch evaluated before import took 128 FLOPs, 4.0% of the model's"),
        (
            2,
            "most of the model's work is not in the program: PyTorch did 128 FLOPs before import, 67% of all. "
            "Cycles of the program are those of the rest",
        ),
    ],
)
def test_the_work_before_import_is_said(features: int, notice: str) -> None:
    compiled = ff.compile(Positions(features), (torch.rand(4, features),))
    assert compiled.source.notices[-1] == notice


def test_nothing_is_said_of_no_work() -> None:
    embedding = torch.nn.Sequential(torch.nn.Embedding(5, 4), torch.nn.Linear(4, 2))
    notices = ff.compile(embedding, (torch.tensor([1, 3]),)).source.notices
    assert notices and not any("FLOPs" in notice for notice in notices)
