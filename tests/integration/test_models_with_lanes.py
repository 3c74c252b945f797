"""The models of the repository with lanes compute what they do without. Of two models, whole numbers among them, every two choices of
factors, fusion, machine and place are run together at least once, of the others one; `pytest -m slow` covers all of them."""

from __future__ import annotations

from importlib.util import find_spec
from itertools import combinations

import model_lanes
import pytest
from model_lanes import FACTORS, MODELS, Combination, covering, every, wrong

THERE = [name for name in MODELS if name != "gcn_pyg" or find_spec("torch_geometric")]
TWO = ["paper_sae", "paper_graphsage"]
ONE_EACH = [
    Combination("gcn", 3, 4, "full", "rda", "outer"),
    Combination("gcn_pyg", 8, 2, "layerwise", "comal", "ends"),
    Combination("graphsage", 2, 3, "full", "comal", "inner"),
    Combination("sae", 4, 8, "full", "rda", "ends"),
    Combination("attention", 4, 4, "full", "rda", "outer"),
    Combination("decoder", 2, 4, "layerwise", "ideal", "outer"),
    Combination("paper_gcn", 64, 1, "full", "rda", "outer"),
    Combination("paper_gpt", 3, 2, "full", "comal", "ends"),
]


@pytest.mark.parametrize("combination", [*covering(TWO), *(c for c in ONE_EACH if c.model in THERE)], ids=str)
def test_a_model_with_lanes(combination: Combination) -> None:
    assert wrong(combination) == ""


@pytest.mark.slow
@pytest.mark.parametrize("combination", list(covering(THERE)), ids=str)
def test_every_model_with_lanes(combination: Combination) -> None:
    assert wrong(combination) == ""


@pytest.mark.parametrize("models", [TWO, list(MODELS)], ids=len)
def test_every_two_choices_are_covered(models: list[str]) -> None:
    def pairs(found: list[Combination]) -> set[object]:
        names = Combination.__dataclass_fields__
        return {(a, getattr(c, a), b, getattr(c, b)) for c in found for a, b in combinations(names, 2)}

    chosen = list(covering(models))
    assert pairs(chosen) == pairs(every(models))
    assert all(c.allowed for c in chosen)
    least = max(
        len(models) * len(FACTORS), len({(c.first, c.second) for c in every(models)})
    )  # so many hold the two largest choices
    assert len(chosen) <= 1.25 * least


def test_whole_numbers_are_whole() -> None:
    for name in (name for name in MODELS if MODELS[name].exact):
        _, outputs = model_lanes.serial(name, "layerwise")
        assert all((array == array.round()).all() and array.any() for array in outputs.values())


@pytest.mark.slow
@pytest.mark.parametrize("model", THERE)
def test_every_combination_of_a_model(model: str) -> None:
    """Hundreds for each model."""
    assert [f"{combination}: {why}" for combination in every([model]) if (why := wrong(combination))] == []
