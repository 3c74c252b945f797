"""The engine and the reference are the same simulator: random graphs of all primitives say the same on both."""

from __future__ import annotations

from typing import Any

import pytest
from engines import LIMITS, differences, disagreements, on_engine, on_reference
from graph_fuzz import compare, drawn
from hop_trees import differences_from_processes, routed
from random_graphs import random_case
from random_graphs.case import Case

from fuseflow.errors import SimulationError
from fuseflow.samml.nodes import Edge, Graph
from fuseflow.samml.verify import verify
from fuseflow.sim.engine.execute import DEFAULT_LIMITS
from fuseflow.sim.engine.execute import execute as fast
from fuseflow.sim.engine.node_layout import Limits
from fuseflow.sim.outcome.deadlock import AwaitedSlot, Deadlock
from fuseflow.sim.reference.execute import execute as reference

CHUNK = 50
"""So many graphs are one test. Of sixty small changes of the reference, the last one that is found at all is found within 400;
`make fuzz` draws many more."""


def chunks(first: int, every_run: int, more: int, *before: object) -> list[Any]:
    """Parameters with the first seeds of chunks, from `first` on, behind others: some for every run, and more that are slow."""
    starts = range(first, first + (every_run + more) * CHUNK, CHUNK)
    slow = [()] * every_run + [(pytest.mark.slow,)] * more
    return [pytest.param(*before, start, marks=marks) for start, marks in zip(starts, slow, strict=True)]


KINDS = (
    ((), 0, 8, 32),
    (("bitmap",), 5000, 2, 1),
    (("nm",), 6000, 1, 1),
    (("select",), 7000, 1, 1),
    (("narrow",), 8000, 1, 1),
    (("single",), 9000, 1, 1),
    (("turns",), 40_000, 1, 4),
    (("turns", "hops"), 40_000, 1, 4),
)
"""Kinds of `graph_fuzz`, the first seed, and the chunks of every run and those that are slow. `tools/fuzz.py` draws more of each."""


@pytest.mark.parametrize(("kinds", "first"), [at for kinds, *numbers in KINDS for at in chunks(*numbers, kinds)])
def test_random_graphs_agree_token_for_token(kinds: tuple[str, ...], first: int) -> None:
    """Outputs, cycles, statistics, streams and deadlocks; on the engine with its usual limits and with tiny ones. Of graphs of some kind
    half are at a memory that takes time."""
    for seed in range(first, first + CHUNK):
        case = drawn(seed, **dict.fromkeys(kinds, True)) if kinds else random_case(seed)
        limits = LIMITS[seed % len(LIMITS)]
        found = list(disagreements(case, limits))
        assert not found, f"seed {seed} with {limits}: " + "\n".join(found[:5])


@pytest.mark.parametrize("first", chunks(10000, 1, 3))
def test_random_graphs_with_hops_are_those_with_a_process_for_each_hop(first: int) -> None:
    """The same graphs with hops on their edges, on the reference, the engine, and with a process for each hop. `tools/fuzz.py --graphs N
    --hops` draws more."""
    for seed in range(first, first + CHUNK):
        _, found = compare(drawn(seed, None, hops=True), seed)
        assert not found, f"seed {seed}: " + "\n".join(found[:5])


@pytest.mark.parametrize("first", chunks(20000, 1, 19))
def test_routes_that_divide_are_those_with_a_process_on_every_hop(first: int) -> None:
    """Random graphs with random routes: a `link` wherever a route divides, on both simulators, and a process on every hop."""
    for seed in range(first, first + CHUNK):
        case, trees = routed(drawn(seed, None), seed)
        verify(case.graph)
        expected = on_reference(case)
        found = [
            *differences_from_processes(case, trees, expected),
            *differences(case, expected, on_engine(case, LIMITS[seed % len(LIMITS)])),
        ]
        assert not found, f"seed {seed}: " + "\n".join(found[:5])


PAST_LINKS = (DEFAULT_LIMITS, Limits(runs=4, elements=8, pops=256, burst=3, writer_elements=4, blocks=1))
"""Limits with which writers look past links."""


@pytest.mark.parametrize("first", chunks(60_000, 2, 18))
def test_writers_that_look_past_links_fire_in_the_same_cycles(first: int) -> None:
    for seed in range(first, first + CHUNK):
        case, _ = routed(drawn(seed, None), seed)
        found = list(differences(case, on_reference(case), on_engine(case, PAST_LINKS[seed % len(PAST_LINKS)])))
        assert not found, f"seed {seed}: " + "\n".join(found[:5])


@pytest.mark.parametrize("execute", [reference, fast], ids=["reference", "engine"])
def test_deeper_on_the_way_is_as_good_as_deeper_from_the_start(execute: Any) -> None:
    """The same processes wait for the same, deadlock after deadlock, up to the end."""
    steps = 0
    for seed in range(80):
        case = random_case(seed)
        found = attempt(execute, case.graph, case)
        depths: dict[Edge, int] = {}
        while isinstance(found, Deadlock):
            more = {w.awaits.edge: w.awaits.depth + 1 for w in found.waiting if isinstance(w.awaits, AwaitedSlot)}
            if not more:
                break
            depths |= more
            further, anew = found.deepened(depths), attempt(execute, case.graph.with_depths(depths), case)
            assert (further and further.waiting) == (anew.waiting if isinstance(anew, Deadlock) else None), f"seed {seed}"
            found, steps = further, steps + 1
    assert steps > 25


def attempt(execute: Any, graph: Graph, case: Case) -> Any:
    try:
        return execute(graph, case.tensors, case.machine)
    except SimulationError:
        return None
