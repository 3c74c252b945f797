"""Recipes: one-shot, iterative and layer-wise pruning, and how long they are."""

import ast
import inspect

import pytest
import torch
from torch import nn
from torch.nn import functional

import fuseflow.sparsity as sp
from fuseflow.errors import SparsityError


class Case:
    """A small model with an optimizer, and a function that trains it and notes what it keeps of each weight meanwhile."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 4))
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=0.01)
        self.kept: list[list[float]] = []

    def train(self) -> None:
        for _ in range(3):
            self.optimizer.zero_grad()
            functional.mse_loss(self.model(torch.randn(8, 8)), torch.randn(8, 4)).backward()
            self.optimizer.step()
        self.kept.append([float((self.model[k].weight != 0).float().mean()) for k in (0, 2, 4)])


SPEC = sp.parse_sparsify("*.weight=magnitude:0.5")


def test_one_shot_prunes_all_weights_before_it_trains() -> None:
    case = Case()
    handle = sp.one_shot(case.model, SPEC, case.optimizer, case.train)
    assert case.kept == [[0.5, 0.5, 0.5]]
    assert len(handle.masks) == 3


def test_iterative_prunes_more_and_more() -> None:
    case = Case()
    handle = sp.iterative(case.model, SPEC, case.optimizer, case.train, (0.25, 0.5, 0.75))
    assert case.kept == [[0.75] * 3, [0.5] * 3, [0.25] * 3]
    assert {row.rule for row in handle.report()} == {"magnitude:0.75"}


def test_iterative_pruning_without_fractions_is_refused() -> None:
    case = Case()
    with pytest.raises(SparsityError, match="no fraction"):
        sp.iterative(case.model, SPEC, case.optimizer, case.train, ())
    assert sp.sparsity_of(case.model) is None


def test_layer_wise_prunes_one_weight_after_the_other() -> None:
    case = Case()
    handle = sp.layer_wise(case.model, SPEC, case.optimizer, case.train)
    assert case.kept == [[0.5, 1, 1], [0.5, 0.5, 1], [0.5, 0.5, 0.5]]
    case.train()
    assert case.kept[-1] == [0.5, 0.5, 0.5]
    handle.remove()
    case.train()
    assert min(case.kept[-1]) > 0.5


@pytest.mark.parametrize("recipe", [sp.one_shot, sp.iterative, sp.layer_wise])
def test_a_recipe_has_at_most_twelve_lines(recipe: object) -> None:
    function = ast.parse(inspect.getsource(recipe)).body[0]
    assert isinstance(function, ast.FunctionDef)
    assert (function.end_lineno or 0) - function.lineno + 1 <= 12
