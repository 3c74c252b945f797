"""Smaller modules compute what the pruned ones do."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import pytest
import sparta_figure14 as figure
import torch
from lifted import Example, Examples, analysed
from lifted_models import Causal, Residual, mobilenet, shifted_norm
from torch import Tensor, nn

import fuseflow.sparsity as sp
from fuseflow.errors import FrontendError
from fuseflow.frontend.model_propagation import ModuleAttributes, analyse_module, shrink

IMAGES, ROWS = (torch.randn(2, 3, 8, 8),), (torch.randn(5, 8),)


def pruned(model: nn.Module, masks: Mapping[str, Tensor]) -> nn.Module:
    """A copy of the model, with zeros."""
    model = copy.deepcopy(model)
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


COMPARED = {"a norm": lambda: nn.LayerNorm(8), "a softmax": lambda: nn.Softmax(1), "a maximum": lambda: nn.MaxPool1d(3, 1, 1)}
"""Layers between two others in which a feature is compared with other features."""


def compared(between: nn.Module) -> Example:
    return Example(nn.Sequential(nn.Linear(8, 8), between, nn.Linear(8, 4)), ROWS, {"2.weight": torch.arange(8).expand(4, 8) > 2})


def nothing_left() -> Example:
    model = nn.Sequential(nn.Linear(8, 4, bias=False), nn.ReLU(), nn.Linear(4, 2))
    return Example(model, ROWS, {"0.weight": torch.zeros(4, 8, dtype=torch.bool)})


@cache
def examples() -> Examples:
    torch.manual_seed(0)
    halves = {name: (build().eval(), inputs) for name, (build, inputs, _) in SHRUNK.items()}
    return Examples(
        {name: Example(model, inputs, half_of_the_filters(model)) for name, (model, inputs) in halves.items()}
        | {name: compared(between()) for name, between in COMPARED.items()}
        | {"nothing left": nothing_left()}
    )


def shrunk_example(name: str) -> nn.Module:
    """An example without what is of no use, which computes what the pruned one does."""
    example = examples()[name]
    return shrunk_as(example, examples().attributes(name))


def shrunk_as(example: Example, analysis: ModuleAttributes) -> nn.Module:
    shrunk = shrink(example.model, analysis)
    with torch.no_grad():
        expected = pruned(example.model, example.masks)(*example.inputs)
        torch.testing.assert_close(shrunk(*example.inputs), expected, rtol=1e-5, atol=1e-5)
    return shrunk


def shapes(model: nn.Module) -> dict[str, tuple[int, ...]]:
    return {name: tuple(parameter.shape) for name, parameter in model.named_parameters()}


@pytest.mark.parametrize("name", SHRUNK)
def test_a_smaller_module_computes_the_same(name: str):
    shrunk = shrunk_example(name)
    assert (size(shrunk) < size(examples()[name].model)) == SHRUNK[name][-1]
    assert all(isinstance(p, nn.Parameter) and p.requires_grad for p in shrunk.parameters())


def test_a_residual_network_loses_the_channels_that_no_sum_reads():
    """Channels that go around a convolution stay, and so do pruned ones that a batch norm makes another constant than 0."""
    model, shrunk = examples()["a sum around"].model, shrunk_example("a sum around")
    before, after = shapes(model), shapes(shrunk)
    kept = after["conv1.weight"][0]
    assert kept < 8 and {name for name in after if after[name] != before[name]} == {
        "conv1.weight", "norm1.weight", "norm1.bias", "conv2.weight"
    }  # fmt: skip
    assert after["conv1.weight"] == (kept, 8, 3, 3) and after["conv2.weight"] == (8, kept, 3, 3)


def test_masked_attention_keeps_its_shapes():
    assert shapes(shrunk_example("tied")) == shapes(examples()["tied"].model)


@pytest.mark.parametrize(
    ("shifted", "pairs", "share"), [(False, 13, 0.2), (True, 4, 0.75), pytest.param(True, 13, 0.6, marks=pytest.mark.slow)]
)
def test_a_smaller_mobilenet(shifted: bool, pairs: int, share: float):
    network = mobilenet(shifted=shifted, pairs=pairs)
    model, masks = network.model, figure.masks(network.model, "filter", 0.5)
    analysis = analysed(network.graph, masks)
    shrunk = shrunk_as(Example(model, network.inputs, masks), analysis)
    alive = sum(int((~analysis[name].dead).sum()) for name, _ in model.named_parameters())
    assert alive <= size(shrunk) <= share * size(model)
    assert shrunk.get_submodule("block3.dw").groups == len(shrunk.get_submodule("block3.dw").weight)


def test_a_model_of_which_nothing_is_left_still_runs():
    shrunk = shrunk_example("nothing left")
    assert shrunk[0].weight.shape == (1, 8) and shrunk[0].out_features == shrunk[2].in_features == 1
    torch.testing.assert_close(shrunk(*ROWS), examples()["nothing left"].model[2].bias.expand(5, 2))


@pytest.mark.parametrize("name", COMPARED)
def test_a_feature_that_others_are_compared_with_stays(name: str):
    assert shapes(shrunk_example(name)) == shapes(examples()[name].model)


def test_a_smaller_module_has_no_masks_any_more():
    rules = sp.SparsityBuilder()
    rules.set_weight("0.weight", initial_sparsifier=sp.Filter(0.5))
    sparse = rules.get_sparse_model(rows())
    shrunk = shrink(sparse, examples().attributes("rows"))
    assert not list(sp.sparse_weights(shrunk)) and list(sp.sparse_weights(sparse))
    assert analyse_module(shrunk, ROWS).total().dead == 0


def test_an_analysis_of_another_module():
    with pytest.raises(FrontendError, match=r"it has no `0.weight` of this shape"):
        shrink(nn.Sequential(nn.Linear(8, 5)), examples().attributes("rows"))
