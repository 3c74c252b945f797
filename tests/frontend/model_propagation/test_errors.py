"""What cannot be analysed is refused in the user's words, with the line, and leaves the model as it was."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import fuseflow.sparsity as sp
from fuseflow.errors import FrontendError, FuseFlowError, SparsityError, UsageError
from fuseflow.frontend.model_propagation import ModuleAttributes, TensorAttributes, analyse_module

X = torch.ones(2, 4)


class Written(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros(4))

    def forward(self, x: Tensor) -> Tensor:
        self.count.add_(x[0])
        return x * 2


class ControlFlow(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        if x.sum() > 0:
            return x
        return x * 2


class InputWritten(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.add_(1)


class Selected(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x[x > 0].sum()


class Number(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * x.sum().item()


class Nested(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.cond(x.sum() > 0, torch.sin, torch.cos, (x,))


class Random(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x + torch.rand_like(x)


class Dropped(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return F.dropout(x)


class Misfit(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x @ x


DATA = "another shape, or is another number, with other data"
REFUSED: dict[str, tuple[Any, str, str]] = {
    "a buffer that is written": (Written(), "the model writes to `count`", "model.eval()"),
    "an input that is written": (InputWritten(), "the model writes to `x`", "writing it in place"),
    "statistics that are updated": (nn.BatchNorm1d(4), "the model writes to", "model.eval()"),
    "control flow": (ControlFlow(), "control flow, or a number in Python, depends on data", "torch.where"),
    "a selection by data": (Selected(), DATA, "torch.where"),
    "a number taken out": (Number(), DATA, "torch.where"),
    "a nested graph": (Nested(), "a nested graph", "torch.cond"),
    "random numbers": (Random(), "draws random numbers, so it cannot be scrambled", "register a rule"),
    "dropout in training": (Dropped(), "`aten.native_dropout.default` draws random numbers", "model.eval()"),
    "a model that fails": (Misfit(), "the model cannot be exported: RuntimeError", ""),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_model_that_cannot_be_analysed(name: str):
    model, message, hint = REFUSED[name]
    with pytest.raises(FrontendError) as caught:
        analyse_module(model, (X.clone(),), {})
    assert message in caught.value.message and hint in caught.value.hint and caught.value.exit_status == 2
    if type(model).__module__ != "torch.nn.modules.batchnorm":
        assert caught.value.span is not None and caught.value.span.file.endswith("test_errors.py")
        first = type(model).forward.__code__.co_firstlineno
        assert first < caught.value.span.line <= first + 3


def model() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))


MISFITS: dict[str, tuple[Callable[[], dict[str, Any]], str, str]] = {
    "another shape": (
        lambda: {"0.weight": torch.ones(4, 3, dtype=torch.bool)},
        "the mask of `0.weight` has the shape [4, 3], and `0.weight` has [3, 4]",
        "",
    ),
    "no parameter": (
        lambda: {"0.wieght": torch.ones(3, 4)},
        "there is a mask for `0.wieght`, which is no parameter",
        "did you mean `0.weight`?",
    ),
    "no tensor": (lambda: {"0.weight": [True]}, "the mask of `0.weight` is a list", "true where an entry is kept"),
}


@pytest.mark.parametrize("name", MISFITS)
def test_a_mask_that_does_not_fit(name: str):
    masks, message, hint = MISFITS[name]
    with pytest.raises(SparsityError) as caught:
        analyse_module(model(), (X,), masks())
    assert message in caught.value.message and hint in caught.value.hint


def test_a_weight_that_was_trained_without_its_mask():
    rules = sp.SparsityBuilder()
    rules.set_weight("0.weight", initial_sparsifier=sp.Magnitude(0.5))
    sparse = rules.get_sparse_model(model())
    with torch.no_grad():
        sparse[0].weight.fill_(1)
    with pytest.raises(SparsityError, match=r"the weight `0.weight` is not 0"):
        analyse_module(sparse, (X,))


@pytest.mark.parametrize("inputs", [X, 3])
def test_inputs_that_are_no_list(inputs: Any):
    with pytest.raises(UsageError):
        analyse_module(model(), inputs)


def test_a_number_of_samples_below_0():
    with pytest.raises(UsageError, match="-1 samples"):
        analyse_module(model(), (X,), samples=-1)


def test_what_is_no_model():
    with pytest.raises(FrontendError):
        analyse_module(3, (X,))  # type: ignore[arg-type]


def test_a_name_that_is_no_tensor():
    weight = torch.ones(3, 4)
    analysis = ModuleAttributes(
        {"0.weight": TensorAttributes("0.weight", "parameter", *[weight > 0] * 2, weight, weight > 0)}, {}, ()
    )
    with pytest.raises(FuseFlowError) as caught:
        analysis["0.wight"]
    assert "did you mean `0.weight`?" in caught.value.hint
