"""The fast engine against the reference interpreter: whether both say the same of a graph, field by field."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any, TypeAlias

import numpy as np
from dataflow import inputs, random_machine, with_depths
from random_graphs.case import Case
from random_graphs.compare import differences_of_streams

from fuseflow.errors import SimulationError
from fuseflow.native.kernel_library import library
from fuseflow.samml.nodes import Port
from fuseflow.samml.text import parse
from fuseflow.samml.verify import verify
from fuseflow.sim.engine.buffer_growth import PartOutput
from fuseflow.sim.engine.execute import DEFAULT_LIMITS, run
from fuseflow.sim.engine.execute import execute as fast
from fuseflow.sim.engine.network_layout import lay_out
from fuseflow.sim.engine.node_layout import Limits
from fuseflow.sim.outcome.deadlock import Deadlock, deadlock_error
from fuseflow.sim.outcome.statistics import Outcome
from fuseflow.sim.reference.execute import execute as reference

Found: TypeAlias = Outcome | Deadlock | SimulationError

LIMITS = (
    DEFAULT_LIMITS,
    Limits(runs=2, elements=2, pops=2, burst=2, writer_elements=4, blocks=1, windows=0),
    Limits(runs=4, elements=8, pops=4, burst=3, writer_elements=4, blocks=1),
    Limits(runs=2, elements=64, pops=2, writer_elements=16, blocks=2, windows=0),
    Limits(alone=0, threads=2),
    Limits(runs=2, elements=2, pops=2, burst=2, writer_elements=4, blocks=1, windows=0, alone=20, threads=3),
    Limits(runs=4, elements=8, pops=4, blocks=1, windows=0, alone=0, threads=4),
)
"""The usual ones, and some in which every ring wraps, every piece is cut, everything has to grow, and several threads run."""


def disagreements(case: Case, limits: Limits) -> Iterator[str]:
    """One line for everything in which the engine differs from the reference."""
    yield from differences(case, on_reference(case), on_engine(case, limits))


def disagreements_at_all_limits(case: Case) -> Iterator[str]:
    """The same for each of `LIMITS`. The reference has none, and says once what it does."""
    expected = on_reference(case)
    error = _deadlock_text(case, expected)
    for limits in LIMITS:
        yield from (f"{limits}: {line}" for line in differences(case, expected, on_engine(case, limits), error))


def on_reference(case: Case) -> Found:
    return _run(case, reference)


def on_engine(case: Case, limits: Limits) -> Found:
    return _run(case, fast, limits=limits)


def differences(case: Case, expected: Found, found: Found, error: str = "") -> Iterator[str]:
    """The same of two runs. `error` is the text of the first one's deadlock, if it is known: it takes many runs to find."""
    if isinstance(expected, SimulationError) or isinstance(found, SimulationError) or type(expected) is not type(found):
        if str(expected) != str(found):
            yield f"{_named(expected)} against {_named(found)}"
        return
    if isinstance(expected, Deadlock) and isinstance(found, Deadlock):
        if (expected.waiting, expected.nodes) != (found.waiting, found.nodes):
            yield from _first("waiting", expected.waiting, found.waiting)
            yield from _first("nodes", expected.nodes, found.nodes)
        texts = error or _deadlock_text(case, expected), _deadlock_text(case, found)
        if texts[0] != texts[1]:
            yield " against ".join(texts)
        return
    for field in fields(Outcome):
        a, b = getattr(expected, field.name), getattr(found, field.name)
        match field.name:
            case "streams":
                yield from (f"{port}: {line}" for port in a for line in differences_of_streams(a[port], b[port]))
            case "written":
                yield from (f"written {name}" for name in a if not same_written(a[name], b[name]))
            case "nodes" | "edges":
                yield from _first(field.name, a, b)
            case _ if a != b:
                yield f"{field.name}: {a} against {b}"


def _deadlock_text(case: Case, found: Found) -> str:
    """The text of the error of a deadlock, nothing for what is none."""
    return str(deadlock_error(found, case.graph)) if isinstance(found, Deadlock) else ""


def _run(case: Case, execute: Any, **options: Any) -> Found:
    try:
        return execute(case.graph, case.tensors, case.machine, record=True, **options)
    except SimulationError as error:
        return error


def _named(result: Any) -> str:
    return f"error {result}" if isinstance(result, SimulationError) else f"{type(result).__name__}"


def _first(name: str, a: Any, b: Any) -> Iterator[str]:
    if len(a) != len(b):
        yield f"{len(a)} {name} against {len(b)}: {a} against {b}"
    yield from (f"{name}: {x} against {y}" for x, y in zip(a, b, strict=False) if x != y)


def same_written(a: Any, b: Any) -> bool:
    """The reference leaves it to the assembly to round values to the type of the tensor."""
    pairs: list[tuple[Mapping[int, Any], Mapping[int, Any]]] = [(a.crd, b.crd), (a.pos, b.pos)]
    arrays = all(x.keys() == y.keys() and all(np.array_equal(x[k], y[k]) for k in x) for x, y in pairs)
    with np.errstate(over="ignore"):
        rounded = np.asarray(a.values).astype(np.asarray(b.values).dtype)
    return arrays and np.array_equal(rounded, b.values, equal_nan=True)


def case_of(text: str, seed: int) -> Case:
    """A verified graph with random tensors, latencies and depths."""
    rng, graph = random.Random(seed), parse(f"graph example\n{text}")
    verify(graph)
    tensors = inputs(graph, np.random.default_rng(seed), rng.choice((0.2, 0.5, 0.8, 1.0)))
    machine = random_machine(rng, (None, None, 1, 2, 5))
    return Case(with_depths(graph, rng) if rng.random() < 0.5 else graph, tensors, machine)


def runs_of(case: Case, node: str) -> list[int]:
    """In how many runs each output of a node comes; 0 of one that nobody reads."""
    layout = lay_out(case.graph, case.tensors, case.machine, library(), DEFAULT_LIMITS)
    assert run(layout, PartOutput(), library())
    tails = zip(layout.keys, layout.streams["tail"].tolist(), strict=True)
    return [tail for key, tail in tails if isinstance(key, Port) and key.node == node]
