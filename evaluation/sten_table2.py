"""After table 2 of STen: what pruning by each recipe, and by each rule, costs in accuracy, and how many lines a recipe has.

    python evaluation/figures.py sten_table2 --run    # train again, 40 s on one core

The paper's network and data are not in the repository. So the task is a small one (`tiny_task.py`), and accuracies are compared with those
of the dense networks only.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from statistics import mean
from typing import Any

import tiny_task
from claims import Check, cell, markdown, within
from frame import Data, Figure, Options
from store import rows, write

STORE = "sten_table2"
SEEDS = (1, 2, 3)
LAYERS = "[02].weight"
LOSSES = {"magnitude:0.5": 0.02, "nm:2:4": 0.02, "nmg:2:4:4": 0.02, "magnitude:0.9": 0.06}
"""The accuracy that each rule may lose to the dense network."""

RECIPES = ("one_shot", "iterative", "layer_wise")
MASKS = ("fixed", "new")


def run(options: Options) -> None:
    """Train every network."""
    import torch

    torch.set_num_threads(1)
    task = tiny_task.task()
    write(STORE, (row_of(task, seed) for seed in SEEDS))


def row_of(task: tiny_task.Task, seed: int) -> Data:
    """Return the accuracies of the networks of one seed."""
    dense = tiny_task.dense_network(task, seed)
    prunings = {f"{rule} {when}": _tuned(rule, when) for rule in LOSSES for when in MASKS}
    prunings |= {recipe: _by_recipe(recipe) for recipe in RECIPES}
    tuned = {name: tiny_task.accuracy_after(task, dense, seed, prune) for name, prune in prunings.items()}
    once = {rule: tiny_task.accuracy_after(task, dense, seed, _tuned(rule, "fixed", epochs=0)) for rule in LOSSES}
    values = {"pruned": once, "tuned": tuned}
    rounded = {key: {name: round(value, 4) for name, value in of_key.items()} for key, of_key in values.items()}
    return {"key": f"seed {seed}", "dense": round(task.accuracy(dense), 4), **rounded}


def _tuned(rule: str, when: Any, epochs: int = tiny_task.TUNING_EPOCHS) -> Callable[..., None]:
    import fuseflow.sparsity as sp

    def prune(model: Any, optimizer: Any, train: Callable[[int], None]) -> None:
        sp.attach(model, sp.parse_sparsify(f"{LAYERS}={rule}"), optimizer, when=when)
        train(epochs)

    return prune


def _by_recipe(name: str) -> Callable[..., None]:
    """Return how a recipe prunes to 90 % within 16 epochs in all."""
    import fuseflow.sparsity as sp

    spec = sp.parse_sparsify(f"{LAYERS}=magnitude:0.9")

    def prune(model: Any, optimizer: Any, train: Callable[[int], None]) -> None:
        match name:
            case "one_shot":
                sp.one_shot(model, spec, optimizer, lambda: train(16))
            case "iterative":
                sp.iterative(model, spec, optimizer, lambda: train(4), (0.5, 0.7, 0.8, 0.9))
            case "layer_wise":
                sp.layer_wise(model, spec, optimizer, lambda: train(8))

    return prune


def lines_of(recipe: str) -> int:
    """Return the number of lines of a recipe, its head and its documentation included."""
    import fuseflow.sparsity as sp

    function = ast.parse(inspect.getsource(getattr(sp, recipe))).body[0]
    assert isinstance(function, ast.FunctionDef)
    return (function.end_lineno or 0) - function.lineno + 1


def collect() -> Data:
    of_seeds = list(rows(STORE).values())
    tuned = {name: mean(row["tuned"][name] for row in of_seeds) for name in of_seeds[0]["tuned"]}
    pruned = {rule: mean(row["pruned"][rule] for row in of_seeds) for rule in LOSSES}
    lines = {recipe: lines_of(recipe) for recipe in RECIPES}
    return {"dense": mean(row["dense"] for row in of_seeds), "pruned": pruned, "tuned": tuned, "lines": lines}


def table(data: Data) -> str:
    lines = [["dense", "", "", cell(data["dense"], ".3f")]]
    for rule in LOSSES:
        once = cell(data["pruned"][rule], ".3f")
        lines += [[f"`{rule}`, {when} masks", "", once, cell(data["tuned"][f"{rule} {when}"], ".3f")] for when in MASKS]
    for recipe in RECIPES:
        lines.append([f"`{recipe}` to 90 %", str(data["lines"][recipe]), "", cell(data["tuned"][recipe], ".3f")])
    return markdown(("mean of three seeds", "lines", "accuracy, only pruned", "accuracy, trained on"), lines)


def checks(data: Data) -> list[Check]:
    limits = [
        within(
            f"{rule}, {when} masks: at least {data['dense']:.3f} - {loss}",
            data["tuned"][f"{rule} {when}"],
            data["dense"] - loss,
            1,
            3,
        )
        for rule, loss in LOSSES.items()
        for when in MASKS
    ]
    recipes = [
        within(f"{recipe} to 90 %: at least the dense one - 0.06", data["tuned"][recipe], data["dense"] - 0.06, 1, 3)
        for recipe in RECIPES
    ]
    return [*limits, *recipes, within("lines of the longest recipe, at most 12", max(data["lines"].values()), 1, 12, 0)]


FIGURE = Figure(STORE, "After table 2 of STen: accuracy and lines", (STORE,), collect, table, checks, None, run)
