"""Random graphs on the reference simulator: they run, depths never change what they compute, and they reach every primitive."""

from __future__ import annotations

import runpy
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path

import cycle_oracle
import port_turns
import pytest
from bitmaps import in_graph
from lane_written import random_lane_case
from random_graphs import Case, describe, random_case, shrink
from random_graphs.compare import differences, differences_of_streams, found, same_results
from random_graphs.coverage import events, modes

from fuseflow.errors import DeadlockError
from fuseflow.ops import OPERATORS, REDUCERS
from fuseflow.samml.nodes import NODE_TYPES, Drop, Link, Select, WriteLaneLevel, WriteLaneValues
from fuseflow.samml.text import parse, show
from fuseflow.samml.verify import verify
from fuseflow.sim import Recording, Simulation, simulate
from fuseflow.tile_ops import TILE_OPERATORS

SEEDS = range(300)


def unbounded(case: Case) -> Case:
    return replace(case, graph=replace(case.graph, depths=()), machine=case.machine.model_copy(update={"fifo_depth": None}))


@dataclass
class Survey:
    """What the cases of all seeds did."""

    seen: Counter[str] = field(default_factory=Counter)  # cases with a mode or an event
    deadlocks: int = 0
    differing: list[int] = field(default_factory=list)
    firings: list[int] = field(default_factory=list)


@pytest.fixture(scope="module")
def survey() -> Survey:
    """Every case is verified and run twice: with its depths, every stream checked, and without."""
    survey = Survey()
    for seed in SEEDS:
        case = random_case(seed)
        verify(case.graph)
        free = simulate(unbounded(case).graph, case.tensors, unbounded(case).machine, check=True, record=True)
        survey.firings.append(free.firings)
        survey.seen.update(set(modes(case.graph)) | set(events(case.graph, {p: s.tokens for p, s in free.streams.items()})))
        bounded = found(case, simulate)
        if isinstance(bounded, Simulation):
            survey.differing += [] if same_results(free, bounded) else [seed]
        else:
            assert isinstance(bounded, DeadlockError), f"seed {seed}: {bounded}\n{describe(case)}"
            survey.deadlocks += 1
    return survey


def test_depths_never_change_values(survey: Survey) -> None:
    assert survey.differing == []


@pytest.mark.parametrize("mode", ["drawn", "bitmap", "select", "lanes", "turns"])
@pytest.mark.parametrize("seed", range(1000, 1100))
def test_the_oracle_agrees(seed: int, mode: str) -> None:
    """What steps every node through every cycle gives the same tokens in the same cycles, and the same firings; or nothing moves."""
    case = random_case(seed, "small", select=mode == "select")
    case = in_graph(case, seed) if mode == "bitmap" else case
    case = random_lane_case(3 * seed) if mode == "lanes" else case  # every third one has a memory that answers at once
    case = port_turns.in_graph(case, seed) if mode == "turns" else case
    case = replace(case, machine=case.machine.model_copy(update={"arithmetic": "f64"}))  # the oracle rounds nothing
    oracle = cycle_oracle.run(case.graph, case.tensors, case.machine)
    result = found(case, simulate)
    if oracle.cycles is None:
        assert isinstance(result, DeadlockError), result
        return
    assert isinstance(result, Simulation), result
    assert result.cycles == oracle.cycles
    for node in result.nodes:
        fired = oracle.fired[node.name]
        assert (node.firings, node.first, node.last) == (len(fired), min(fired), max(fired)), node
    for port, stream in result.streams.items():
        tokens, visible = zip(*oracle.streams[port], strict=True)
        assert list(differences_of_streams(stream, Recording(list(tokens), visible))) == [], port


def test_some_deadlock(survey: Survey) -> None:
    assert 0.05 < survey.deadlocks / len(SEEDS) < 0.25


def test_sizes(survey: Survey) -> None:
    firings = sorted(survey.firings)
    assert firings[0] < 60 and 100 < firings[len(firings) // 2] < 1000 and firings[-1] > 2000


WANTED = [
    *(kind.__name__ for kind in NODE_TYPES if kind not in (Link, Select, WriteLaneLevel, WriteLaneValues)),
    *(f"scan {level}" for level in ("dense", "compressed", "compressed(nonunique)", "singleton", "singleton(nonunique)")),
    *(f"scan level {level}" for level in range(4)),
    *(f"{op} sequential {way}" for op in ("scan", "load") for way in (True, False)),
    *(f"load {dtype}" for dtype in ("f32", "f64", "i32", "i64")),
    *(f"load fill {fill}" for fill in ("0", "1", "-inf")),
    *("locate 1 of crd", "locate 2 of crd", "locate 2 of ref"),
    *(f"locate {inputs} of coordinates or N" for inputs in (1, 2)),
    *(f"join {kind} {sides}" for kind in ("intersect", "union", "left") for sides in (2, 3, 4)),
    *(f"join payloads {count}" for count in range(4)),
    *(f"join {kind} of a smaller full side" for kind in ("intersect", "union", "left")),
    *(f"align {kind} {levels}" for kind in ("crd", "ref", "val") for levels in (1, 2)),
    *(f"repeat {kind} by {signal}" for kind in ("crd", "ref", "val") for signal in ("crd", "ref", "val")),
    *(f"alu {function}" for function in OPERATORS if function != "threshold"),
    *(f"alu {streams} of {arity}" for arity in (1, 2, 3) for streams in range(1, arity + 1)),
    *(f"reduce {function}" for function in REDUCERS),
    *(f"accumulate {function} {order}" for function in REDUCERS for order in (1, 2)),
    "accumulate order 3",
    *("permute 2 levels", "permute 3 levels", "permute rows", "permute columns"),
    *(f"alu {function}" for function in TILE_OPERATORS),
    *("tiles and numbers", "rows and columns"),
    *(
        f"{op} of tiles"
        for op in ("alu", "repeat", "join", "align", "reduce", "accumulate", "permute", "drop", "fork", "merge", "write_values")
    ),
    *(f"drop {what} {levels}" for what in ("empty", "value") for levels in (1, 2, 3)),
    *(f"drop {kind}" for kind in ("crd", "ref", "val")),
    *(f"fork to {lanes}" for lanes in (1, 2, 3, 4, 5)),
    *(f"merge of {lanes}" for lanes in (2, 3, 4)),
    *(f"fork {kind}" for kind in ("crd", "ref", "val")),
    *(f"merge {kind} {levels}" for kind in ("crd", "ref", "val") for levels in (0, 1)),
    *(
        f"{op} of {event}"
        for op in ("fork", "merge")
        for event in ("nothing", "first list empty", "empty list", "list without lists")
    ),
    *("write dense", "write compressed"),
    *(f"write {dtype} rank {rank}" for dtype in ("f32", "f64", "i32", "i64") for rank in range(5)),
    *("depth 1", "depth 2", "depth 5", "2 readers", "3 readers", "readers of different depth"),
    *(f"{op} of N" for op in ("join", "repeat", "scan", "load", "alu", "drop")),
    *(
        f"{op} of empty list"
        for op in ("scan", "join", "repeat", "align", "reduce", "accumulate", "permute", "drop", "flatten", "split")
    ),
    *(f"{op} of first list empty" for op in ("reduce", "accumulate", "permute", "align", "drop", "flatten", "split", "write")),
    *(f"{op} of list without lists" for op in ("reduce", "accumulate", "permute", "align", "drop", "flatten", "write")),
    *(f"accumulate to {event}" for event in ("nothing", "first list empty", "empty list", "list without lists")),
    *(f"permute to {event}" for event in ("nothing", "first list empty", "list without lists")),
    *("write of stop 10",),
]


def test_the_generator_reaches_everything(survey: Survey) -> None:
    assert [mode for mode in WANTED if not survey.seen[mode]] == []


SELECTING = [
    *("Select", "alu threshold", "select in groups True", "select in groups False"),
    *(f"select of {levels} levels" for levels in (1, 2, 3)),
    *(f"select of {event}" for event in ("nothing", "first list empty", "empty list", "list without lists")),
    *(f"select to {event}" for event in ("nothing", "first list empty", "empty list", "list without lists")),
]


def test_the_mode_of_selections_reaches_everything() -> None:
    """Every graph has a `select`. What is known of all its streams holds."""
    seen: Counter[str] = Counter()
    for seed in range(150):
        case = random_case(seed, select=True)
        assert any(isinstance(node, Select) for node in case.graph.nodes)
        verify(case.graph)
        free = simulate(unbounded(case).graph, case.tensors, unbounded(case).machine, check=True, record=True)
        seen.update(set(modes(case.graph)) | set(events(case.graph, {p: s.tokens for p, s in free.streams.items()})))
    assert [mode for mode in SELECTING if not seen[mode]] == []


@pytest.mark.parametrize("seed", range(20))
def test_a_seed_is_always_the_same_case(seed: int) -> None:
    assert describe(random_case(seed)) == describe(random_case(seed))


@pytest.mark.parametrize("seed", range(20))
def test_a_described_case_can_be_pasted(seed: int, tmp_path: Path) -> None:
    case = random_case(seed)
    assert parse(show(case.graph)) == case.graph
    path = tmp_path / "case.py"
    path.write_text(describe(case), encoding="utf-8")
    read = runpy.run_path(str(path))
    again = Case(read["GRAPH"], read["TENSORS"], read["MACHINE"])
    assert list(differences(found(case, simulate), found(again, simulate))) == []


def test_differences_are_found() -> None:
    case = random_case(0)
    result = simulate(case.graph, case.tensors, case.machine, record=True)
    port, stream = next((p, s) for p, s in result.streams.items() if len(s.tokens) > 2)
    later = replace(stream, visible=(*stream.visible[:-1], stream.visible[-1] + 1))
    assert list(differences(result, replace(result, streams={**result.streams, port: later})))
    assert list(differences(result, replace(result, cycles=result.cycles + 1)))
    assert list(differences(result, DeadlockError("no node can move")))
    assert not list(differences(result, result))


def test_a_failing_case_shrinks() -> None:
    seed = next(seed for seed in SEEDS if any(isinstance(node, Drop) for node in random_case(seed).graph.nodes))
    small = shrink(random_case(seed), lambda case: any(isinstance(node, Drop) for node in case.graph.nodes))
    verify(small.graph)
    assert len(small.graph.nodes) <= 10 and not small.graph.depths
