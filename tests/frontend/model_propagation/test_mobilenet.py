"""MobileNetV1: what is superfluous of its weights agrees with other code, with the committed figure, and with scrambling."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import sparta_figure14 as figure
import torch
from lifted import analysed
from lifted_models import mobilenet
from torch import Tensor

from fuseflow.frontend.model_propagation.scrambling import Scrambler

ROOT = Path(__file__).resolve().parents[3]
GOLDEN: dict[str, Any] = json.loads((ROOT / "tests/data/sparsity/mobilenet.json").read_text(encoding="utf-8"))
FAST_SEEDS = 2
"""Of each way to prune, at the smaller side. `pytest -m slow` checks every seed that is recorded."""


def cases() -> list[Any]:
    """How to prune, the share, the side and the seed, and what is superfluous then."""
    params = []
    for side in (64, 224):
        for key, shares in GOLDEN[f"side {side}"].items():
            if parts := re.fullmatch(r"(\w+) ([\d.]+), seeds 0\.\.(\d+)", key):
                assert len(shares) == int(parts[3]) + 1
                for seed, share in enumerate(shares):
                    name = f"{parts[1]} {parts[2]} of side {side}, seed {seed}"
                    marks = () if side == 64 and seed < FAST_SEEDS else (pytest.mark.slow,)
                    params.append(pytest.param(parts[1], float(parts[2]), side, seed, share, id=name, marks=marks))
    return params


@pytest.mark.parametrize(("how", "share", "side", "seed", "expected"), cases())
def test_as_other_code_found(how: str, share: float, side: int, seed: int, expected: float):
    model, _ = figure.network(seed, side)
    total = analysed(mobilenet(small=False, side=side).graph, figure.masks(model, how, share)).total()
    assert total.dead / total.size == pytest.approx(expected, abs=1e-6)


def test_each_layer_as_other_code_found():
    model, _ = figure.network(0, 64)
    analysis = analysed(mobilenet(small=False, side=64).graph, figure.masks(model, "filter", 0.5))
    expected = GOLDEN["side 64"]["layers of filter 0.5, seed 0"]
    rows = {name: analysis[f"{name}.weight"].row for name in expected}
    assert len(expected) == 28 and {name: round(row.dead / row.size, 6) for name, row in rows.items()} == expected
    kept = sum(int(mask.sum()) for mask in figure.masks(model, "filter", 0.5).values())
    assert analysis.total().stored == kept + 120 * 1024 and analysis.total().now == sum(row.now for row in rows.values())


def test_the_figure_says_so():
    data = figure.collect()
    assert data["ours"]["filters 50 %"]["superfluous"] == GOLDEN["side 64"]["filter 0.5, seeds 0..19"]
    assert all(check.holds for check in figure.checks(data))
    assert "| 0.897 |" in figure.table(data) and "without coordination" in figure.table(data)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_the_figure_computes_what_other_code_found(seed: int):
    assert figure.superfluous("level", 0.9, 224, seed) == pytest.approx(
        GOLDEN["side 224"]["level 0.9, seeds 0..1"][seed], abs=1e-6
    )


@pytest.mark.parametrize(("samples", "enough"), [(32, True), (4, False)])
def test_scrambling_alone_finds_the_same_if_there_are_enough_samples(samples: int, enough: bool):
    network = mobilenet()
    masks: dict[str, Tensor] = figure.masks(network.model, "filter", 0.5)
    rules = analysed(network.graph, masks)
    guessed = analysed(network.graph, masks, Scrambler(samples, trusted=True), lambda call: None)
    weights = [name for name, tensor in rules.items() if tensor.kind == "parameter"]
    assert len(weights) == 28
    assert all(torch.equal(rules[name].dead, guessed[name].dead) for name in weights) == enough
    assert len(guessed.guesses) > 50 and all(guess.trusted for guess in guessed.guesses)
