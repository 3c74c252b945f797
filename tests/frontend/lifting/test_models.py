"""Whole models: outputs stay as they are without what is dead, and something is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from lifted import Lifted, random_masks
from lifted_models import Causal, Encoder, Residual, shifted_norm
from torch import Tensor, nn

import fuseflow.sparsity as sp
from fuseflow.frontend import load_model
from fuseflow.frontend.lifting import analyse_module

ROOT = Path(__file__).resolve().parents[3]


def shifted_mobilenet() -> tuple[nn.Module, tuple[Any, ...]]:
    loaded = load_model(ROOT / "models" / "mobilenet.py", options={"small": True, "shifted": True})
    assert isinstance(loaded.module, nn.Module) and isinstance(loaded.inputs, tuple)
    return loaded.module, loaded.inputs


MODELS = {
    "residual": lambda: (Residual(), (torch.randn(2, 3, 8, 8),)),
    "encoder": lambda: (Encoder(), (torch.randint(1, 20, (2, 6)), torch.tensor([[False] * 6, [False] * 4 + [True] * 2]))),
    "causal": lambda: (Causal(), (torch.randn(2, 5, 8),)),
    "causal by a sum": lambda: (Causal(added=True), (torch.randn(2, 5, 8),)),
    "recurrent": lambda: (nn.GRU(6, 4, batch_first=True), (torch.randn(2, 3, 6),)),
    "recurrent with cells": lambda: (nn.LSTM(6, 4, batch_first=True), (torch.randn(2, 3, 6),)),
    "shifted mobilenet": shifted_mobilenet,
}


@pytest.mark.parametrize("name", MODELS)
def test_outputs_stay_without_what_is_dead(name: str):
    torch.manual_seed(0)
    model, inputs = MODELS[name]()
    model.eval()
    masks = random_masks(model, torch.Generator().manual_seed(0))
    constants = {name for name, module in model.named_modules() if isinstance(module, nn.BatchNorm2d)}
    masks = {name: mask for name, mask in masks.items() if name.rpartition(".")[0] not in constants}
    lifted = Lifted(model, inputs, masks)
    lifted.assert_unchanged()
    total = lifted.found.total()
    assert not lifted.found.guesses and total.dead >= total.size - total.stored + (not name.startswith("recurrent"))


def test_a_pruned_channel_behind_a_batch_norm_is_a_constant():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(1, 2, 1, bias=False), shifted_norm(2), nn.Flatten(), nn.Linear(8, 3)).eval()
    keep = torch.tensor([True, False]).view(2, 1, 1, 1)
    found = analyse_module(model, (torch.ones(1, 1, 2, 2),), {"0.weight": keep})
    norm = model[1]
    shift = norm.bias[1] - norm.weight[1] * norm.running_mean[1] / torch.sqrt(norm.running_var[1] + norm.eps)
    behind = found["1.add_2"]
    assert behind.known.tolist() == [[[[False] * 2] * 2, [[True] * 2] * 2]]
    torch.testing.assert_close(behind.value[0, 1], shift.detach().expand(2, 2))
    assert found["3.weight"].dead.sum() == 0, "the constant is multiplied with weights"
    assert found["1.bias"].row.constant == 2 and found["1.bias"].row.dead == 0


def test_a_residual_input_stays_alive():
    """A rule that unites what neighbours say would prune the first feature of x, which goes around the product."""

    class Around(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lin = nn.Linear(3, 3, bias=False)

        def forward(self, x: Tensor) -> Tensor:
            return x + torch.relu(self.lin(x))

    keep = torch.ones(3, 3, dtype=torch.bool)
    keep[:, 0] = False
    found = analyse_module(Around(), (torch.ones(2, 3),), {"lin.weight": keep})
    assert bool(found["x"].needed.all()) and found["lin.weight"].row.dead == 3


@pytest.mark.parametrize("added", [False, True])
def test_what_a_mask_of_scores_hides_needs_nothing(added: bool):
    torch.manual_seed(0)
    found = analyse_module(Causal(added), (torch.randn(1, 5, 8),), {})
    hidden = ~torch.ones(5, 5).tril().bool()
    assert torch.equal(found["softmax"].known[0], hidden) and not found["softmax"].value.any()
    assert not found["div"].needed[0][hidden].any() and found["div"].needed[0][~hidden].all()


def test_a_tied_weight_is_one_tensor():
    model = Causal()
    keep = torch.ones(8, 8, dtype=torch.bool)
    keep[:, :3] = False
    found = analyse_module(model, (torch.randn(1, 5, 8),), {"head.weight": keep})
    assert found["head.weight"] is found["embed.weight"]
    assert found["embed.weight"].row.dead == 24 and [row.name for row in found.rows].count("embed.weight") == 1


def test_an_8_by_8_maximum_reads_all_of_its_window():
    model = nn.Sequential(nn.Conv2d(1, 1, 1, bias=False), nn.MaxPool2d(8))
    images = (torch.ones(1, 1, 16, 16),)
    assert analyse_module(model, images, {})["input"].needed.all()


def test_masks_are_those_that_the_model_carries():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 8, bias=False), nn.ReLU(), nn.Linear(8, 4, bias=False))
    rules = sp.SparsityBuilder()
    rules.set_weight("0.weight", initial_sparsifier=sp.Filter(0.5))
    found = analyse_module(rules.get_sparse_model(model), (torch.ones(1, 6),))
    assert found["0.weight"].row.stored == 24 and found["2.weight"].row.dead == 16
    assert analyse_module(model, (torch.ones(1, 6),))["2.weight"].row.dead == 0


def test_a_rule_of_an_intermediate_keeps_zeros_and_reads_the_rest():
    model = nn.Sequential(nn.Linear(6, 8, bias=False), nn.ReLU(), nn.Linear(8, 4, bias=False))
    rules = sp.SparsityBuilder()
    rules.set_weight("0.weight", initial_sparsifier=sp.Filter(0.5))
    rules.set_interm("1", external_sparsifier=sp.TopK(2))
    lifted = Lifted(sparse := rules.get_sparse_model(model), (torch.randn(3, 6),), {"0.weight": sparse[0].weight != 0})
    lifted.assert_unchanged()
    assert lifted.found["2.weight"].row.dead == 16 and lifted.found.guesses == ()


def test_what_is_compared_by_a_rule_is_needed_though_nothing_multiplies_it():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 8, bias=False), nn.ReLU(), nn.Linear(8, 4, bias=False))
    rules = sp.SparsityBuilder()
    rules.set_interm("1", external_sparsifier=sp.TopK(2))
    lifted = Lifted(rules.get_sparse_model(model), (torch.randn(3, 6),), {"2.weight": torch.arange(8).expand(4, 8) > 2})
    lifted.assert_unchanged()
    assert lifted.found["0.weight"].row.dead == 0


def test_the_user_s_model_stays_as_it_is():
    torch.manual_seed(0)
    model, inputs = MODELS["residual"]()
    model.eval()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    state = torch.get_rng_state()
    analyse_module(model, inputs, random_masks(model, torch.Generator().manual_seed(0)))
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())


def test_the_table():
    model = nn.Sequential(nn.Linear(4, 3, bias=False), nn.ReLU(), nn.Linear(3, 2, bias=False))
    keep = torch.ones(3, 4, dtype=torch.bool)
    keep[1], keep[0, 2] = False, False
    assert str(analyse_module(model, (torch.ones(1, 4),), {"0.weight": keep})).splitlines() == [
        "tensor    shape  stored before  dead  constant  needed  now",
        "0.weight  3 x 4              7     5         0       7    7",
        "2.weight  2 x 3              6     2         0       4    4",
        "total                       13     7         0      11   11",
    ]
