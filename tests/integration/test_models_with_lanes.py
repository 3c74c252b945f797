"""The models of the repository with lanes compute what they do without. Of two models, whole numbers among them, every two choices of
factors, fusion, machine and place are run together at least once, of the others one; `pytest -m slow` covers all of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from itertools import combinations, product
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import sources

import fuseflow as ff
from fuseflow.errors import ScheduleError
from fuseflow.run.compiled import Compiled

FACTORS = (1, 2, 3, 4, 8, 64)
MOST = 64
"""Lanes of two indices together."""
FUSED = ("none", "layerwise", "full")
MACHINES = ("ideal", "rda", "comal")
PLACES = {"outer": (0, 1), "inner": (-1, -2), "ends": (0, -1)}
"""Which two loops of every region are dealt, of its order; a region of one loop has one."""


@dataclass(frozen=True)
class Model:
    """`exact`: all values are whole numbers, so that sums are exact in any order."""

    file: str
    data: str | None = None
    options: tuple[tuple[str, Any], ...] = ()
    exact: bool = False


MODELS = {
    "gcn": Model("gcn.py", "karate:nodes=12"),
    "gcn_pyg": Model("gcn_pyg.py", "karate:nodes=12"),
    "graphsage": Model("graphsage.py", "karate:nodes=12"),
    "sae": Model("sae.py"),
    "attention": Model("gpt_bigbird.py", options=(("part", "attention"),)),
    "decoder": Model("gpt_bigbird.py", "bigbird:block=2,length=8,features=4", (("part", "decoder"),)),
    "gpt": Model("gpt_bigbird.py"),
    "paper_gcn": Model("paper/gcn.py", "karate:nodes=12"),
    "paper_graphsage": Model("paper/graphsage.py", "karate:nodes=8", exact=True),
    "paper_sae": Model("paper/sae.py"),
    "paper_gpt": Model("paper/gpt.py", "bigbird:block=2,length=4,features=6", (("decoders", 1),)),
}


@dataclass(frozen=True)
class Combination:
    model: str
    first: int
    second: int
    fused: str
    machine: str
    place: str

    def __str__(self) -> str:
        return f"{self.model}-{self.fused}-{self.machine}-{self.place}-{self.first}x{self.second}"

    @property
    def allowed(self) -> bool:
        return self.first * self.second <= MOST


def every(models: Sequence[str]) -> list[Combination]:
    """The whole product."""
    found = (Combination(*values) for values in product(*_choices(models)))
    return [combination for combination in found if combination.allowed]


def covering(models: Sequence[str]) -> Iterator[Combination]:
    """Few of them that hold every two choices together which any of them holds: the first two that are not yet covered, and for the rest,
    one after the other, what covers most with them."""
    choices = _choices(models)
    missing = {
        ((a, x), (b, y)): None
        for a, b in combinations(range(len(choices)), 2)
        for x, y in product(choices[a], choices[b])
        if (a, b) != (1, 2) or x * y <= MOST
    }
    while missing:
        chosen = dict(next(iter(missing)))
        for at, values in enumerate(choices):
            if at not in chosen:
                chosen[at] = max((v for v in values if _fits({**chosen, at: v})), key=lambda v: _new(chosen, at, v, missing))
        missing = {pair: None for pair in missing if any(chosen[at] != value for at, value in pair)}
        yield Combination(*(chosen[at] for at in range(len(choices))))


def _choices(models: Sequence[str]) -> tuple[Sequence[Any], ...]:
    return models, FACTORS, FACTORS, FUSED, MACHINES, tuple(PLACES)


def _fits(chosen: Mapping[int, Any]) -> bool:
    return chosen.get(1, 1) * chosen.get(2, 1) <= MOST


def _new(chosen: Mapping[int, Any], at: int, value: Any, missing: Mapping[Any, None]) -> int:
    """How many pairs a choice covers together with those before it."""
    pairs = (((at, value), (b, y)) if at < b else ((b, y), (at, value)) for b, y in chosen.items())
    return sum(pair in missing for pair in pairs)


# Runs ------------------------------------------------------------------------------------------------------------------------


@cache
def serial(name: str, fused: str) -> tuple[Compiled, Mapping[str, npt.NDArray[Any]]]:
    """The model on one lane, and what it computes."""
    compiled = _compiled(name, ff.Schedule.fuse(fused), "ideal")
    return compiled, compiled.run().outputs


def _compiled(name: str, schedule: ff.Schedule, machine: str) -> Compiled:
    model = MODELS[name]
    options = {"small": True, **dict(model.options)}
    return sources.compiled(model.file, schedule, machine, options, model.data)


def lanes(combination: Combination) -> dict[str, int]:
    """Of every region the two loops at the places, as a schedule names them."""
    before, _ = serial(combination.model, combination.fused)
    found: dict[str, int] = {}
    for region in before.regions:
        order = region.fused.order if region.einsums else ()
        for place, count in zip(PLACES[combination.place], (combination.first, combination.second), strict=True):
            if -len(order) <= place < len(order):
                found.setdefault(f"{region.name}.{order[place]}", count)
    return found


def wrong(combination: Combination) -> str:
    """What is wrong with a run, nothing if it is as it must be: values those of one lane, whole numbers exactly, and of PyTorch."""
    before, wanted = serial(combination.model, combination.fused)
    asked = lanes(combination)
    try:
        schedule = ff.Schedule.fuse(combination.fused).par(**asked)
        compiled = _compiled(combination.model, schedule, combination.machine)
    except ScheduleError as error:
        # Two loops that are one, or more nodes than a graph can hold: said so.
        return "" if "are one loop" in error.message or "may take" in error.message else str(error)
    result = compiled.run()
    if [r.fused.order for r in compiled.regions] != [r.fused.order for r in before.regions]:
        return "lanes change the order of the loops"
    if result.check is None or not result.check.passed or result.check.max_rel_error > 1e-5:
        return f"not what {result.check.reference if result.check else 'a check'} says: {result.check}"
    for name, array in wanted.items():
        apart = _apart(np.asarray(result.outputs[name], np.float64), np.asarray(array, np.float64))
        if apart > (0 if MODELS[combination.model].exact else 1e-5):
            return f"`{name}` differs from that of one lane by {apart:.1e} of the largest"
    return ""


def _apart(found: npt.NDArray[np.float64], wanted: npt.NDArray[np.float64]) -> float:
    """The largest difference, relative to the largest magnitude; infinities and NaN stand in the same places."""
    finite = np.isfinite(wanted)
    if not np.array_equal(found[~finite], wanted[~finite], equal_nan=True):
        return float("inf")
    scale = float(np.abs(wanted[finite]).max(initial=0.0))
    return float(np.abs(found[finite] - wanted[finite]).max(initial=0.0)) / (scale or 1.0)


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
        _, outputs = serial(name, "layerwise")
        assert all((array == array.round()).all() and array.any() for array in outputs.values())


@pytest.mark.slow
@pytest.mark.parametrize("model", THERE)
def test_every_combination_of_a_model(model: str) -> None:
    """Hundreds for each model."""
    assert [f"{combination}: {why}" for combination in every([model]) if (why := wrong(combination))] == []
