"""The zoo: how many models it has, and that the committed tables say what becomes of its fast models. `make zoo` runs all."""

from __future__ import annotations

import ctypes
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
import zoo_gradients
import zoo_hollow
import zoo_registry
import zoo_table
import zoo_verdict

from fuseflow.frontend.sources import Source

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE, TRAINING_PAGE = DOCS / "measured" / "models.md", DOCS / "measured" / "training.md"
FAST = [name for name, row in zoo_table.read().items() if row["fast"]]
LIBRARIES = ("pyg", "huggingface", "plain")
LONGEST = {"vit", "gpt2", "llama"}
"""Transformers that take seconds each. BERT, which is left, has what they have."""


@pytest.fixture(scope="module")
def models() -> dict[str, zoo_registry.Model]:
    pytest.importorskip("torch_geometric")
    pytest.importorskip("transformers")
    return zoo_registry.all_models()


def test_the_zoo_has_as_many_models_of_each_family_as_it_promises(models: dict[str, zoo_registry.Model]) -> None:
    counts = Counter(model.family for model in models.values())
    assert counts["pyg"] >= 45 and counts["huggingface"] >= 30 and counts["plain"] >= 60 and counts["scientific"] >= 15
    assert counts["dynamic"] >= 60


def test_the_table_has_every_model_in_order_and_no_other(models: dict[str, zoo_registry.Model]) -> None:
    rows = zoo_table.read()
    assert list(rows) == list(models)
    assert [name for name, model in models.items() if model.fast] == FAST
    assert zoo_table.text(rows.values()) == zoo_table.TABLE.read_text()


def test_no_model_of_the_table_crashes_or_is_wrong() -> None:
    verdicts = {name: zoo_table.verdict(row) for name, row in zoo_table.read().items()}
    assert not {name: verdict for name, verdict in verdicts.items() if verdict in ("crash", "wrong")}


def test_the_page_shows_the_summary_of_the_table() -> None:
    assert zoo_table.markdown(zoo_table.counts(zoo_table.read().values())) in PAGE.read_text()


def test_the_table_of_gradients_has_models_of_libraries_in_order_and_none_is_wrong(models: dict[str, zoo_registry.Model]) -> None:
    rows = zoo_table.read(zoo_gradients.TABLE)
    assert {name for name, model in models.items() if model.family in LIBRARIES} <= rows.keys()
    assert list(rows) == [name for name in models if name in rows]
    assert zoo_table.text(rows.values()) == zoo_gradients.TABLE.read_text()
    assert not {name for name, row in rows.items() if row["gradients"] in ("crash", "wrong")}


def test_the_page_shows_the_summary_of_gradients() -> None:
    counts = zoo_gradients.counts(zoo_table.read(zoo_gradients.TABLE).values())
    assert zoo_table.markdown(counts) in TRAINING_PAGE.read_text()


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in FAST if name in zoo_table.read(zoo_gradients.TABLE)])
def test_the_table_says_what_becomes_of_the_gradients_of_a_fast_model(name: str, models: dict[str, zoo_registry.Model]) -> None:
    assert zoo_gradients.row(models[name]) == zoo_table.read(zoo_gradients.TABLE)[name]


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (name in LONGEST)) for name in FAST])
def test_the_table_says_what_becomes_of_a_fast_model(name: str, models: dict[str, zoo_registry.Model]) -> None:
    assert zoo_table.line(zoo_verdict.row(models[name])) == zoo_table.line(zoo_table.read()[name])


def model(module: torch.nn.Module, *args: torch.Tensor) -> zoo_registry.Model:
    """A model that is not in the zoo."""
    return zoo_registry.Model("model", "plain", lambda: (module, args), fast=False)


def test_elements_are_counted_on_both_sides() -> None:
    mlp = model(torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4)), torch.rand(5, 8))
    source = zoo_verdict._imported(mlp)
    assert isinstance(source, Source)
    assert zoo_hollow.elements_written(mlp) == 5 * (16 + 16 + 4)
    products, biases, relu = 2 * 5 * 16 * (8 + 4), 5 * (16 + 4), 5 * 16
    assert zoo_hollow.program_elements(source.program) == products + biases + relu


def test_a_tensor_that_was_computed_before_import_is_found() -> None:
    class Doubled(torch.nn.Module):
        """A model that reads memory behind the back of PyTorch."""

        def forward(self, x: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
            numbers = np.frombuffer((ctypes.c_float * seen.numel()).from_address(seen.data_ptr()), np.float32)
            return x + torch.from_numpy(2 * numbers)

    doubled = model(Doubled(), torch.rand(3), torch.rand(3))
    source = zoo_verdict._imported(doubled)
    assert isinstance(source, Source)
    assert zoo_hollow.computed_before_import(doubled, source) == ["constant"]
    entry = zoo_verdict.row(doubled)
    assert entry["hollow"] and entry["baked"] == ["constant"] and zoo_table.verdict(entry) == "hollow"


@pytest.mark.parametrize("fault", [1e-3, np.nan])
def test_a_wrong_element_is_found(fault: float) -> None:
    expected = torch.rand(4, 1, 3) + 1
    output = expected.numpy().reshape(4, 3).copy()
    assert not zoo_verdict.difference([output], [expected])
    output[2, 1] += fault * 2
    assert zoo_verdict.difference([output], [expected]) == "output 0 differs from PyTorch"


def test_a_missing_output_and_another_shape_are_found() -> None:
    assert zoo_verdict.difference([], [torch.ones(2)]) == "0 outputs instead of 1"
    assert zoo_verdict.difference([np.ones(3)], [torch.ones(2)]) == "output 0 has shape (3,) instead of (2,)"
