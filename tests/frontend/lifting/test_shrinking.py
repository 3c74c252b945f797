"""Smaller modules compute what the pruned ones do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sparta_figure14 as figure
import torch
from lifted_models import Causal, Residual, shifted_norm
from torch import Tensor, nn

import fuseflow.sparsity as sp
from fuseflow.errors import FrontendError
from fuseflow.frontend import load_model
from fuseflow.frontend.lifting import analyse_module, shrink

ROOT = Path(__file__).resolve().parents[3]
IMAGES, ROWS = (torch.randn(2, 3, 8, 8),), (torch.randn(5, 8),)


def pruned(model: nn.Module, masks: dict[str, Tensor]) -> nn.Module:
    """The model itself, with zeros."""
    with torch.no_grad():
        for name, mask in masks.items():
            model.get_parameter(name).masked_fill_(~mask, 0)
    return model.eval()


def half_of_the_filters(model: nn.Module) -> dict[str, Tensor]:
    """Masks of all weights but the last one."""
    names = [name for name, weight in model.named_parameters() if weight.dim() > 1]
    return {name: sp.Filter(0.5).select(model.get_parameter(name).detach()) for name in names[:-1]}


def size(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


class Shared(nn.Module):
    """A layer that is called twice, and one of whose two readers is no layer."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.twice, self.last = nn.Linear(8, 8, bias=False), nn.Linear(8, 8, bias=False), nn.Linear(8, 2, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        y = self.twice(self.twice(self.first(x)).relu())
        return self.last(y) + y.sum(1, keepdim=True)


def convolutions(*ends: nn.Module) -> nn.Module:
    return nn.Sequential(nn.Conv2d(3, 8, 3, bias=False), shifted_norm(8), nn.ReLU(), nn.Conv2d(8, 6, 3, bias=False), *ends)


def rows() -> nn.Module:
    return nn.Sequential(nn.Linear(8, 16, bias=False), nn.ReLU(), nn.Linear(16, 6, bias=False), nn.Tanh(), nn.Linear(6, 3))


def three_convolutions(groups: int) -> nn.Module:
    first, last = nn.Conv2d(3, 8, 1, bias=False), nn.Conv2d(8, 4, 1)
    return nn.Sequential(first, nn.Conv2d(8, 8, 3, groups=groups, bias=False), last)


SHRUNK: dict[str, tuple[Callable[[], nn.Module], Any, bool]] = {
    "rows": (rows, ROWS, True),
    "flattened": (lambda: convolutions(nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(24, 4)), IMAGES, True),
    "depthwise": (lambda: three_convolutions(groups=8), IMAGES, True),
    "grouped": (lambda: three_convolutions(groups=2), IMAGES, False),
    "a norm of rows": (lambda: nn.Sequential(nn.Linear(8, 8, bias=False), nn.LayerNorm(8), nn.Linear(8, 4)), ROWS, False),
    "a norm of features": (lambda: convolutions(nn.Flatten(), nn.BatchNorm1d(96), nn.Linear(96, 4)), IMAGES, True),
    "the width is features": (lambda: convolutions(nn.Linear(4, 4)), IMAGES, True),
    "no batch": (
        lambda: nn.Sequential(nn.Conv2d(3, 8, 3, bias=False), nn.ReLU(), nn.Flatten(), nn.Linear(36, 4)),
        (torch.randn(3, 8, 8),),
        False,
    ),
    "a sum around": (Residual, IMAGES, True),
    "shared": (Shared, ROWS, False),
    "tied": (Causal, (torch.randn(1, 5, 8),), False),
}  # fmt: skip


@pytest.mark.parametrize("name", SHRUNK)
def test_a_smaller_module_computes_the_same(name: str):
    torch.manual_seed(0)
    build, inputs, smaller = SHRUNK[name]
    model = build().eval()
    masks = half_of_the_filters(model)
    shrunk = shrink(model, analyse_module(model, inputs, masks))
    before = size(model)
    with torch.no_grad():
        expected = pruned(model, masks)(*inputs)
        torch.testing.assert_close(shrunk(*inputs), expected, rtol=1e-5, atol=1e-5)
    assert (size(shrunk) < before) == smaller
    assert all(isinstance(p, nn.Parameter) and p.requires_grad for p in shrunk.parameters())


@pytest.mark.parametrize("shifted", [False, True])
def test_a_smaller_mobilenet(shifted: bool):
    loaded = load_model(ROOT / "models" / "mobilenet.py", options={"small": True, "shifted": shifted})
    model = loaded.module
    assert isinstance(model, nn.Module)
    masks = figure.masks(model, "filter", 0.5)
    found = analyse_module(model, loaded.inputs, masks)
    shrunk = shrink(model, found)
    before = size(model)
    with torch.no_grad():
        torch.testing.assert_close(shrunk(*loaded.inputs), pruned(model, masks)(*loaded.inputs), rtol=1e-5, atol=1e-5)
    alive = before - found.total().dead
    assert size(shrunk) <= (0.6 if shifted else 0.2) * before and size(shrunk) >= alive
    assert shrunk.get_submodule("block3.dw").groups == len(shrunk.get_submodule("block3.dw").weight)


def test_a_model_of_which_nothing_is_left_still_runs():
    model = nn.Sequential(nn.Linear(8, 4, bias=False), nn.ReLU(), nn.Linear(4, 2))
    masks = {"0.weight": torch.zeros(4, 8, dtype=torch.bool)}
    shrunk = shrink(model, analyse_module(model, ROWS, masks))
    assert shrunk[0].weight.shape == (1, 8) and shrunk[0].out_features == shrunk[2].in_features == 1
    torch.testing.assert_close(shrunk(*ROWS), model[2].bias.expand(5, 2))


@pytest.mark.parametrize("between", [nn.LayerNorm(8), nn.Softmax(1), nn.MaxPool1d(3, 1, 1)])
def test_a_feature_that_others_are_compared_with_stays(between: nn.Module):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 8), between, nn.Linear(8, 4))
    masks = {"2.weight": torch.arange(8).expand(4, 8) > 2}
    shrunk = shrink(model, analyse_module(model, ROWS, masks))
    torch.testing.assert_close(shrunk(*ROWS), pruned(model, masks)(*ROWS))
    assert size(shrunk) == size(model)


def test_a_smaller_module_has_no_masks_any_more():
    rules = sp.SparsityBuilder()
    rules.set_weight("0.weight", initial_sparsifier=sp.Filter(0.5))
    sparse = rules.get_sparse_model(rows())
    shrunk = shrink(sparse, analyse_module(sparse, ROWS))
    assert not list(sp.sparse_weights(shrunk)) and list(sp.sparse_weights(sparse))
    assert analyse_module(shrunk, ROWS).total().dead == 0


def test_an_analysis_of_another_module():
    found = analyse_module(nn.Sequential(nn.Linear(8, 4)), ROWS, {})
    with pytest.raises(FrontendError, match=r"it has no `0.weight` of this shape"):
        shrink(nn.Sequential(nn.Linear(8, 5)), found)
