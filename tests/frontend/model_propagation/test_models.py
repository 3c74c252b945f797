"""Whole models: outputs stay as they are without what is dead, and something is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import pytest
import torch
from lifted import Example, Examples, Lifted, SideBySide, analysed, random_masks
from lifted_models import Causal, Encoder, Residual, mobilenet, shifted_norm
from torch import Tensor, nn

import fuseflow.sparsity as sp
from fuseflow.errors import SparsityError
from fuseflow.frontend.model_propagation import ModuleAttributes, analyse_module


class Around(nn.Module):
    """A product with the input around it."""

    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(3, 3, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return x + torch.relu(self.lin(x))


def masked(model: nn.Module, *inputs: Any, **masks: Tensor) -> Example:
    return Example(model.eval(), inputs, {name.replace("__", "."): mask for name, mask in masks.items()})


def half(model: nn.Module, *inputs: Any) -> Example:
    """An example of which a half of the weights is pruned, but not the scales and shifts of batch norms."""
    constants = {name for name, module in model.named_modules() if isinstance(module, nn.BatchNorm2d)}
    masks = random_masks(model, torch.Generator().manual_seed(0))
    return Example(model.eval(), inputs, {key: mask for key, mask in masks.items() if key.rpartition(".")[0] not in constants})


def kept(model: nn.Module, weight: str = "") -> nn.Module:
    """A model of which the largest entries of the result of layer 1 are kept, and if a weight is named, half of its filters."""
    rules = sp.SparsityBuilder()
    rules.set_interm("1", external_sparsifier=sp.TopK(2))
    if weight:
        rules.set_weight(weight, initial_sparsifier=sp.Filter(0.5))
    return rules.get_sparse_model(model)


def rows() -> nn.Module:
    return nn.Sequential(nn.Linear(6, 8, bias=False), nn.ReLU(), nn.Linear(8, 4, bias=False))


def columns_from(first: int, *shape: int) -> Tensor:
    """A mask that keeps the columns from the first one on."""
    return (torch.arange(shape[1]) >= first).expand(shape)


PADDING = torch.tensor([[False] * 6, [False] * 4 + [True] * 2])
HALVES: Mapping[str, Callable[[], Example]] = {
    "residual": lambda: half(Residual(), torch.randn(2, 3, 8, 8)),
    "encoder": lambda: half(Encoder(), torch.randint(1, 20, (2, 6)), PADDING),
    "causal": lambda: half(Causal(), torch.randn(2, 5, 8)),
    "causal by a sum": lambda: half(Causal(added=True), torch.randn(2, 5, 8)),
    "recurrent": lambda: half(nn.GRU(6, 4, batch_first=True), torch.randn(2, 2, 6)),
    "recurrent with cells": lambda: half(nn.LSTM(6, 4, batch_first=True), torch.randn(2, 2, 6)),
}


def kept_filters() -> Example:
    sparse = kept(rows(), "0.weight")
    return masked(sparse, torch.randn(3, 6), **{"0.weight": sparse[0].weight != 0})


def a_pruned_channel() -> Example:
    model = nn.Sequential(nn.Conv2d(1, 2, 1, bias=False), shifted_norm(2), nn.Flatten(), nn.Linear(8, 3))
    return masked(model, torch.ones(1, 1, 2, 2), **{"0.weight": torch.tensor([True, False]).view(2, 1, 1, 1)})


OTHERS: Mapping[str, Callable[[], Example]] = {
    "causal as it is": lambda: masked(Causal(), torch.randn(1, 5, 8)),
    "causal by a sum as it is": lambda: masked(Causal(added=True), torch.randn(1, 5, 8)),
    "tied": lambda: masked(Causal(), torch.randn(1, 5, 8), **{"head.weight": columns_from(3, 8, 8)}),
    "around": lambda: masked(Around(), torch.ones(2, 3), **{"lin.weight": columns_from(1, 3, 3)}),
    "pooled": lambda: masked(nn.Sequential(nn.Conv2d(1, 1, 1, bias=False), nn.MaxPool2d(8)), torch.ones(1, 1, 16, 16)),
    "a pruned channel": a_pruned_channel,
    "kept": kept_filters,
    "compared": lambda: masked(kept(rows()), torch.randn(3, 6), **{"2.weight": columns_from(3, 4, 8)}),
}


@cache
def examples() -> Examples:
    torch.manual_seed(0)
    return Examples({name: build() for name, build in {**HALVES, **OTHERS}.items()})


@pytest.mark.parametrize("name", [*HALVES, *OTHERS])
def test_outputs_stay_without_what_is_dead(name: str):
    examples().assert_unchanged(name)


def assert_more_is_dead(attributes: ModuleAttributes, masks: Mapping[str, Tensor], more: int) -> None:
    """At least so many entries of the weights are dead beside those that were pruned."""
    weights = [attributes[name].row for name in masks]
    assert not attributes.guesses and sum(row.dead for row in weights) >= sum(row.size - row.stored for row in weights) + more


@pytest.mark.parametrize("name", HALVES)
def test_more_is_dead_than_was_pruned(name: str):
    assert_more_is_dead(examples().attributes(name), examples()[name].masks, 0 if name.startswith("recurrent") else 1)


@pytest.mark.parametrize("pairs", [4, pytest.param(13, marks=pytest.mark.slow)])
def test_outputs_of_a_mobilenet_with_shifts_stay(pairs: int):
    network = mobilenet(shifted=True, pairs=pairs)
    example = half(network.model, *network.inputs)
    lifted = Lifted(network.graph, example.inputs, example.masks)
    lifted.assert_unchanged()
    assert_more_is_dead(lifted.analysis, example.masks, 1)


def test_a_pruned_channel_behind_a_batch_norm_is_a_constant():
    attributes, norm = examples().attributes("a pruned channel"), examples()["a pruned channel"].model[1]
    shift = norm.bias[1] - norm.weight[1] * norm.running_mean[1] / torch.sqrt(norm.running_var[1] + norm.eps)
    behind = attributes["1.add_2"]
    assert behind.known.tolist() == [[[[False] * 2] * 2, [[True] * 2] * 2]]
    torch.testing.assert_close(behind.value[0, 1], shift.detach().expand(2, 2))
    assert attributes["3.weight"].dead.sum() == 0, "the constant is multiplied with weights"
    assert attributes["1.bias"].row.constant == 2 and attributes["1.bias"].row.dead == 0


def test_a_residual_input_stays_alive():
    """A rule that unites what neighbours say would prune the first feature of x, which goes around the product."""
    assert bool(examples().input("around").needed.all()) and examples().attributes("around")["lin.weight"].row.dead == 3


@pytest.mark.parametrize("name", ["causal as it is", "causal by a sum as it is"])
def test_what_a_mask_of_scores_hides_needs_nothing(name: str):
    attributes, hidden = examples().attributes(name), ~torch.ones(5, 5).tril().bool()
    assert torch.equal(attributes["softmax"].known[0], hidden) and not attributes["softmax"].value.any()
    assert not attributes["div"].needed[0][hidden].any() and attributes["div"].needed[0][~hidden].all()


def test_a_tied_weight_is_one_tensor():
    attributes = examples().attributes("tied")
    assert attributes["head.weight"] is attributes["embed.weight"]
    assert attributes["embed.weight"].row.dead == 24 and [row.name for row in attributes.rows].count("embed.weight") == 1


def test_two_masks_for_a_tied_weight():
    names = [f"models.{list(examples()).index('tied')}.{name}.weight" for name in ("embed", "head")]
    with pytest.raises(SparsityError, match=f"`{names[0]}` and `{names[1]}`, which are one tensor"):
        analysed(examples().lifted.graph, {names[0]: torch.eye(8), names[1]: torch.ones(8, 8)})


def test_an_8_by_8_maximum_reads_all_of_its_window():
    assert examples().input("pooled").needed.all() and not examples().attributes("pooled")["0.weight"].dead.any()


def test_a_rule_of_an_intermediate_keeps_zeros_and_reads_the_rest():
    attributes = examples().attributes("kept")
    assert attributes["2.weight"].row.dead == 16 and attributes.guesses == ()


def test_what_is_compared_by_a_rule_is_needed_though_nothing_multiplies_it():
    assert examples().attributes("compared")["0.weight"].row.dead == 0


def test_masks_are_those_that_the_model_carries_and_it_stays_as_it_is():
    torch.manual_seed(0)
    rules = sp.SparsityBuilder()
    rules.set_weight("0.weight", initial_sparsifier=sp.Filter(0.5))
    both = SideBySide([rules.get_sparse_model(model := rows()), model])
    before, state = {name: tensor.clone() for name, tensor in both.state_dict().items()}, torch.get_rng_state()
    attributes = analyse_module(both, ([(torch.ones(1, 6),)] * 2,))
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(tensor, before[name]) for name, tensor in both.state_dict().items())
    assert attributes["models.0.0.weight"].row.stored == 24 and attributes["models.0.2.weight"].row.dead == 16
    assert attributes["models.1.2.weight"].row.dead == 0


def test_the_table():
    model = nn.Sequential(nn.Linear(4, 3, bias=False), nn.ReLU(), nn.Linear(3, 2, bias=False))
    keep = torch.ones(3, 4, dtype=torch.bool)
    keep[1], keep[0, 2] = False, False
    attributes = analyse_module(model, (torch.ones(1, 4),), {"0.weight": keep})
    assert str(attributes).splitlines() == [
        "tensor    shape  stored before  dead  constant  needed  now",
        "0.weight  3 x 4              7     5         0       7    7",
        "2.weight  2 x 3              6     2         0       4    4",
        "total                       13     7         0      11   11",
    ]
    assert [(row.name, row.kind, row.layer, row.stored, row.now) for row in attributes.rows] == [
        ("0.weight", "constant", "0", 7, 7),
        ("2.weight", "constant", "2", 6, 4),
        ("input", "input", "", 4, 4),
        ("0.linear", "intermediate", "0", 3, 2),
        ("1.relu", "intermediate", "1", 3, 2),
        ("2.linear", "intermediate", "2", 2, 2),
    ]
    assert attributes.total("input").now == 4 and attributes["0.weight"].row.to_json()["shape"] == [3, 4]


def test_what_a_row_counts():
    """Buffers are rows of their own, and a known entry is not counted as needed."""
    attributes = examples().attributes("a pruned channel")
    assert attributes["1.running_mean"].row.kind == "buffer" and attributes["1.running_mean"].row.layer == "1"
    (bias,) = (row for row in attributes.rows if row.name == "1.bias")
    assert (bias.stored, bias.dead, bias.constant, bias.needed, bias.now) == (2, 0, 2, 0, 2)
    assert attributes.total().size == sum(tensor.numel() for tensor in examples()["a pruned channel"].model.parameters())
