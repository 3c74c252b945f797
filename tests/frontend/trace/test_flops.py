"""How much of a model's work is in its program, and what is said of the work that PyTorch did before import."""

from __future__ import annotations

import pytest
import torch

import fuseflow as ff
from fuseflow.frontend.trace.flops import flop_counter, program_flops


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
