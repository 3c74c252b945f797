"""What PyTorch may evaluate before import, and what is data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from fuseflow.frontend.trace import fx_origin
from fuseflow.frontend.trace.dependence import dependences
from fuseflow.frontend.trace.model_call import model_call
from fuseflow.frontend.trace.tracing import trace

X, INDEX = torch.rand(4, 3), torch.tensor([1, 0, 2])


def classes(function: Callable[..., Any], *inputs: Tensor) -> dict[str, str]:
    """Return what each operator depends on, by its short name (the last call of it)."""
    with torch.no_grad():
        traced = trace(model_call(function, inputs, None))
    return {fx_origin.short_name(node.target): value for node, value in dependences(traced).items() if node.op == "call_function"}


def test_integers_and_what_is_made_of_them_are_structure() -> None:
    values = classes(lambda x, i: x * torch.zeros(4, 3).index_add(0, i, torch.ones(3, 3)).pow(-0.5), X, INDEX)
    assert {name: values[name] for name in ("index_add", "pow", "mul")} == {
        "index_add": "structure",
        "pow": "structure",
        "mul": "data",
    }


def test_only_memory_that_data_is_written_to_is_data() -> None:
    def degrees(x: Tensor, i: Tensor) -> Tensor:
        count = torch.zeros(4).index_add_(0, i, torch.ones(3))
        out = torch.zeros(4, 3).index_add_(0, i, x[i])
        return out / count.clamp_(min=1).unsqueeze(1)

    values = classes(degrees, X, INDEX)
    assert values["clamp_"] == values["unsqueeze"] == "structure"
    assert values["index_add_"] == values["div"] == "data"


def test_a_view_of_memory_that_data_is_written_to_is_data() -> None:
    def masked(x: Tensor) -> Tensor:
        rows = torch.zeros(4, 3)
        first = rows.select(0, 0)
        first.add_(x.select(0, 1))
        return rows.exp()

    assert classes(masked, X)["exp"] == "data"


def test_weights_that_move_are_weights_and_arithmetic_on_them_is_data() -> None:
    class Layer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table, self.weight = nn.Embedding(5, 3), nn.Parameter(torch.rand(3, 3))

        def forward(self, i: Tensor) -> Tensor:
            return self.table(i).unsqueeze(0) @ self.weight.relu()

    values = classes(Layer(), INDEX)
    assert (values["embedding"], values["unsqueeze"], values["relu"]) == ("weights", "weights", "data")


def test_sparse_inputs_are_patterns_and_their_numbers_are_data() -> None:
    values = classes(lambda a, x: a.to_dense().sum(1).unsqueeze(1) * x, torch.eye(4).to_sparse_csr(), X)
    assert (values["to_dense"], values["sum"], values["mul"]) == ("pattern", "data", "data")
    values = classes(lambda a, x: x[a.col_indices()] * a.values()[:, None], torch.eye(4).to_sparse_csr(), X)
    assert (values["col_indices"], values["values"], values["mul"]) == ("pattern", "data", "data")


@pytest.mark.parametrize("write", [lambda y: y.add_(1), lambda y: y.view(-1).mul_(2)])
def test_memory_that_is_written_to_after_data_has_read_it_is_data(write: Callable[[Tensor], Tensor]) -> None:
    def model(x: Tensor, i: Tensor) -> Tensor:
        rows = i.to(torch.float32)
        before = x * rows
        write(rows)
        return before + rows

    assert set(classes(model, X, INDEX).values()) == {"data"}
