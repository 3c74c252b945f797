"""A search within a budget finds the same schedule after it was killed, and in other circumstances."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from killed import finish, kill, rows, start

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[3]
SEARCHES = {
    "GCN": ("models/paper/gcn.py", "--data", "karate", "--budget", "small"),
    "SAE": ("models/paper/sae.py", "--small", "--machine", "ideal", "--budget", "small"),
}
"""What is searched: a model that takes half a minute, and one that takes seconds."""


@pytest.fixture(params=SEARCHES)
def words(request: pytest.FixtureRequest) -> list[str]:
    model, *options = SEARCHES[request.param]
    return ["schedule", str(ROOT / model), *options, "--quiet"]


def test_a_search_that_is_killed_goes_on(words: list[str], tmp_path: Path, draws: Callable[[int], range]) -> None:
    """It simulates nothing that it would not have in peace."""
    chance, killed = random.Random(draws(10).start), [*words, "--store", "killed.sqlite", "-o", "killed.yaml", "--jobs", "2"]
    seconds = finish(tmp_path, *words, "--store", "peace.sqlite", "-o", "peace.yaml", "--jobs", "2")
    for _ in draws(10):
        kill(start(tmp_path, *killed), chance.uniform(0.05, 1) * seconds, None, chance)
    finish(tmp_path, *killed)
    assert (tmp_path / "peace.yaml").read_bytes() == (tmp_path / "killed.yaml").read_bytes()
    assert rows(tmp_path / "killed.sqlite").keys() <= rows(tmp_path / "peace.sqlite").keys()


def test_a_search_finds_the_same_again(words: list[str], tmp_path: Path, draws: Callable[[int], range]) -> None:
    """With another order of hashing, and one process or two."""
    for number in draws(10):
        options = ["--store", f"{number}.sqlite", "-o", f"{number}.yaml", "--jobs", str(1 + number % 2)]
        finish(tmp_path, *words, *options, PYTHONHASHSEED=str(number))
    assert len({path.read_bytes() for path in tmp_path.glob("*.yaml")}) == 1
