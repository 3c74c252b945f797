"""MobileNetV1: what is superfluous of its weights agrees with other code, with the committed figure, and with scrambling."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import sparta_figure14 as figure
import torch
from torch import Tensor

from fuseflow.frontend import load_model
from fuseflow.frontend.lifting import analyse_module
from fuseflow.frontend.lifting.analysis import analyse_exported, table_rule
from fuseflow.frontend.lifting.exported import export_module
from fuseflow.frontend.lifting.scrambling import Scrambler
from fuseflow.frontend.model_call import model_call

ROOT = Path(__file__).resolve().parents[3]
GOLDEN: dict[str, Any] = json.loads((ROOT / "tests/data/sparsity/mobilenet.json").read_text(encoding="utf-8"))
FAST = ["filter 0.5 of side 64, seed 3", "aligned 0.5 of side 64, seed 0", "filter 0.9 of side 64, seed 1"]


def cases() -> list[Any]:
    """How to prune, the share, the side and the seed, and what is superfluous then."""
    found = []
    for side in (64, 224):
        for key, shares in GOLDEN[f"side {side}"].items():
            if parts := re.fullmatch(r"(\w+) ([\d.]+), seeds 0\.\.(\d+)", key):
                assert len(shares) == int(parts[3]) + 1
                for seed, share in enumerate(shares):
                    name = f"{parts[1]} {parts[2]} of side {side}, seed {seed}"
                    marks = () if name in FAST else (pytest.mark.slow,)
                    found.append(pytest.param(parts[1], float(parts[2]), side, seed, share, id=name, marks=marks))
    return found


@pytest.mark.parametrize(("how", "share", "side", "seed", "expected"), cases())
def test_as_other_code_found(how: str, share: float, side: int, seed: int, expected: float):
    assert figure.superfluous(how, share, side, seed) == pytest.approx(expected, abs=1e-6)


def test_each_layer_as_other_code_found():
    model, inputs = figure.network(0, 64)
    found = analyse_module(model, inputs, figure.masks(model, "filter", 0.5))
    expected = GOLDEN["side 64"]["layers of filter 0.5, seed 0"]
    assert len(expected) == 28
    assert {name: round(found[f"{name}.weight"].row.dead_share, 6) for name in expected} == expected
    assert found.total().stored == sum(int(mask.sum()) for mask in figure.masks(model, "filter", 0.5).values()) + 120 * 1024


def test_the_figure_says_so():
    data = figure.collect()
    assert data["ours"]["filters 50 %"]["superfluous"] == GOLDEN["side 64"]["filter 0.5, seeds 0..19"]
    assert all(check.holds for check in figure.checks(data))
    assert "| 0.897 |" in figure.table(data) and "without coordination" in figure.table(data)


@pytest.mark.parametrize(("samples", "enough"), [(32, True), (4, False)])
def test_scrambling_alone_finds_the_same_if_there_are_enough_samples(samples: int, enough: bool):
    loaded = load_model(ROOT / "models" / "mobilenet.py", options={"small": True, "side": 16})
    masks: dict[str, Tensor] = figure.masks(loaded.module, "filter", 0.5)
    exported = export_module(model_call(loaded.module, loaded.inputs, None))
    rules = analyse_exported(exported, masks, Scrambler(0, trusted=False), table_rule)
    guessed = analyse_exported(exported, masks, Scrambler(samples, trusted=True), lambda call: None)
    weights = [name for name, tensor in rules.items() if tensor.kind == "parameter"]
    assert len(weights) == 28
    assert all(torch.equal(rules[name].dead, guessed[name].dead) for name in weights) == enough
    assert len(guessed.guesses) > 50 and all(guess.trusted for guess in guessed.guesses)
