"""The engine at a memory that takes time: it says what the reference says, token for token, and asks for the same lines."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from engines import LIMITS, Found, case_of, differences
from random_graphs import random_case
from random_graphs.case import Case

from fuseflow.errors import SimulationError
from fuseflow.samml.text import parse
from fuseflow.sim import load_machine
from fuseflow.sim.engine.execute import DEFAULTS, run
from fuseflow.sim.engine.execute import execute as fast
from fuseflow.sim.engine.jit import library
from fuseflow.sim.engine.layout import lay_out
from fuseflow.sim.engine.place import Limits
from fuseflow.sim.engine.service import Gathered
from fuseflow.sim.memory.controller import Controller
from fuseflow.sim.memory.memory import Memory
from fuseflow.sim.memory.models import ComalFixed, Hbm2, Ideal
from fuseflow.sim.reference.execute import execute as reference
from fuseflow.tensors import pack

GRAPHS, CHUNK = 600, 20
IDEAL = load_machine("ideal")
VECTOR = """
graph vector
tensor A[{n}]  dense f32
tensor Y[{n}]  dense f32
output Y

root = root()
A_i = scan(root) A.0
A_val = load(A_i.ref) A
write_Y_i = write(A_i.crd) Y.0
write_Y_val = write(A_val) Y.vals
"""
MODELS = (Hbm2, Hbm2, Hbm2, ComalFixed, Ideal)


def settings(seed: int) -> dict[str, Any]:
    """Requests without an answer, lines ahead, and the model of a random case."""
    rng = random.Random(seed)
    model, channels = rng.choice(MODELS), rng.choice((1, 8))
    return {
        "make": lambda ports: Memory(model(channels) if model is Hbm2 else model(), ports),
        "outstanding": rng.choice((1, 2, 32)),
        "ahead": rng.choice((0, 1, 8)),
        "line": rng.choice((32, 64, 64, 64, 256)),
        "window": rng.choice((0, 0, 1) if model is Ideal else (0, 0, 1, 5)),
    }


def disagreements(case: Case, limits: Limits, options: dict[str, Any]) -> Iterator[str]:
    """One line for everything in which the engine differs from the reference."""
    expected = _run(reference, case, attach=lambda: Controller(**{**options, "window": 0}))
    found = _run(fast, case, attach=lambda: Controller(**options), limits=limits)
    yield from differences(case, expected, found)


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
        found = list(disagreements(case, limits, settings(seed)))
        assert not found, f"seed {seed} with {limits}: " + "\n".join(found[:5])


ROWS = """
graph rows
tensor A[{n}, {n}]  csr f32
tensor X[{n}, {m}]  dense f32
tensor Y[{n}, {m}]  csr f32
output Y

root = root()
A_i = scan(root) A.0 sequential
A_k = scan(A_i.ref) A.1 sequential
X_k = locate(A_k.crd) X.0
X_j = scan(X_k) X.1
A_val = load(A_k.ref) A
rep_j = repeat(A_val, X_j.crd)
X_val = load(X_j.ref) X
mul = alu(rep_j, X_val) mul N->0,N->0
acc = accumulate(A_k.crd, X_j.crd, mul) sum order=1
write_Y_i = write(A_i.crd) Y.0
write_Y_j = write(acc.crd) Y.1
write_Y_val = write(acc.val) Y.vals
"""


@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize(("outstanding", "ahead", "channels"), [(32, 8, 8), (32, 8, 1), (1, 8, 1), (2, 0, 8), (64, 100, 1)])
def test_a_product_agrees(limits: Limits, outstanding: int, ahead: int, channels: int) -> None:
    """Long enough that rings of requests and of runs turn over many times, and refreshes come between."""
    case = case_of(ROWS.format(n=12, m=40).partition("graph rows")[2], seed=1)
    options = {"make": lambda ports: Memory(Hbm2(channels), ports), "outstanding": outstanding, "ahead": ahead}
    assert not list(disagreements(case, limits, options))


def test_memory_does_not_grow_with_what_is_far_ahead() -> None:
    """The scans of dense levels need no memory, and run ahead of the load: as far as their rings go, while the memory is behind them."""
    text = (
        VECTOR.replace("[{n}]", "[2000, 50]")
        .replace("load(A_i.ref)", "load(A_j.ref)")
        .replace("write(A_i.crd)", "write(A_j.crd)")
    )
    graph = parse(text.replace("A_val =", "A_j = scan(A_i.ref) A.1\nA_val =").replace("Y.0", "Y.1"))
    tensors = {"A": pack(np.ones((2000, 50), np.float32), graph.declared["A"].format)}
    controller = Controller(lambda ports: Memory(Hbm2(), ports))
    layout = lay_out(graph, tensors, IDEAL, library(), DEFAULTS, controller=controller)
    assert run(layout, Gathered(), library())
    assert layout.streams["tail"].max() > 10 * DEFAULTS.runs
    assert max(len(ring) for ring in layout.rings) == DEFAULTS.runs
    assert all(len(controller.memory.requests(k)) <= 128 for k in range(len(controller.ports)))


def test_more_than_the_memory_holds_is_refused_alike() -> None:
    graph = parse(VECTOR.format(n=17))
    tensors = {"A": pack(np.ones(17, np.float32), graph.declared["A"].format)}
    for execute in (fast, reference):
        with pytest.raises(SimulationError, match=r"`write_Y_val` .*: writes more than the 64 bytes that the memory has for it"):
            execute(graph, tensors, IDEAL, attach=lambda: Controller(lambda ports: Memory(Hbm2(), ports), capacity=192))
