"""The engine at a memory that takes time: on random graphs it says what the reference says, token for token, and asks for the same lines."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
from engines import LIMITS, Found, differences
from random_graphs import random_case
from random_graphs.case import Case

from fuseflow.errors import SimulationError
from fuseflow.sim.engine.execute import execute as fast
from fuseflow.sim.engine.place import Limits
from fuseflow.sim.memory.controller import Controller
from fuseflow.sim.memory.memory import Memory
from fuseflow.sim.memory.models import ComalFixed, Hbm2, Ideal
from fuseflow.sim.reference.execute import execute as reference

GRAPHS, CHUNK = 600, 20
MODELS = (Hbm2, Hbm2, Hbm2, ComalFixed, Ideal)


def settings(seed: int) -> dict[str, Any]:
    """Requests without an answer, lines ahead, and the model of a random case."""
    rng = random.Random(seed)
    model, channels = rng.choice(MODELS), rng.choice((1, 8))
    return {
        "make": lambda ports: Memory(model(channels) if model is Hbm2 else model(), ports),
        "outstanding": rng.choice((1, 2, 32)),
        "ahead": rng.choice((0, 1, 8)),
    }


def disagreements(case: Case, limits: Limits, seed: int, window: int = 0) -> Iterator[str]:
    """One line for everything in which the engine differs from the reference."""
    first, second = Controller(**settings(seed)), Controller(**settings(seed), window=window)
    expected = _run(reference, case, controller=first)
    found = _run(fast, case, controller=second, limits=limits)
    yield from differences(case, expected, found)
    if not isinstance(expected, SimulationError) and first.memory.statistics() != second.memory.statistics():
        yield f"ports: {first.memory.statistics()} against {second.memory.statistics()}"


def _run(execute: Any, case: Case, **options: Any) -> Found:
    try:
        return execute(case.graph, case.tensors, case.machine, record=True, **options)
    except SimulationError as error:
        return error


@pytest.mark.parametrize("first", range(0, GRAPHS, CHUNK))
def test_random_graphs_agree_token_for_token(first: int) -> None:
    """Outputs, cycles, statistics, streams, deadlocks and requests; on the engine with its usual limits and with tiny ones."""
    for seed in range(first, first + CHUNK):
        case, limits = random_case(seed), LIMITS[seed % len(LIMITS)]
        if case.machine.rules == "comal":
            continue
        found = list(disagreements(case, limits, seed))
        assert not found, f"seed {seed} with {limits}: " + "\n".join(found[:5])
