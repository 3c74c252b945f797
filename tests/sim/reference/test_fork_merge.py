"""Fork and merge: who gets which token and when, and that a merge is the inverse of its fork, whatever lies between."""

from __future__ import annotations

import random
from typing import Any

import dataflow
import numpy as np
import pytest
from driving import drive, inputs_of
from hypothesis import given
from hypothesis import strategies as st

from fuseflow.errors import SimulationError
from fuseflow.samml import nodes as n
from fuseflow.samml.text import parse
from fuseflow.samml.tokens import check, encode
from fuseflow.samml.verify import verify
from fuseflow.sim import load_machine, simulate
from fuseflow.tensors import from_coordinates, pack
from fuseflow.tensors.format import Format


def fork(lanes: int, x: object, **timing: int) -> list[str]:
    return drive(n.Fork("f", inputs_of(1), lanes), x, **timing).fired


def merge(levels: int, *lanes: str, **timing: int) -> str:
    return drive(n.Merge("m", inputs_of(len(lanes)), levels), *lanes, **timing).fired[0]


class TestFork:
    def test_values_in_turn_across_fibers_and_stops_to_all(self) -> None:
        found = fork(2, "1 2 3 S0 S0 4 S1 D")
        assert found == ["1@0 3@2 S0@3 S0@4 S1@6 D@7", "2@1 S0@3 S0@4 4@5 S1@6 D@7"]

    def test_a_lane_without_a_value_has_an_empty_fiber(self) -> None:
        assert fork(3, "7 S0 S1 D")[1:] == ["S0@1 S1@2 D@3"] * 2
        assert fork(2, "S1-1 D") == ["S1-1@0 D@1"] * 2

    def test_n_is_dealt_too(self) -> None:
        assert fork(2, "N 1 N S0 D") == ["N@0 N@2 S0@3 D@4", "1@1 S0@3 D@4"]

    def test_the_interval_separates_values_of_different_lanes(self) -> None:
        assert fork(2, "1 2 S0 D", interval=3) == ["1@0 S0@6 D@7", "2@3 S0@6 D@7"]

    def test_a_stop_waits_for_the_first_full_lane_whichever_has_its_turn(self) -> None:
        with pytest.raises(AssertionError, match="waits for a slot of output 0"):
            drive(n.Fork("f", inputs_of(1), 3), "1 2 3 4 S0 D", depths=(2, 1, 1))


class TestMerge:
    def test_values_in_turn_whenever_they_come(self) -> None:
        assert merge(0, "1@9 3@10 S0@11 D", "2@0 S0@1 D@2") == "1@9 2@10 3@11 S0@12 D@13"

    def test_the_end_waits_for_the_first_missing_lane_whichever_has_its_turn(self) -> None:
        with pytest.raises(AssertionError, match="waits for input 0"):
            merge(0, "1", "D", "")

    def test_the_stop_waits_for_all_lanes(self) -> None:
        assert merge(0, "1 S0 D", "S0@20 D") == "1@0 S0@20 D@21"

    def test_the_turn_runs_on_across_fibers(self) -> None:
        assert merge(0, "1 S0 S0 5 S1 D", "S0 4 S0 S1 D") == "1@0 S0@1 4@2 S0@3 5@4 S1@5 D@6"

    def test_lists_in_turn(self) -> None:
        # [[1 2] [3] [4]] dealt to two lanes
        assert merge(1, "1 2 S0 4 S1 D", "3 S1 D") == "1@0 2@1 S0@2 3@3 S0@4 4@5 S1@6 D@7"

    def test_the_last_list_takes_the_stops_of_lanes_that_had_none(self) -> None:
        assert merge(1, "1 S1 D", "S1-1@9 D", "S1-1@5 D") == "1@0 S1@9 D@10"
        assert merge(1, "1 S1 D", "S1-1@5 D", "S1-1@9 D") == "1@0 S1@9 D@10"

    def test_the_next_lane_tells_whether_the_list_goes_on_if_it_had_nothing_yet(self) -> None:
        assert merge(1, "1 S1 D", "2@7 S1 D", "S1-1 D") == "1@0 S0@7 2@8 S1@9 D@10"
        # Lane 1 said with its first list that it has another one: its head is not looked at.
        assert merge(1, "1 S0 3 S1 D", "2 S0 4@30 S1 D") == "1@0 S0@1 2@2 S0@3 3@4 S0@5 4@30 S1@31 D@32"

    def test_empty_lists(self) -> None:
        # [[] []] and []: of one level, then of two
        assert merge(1, "S1 S2-2 D", "S1 S2-2 D") == "S0@0 S1@1 S2-2@2 D@3"
        assert merge(1, "S1-1 D", "S1-1 D") == "S1-1@0 D@1"
        assert merge(2, "S1-2 D", "S2-2 D") == "S1-2@0 D@1"

    def test_one_lane_is_a_copy(self) -> None:
        assert merge(1, "1 S0 2 S1 D") == "1@0 S0@1 2@2 S1@3 D@4"

    @pytest.mark.parametrize(
        ("levels", "lanes"),
        [
            (0, ("1 S0 D", "S0 S0 D")),
            (0, ("S0 D", "1 S0 D")),
            (1, ("1 S0 2 S1 D", "S1-1 D")),
            (1, ("1 S1 S2-2 D", "2 S2 D")),
        ],
    )
    def test_lanes_that_were_not_dealt_so_are_refused(self, levels: int, lanes: tuple[str, ...]) -> None:
        with pytest.raises(SimulationError, match="its inputs differ in structure"):
            merge(levels, *lanes)


def deal(nested: Any, depth: int, lanes: int) -> list[Any]:
    """The elements of a list `depth` levels deep dealt in turn: one list of the same depth for each lane."""
    turn = 0

    def walk(x: list[Any], level: int) -> list[Any]:
        nonlocal turn
        found: list[Any] = [[] for _ in range(lanes)]
        for element in x:
            if level == 0:
                found[turn].append(element)
                turn = (turn + 1) % lanes
            else:
                for lane, part in zip(found, walk(element, level - 1), strict=True):
                    lane.append(part)
        return found

    return walk(nested, depth - 1)


def nested(depth: int) -> st.SearchStrategy[Any]:
    return st.integers(0, 9) if depth == 0 else st.lists(nested(depth - 1), max_size=4 if depth < 3 else 2)


@given(st.data(), st.integers(1, 3), st.integers(0, 2), st.integers(1, 5))
def test_merge_is_the_inverse_of_fork(data: st.DataObject, depth: int, levels: int, lanes: int) -> None:
    x = data.draw(nested(depth + levels))
    dealt = [encode(lane, depth + levels) for lane in deal(x, depth, lanes)]
    if levels == 0:
        forked = drive(n.Fork("f", inputs_of(1), lanes), encode(x, depth)).tokens
        assert forked == dealt
        for lane in forked:
            check(lane, depth)
    merged = drive(n.Merge("m", inputs_of(lanes), levels), *dealt)
    assert merged.tokens == [encode(x, depth + levels)]
    assert merged.firings == len(merged.tokens[0])


def scanned(levels: tuple[str, ...], forked: int, lanes: int) -> n.Graph:
    """Scan a tensor level by level; from `forked` on in lanes too, merged after the last level."""
    shape = ", ".join("3" * len(levels))
    text = [f"tensor A[{shape}]  ({', '.join(levels)}) f64", "root = root()"]
    for level in range(len(levels)):
        text += [f"s{level} = scan({f's{level - 1}.ref' if level else 'root'}) A.{level}"]
    text += [f"v = load(s{len(levels) - 1}.ref) A", f"f = fork(s{forked}.ref) {lanes}"]
    for k in range(lanes):
        port = f"f.lane{k}" if lanes > 1 else "f"
        for level in range(forked + 1, len(levels)):
            text += [f"s{level}_{k} = scan({port}) A.{level}"]
            port = f"s{level}_{k}.ref"
        text += [f"v{k} = load({port}) A"]
    below = len(levels) - 1 - forked
    text += [f"m = merge({', '.join(f'v{k}' for k in range(lanes))}) levels={below}"]
    if below:
        text += [f"c = merge({', '.join(f's{len(levels) - 1}_{k}.crd' for k in range(lanes))}) levels={below}"]
    return parse("\n".join(text))


@given(
    st.lists(st.sampled_from(["dense", "compressed"]), min_size=1, max_size=4),
    st.integers(0, 2), st.integers(1, 5), st.integers(0, 2**32 - 1),
)  # fmt: skip
def test_lanes_of_scans_give_what_one_scan_gives(levels: list[str], below: int, lanes: int, seed: int) -> None:
    rng, values = random.Random(seed), np.random.default_rng(seed)
    graph = dataflow.with_depths(scanned(tuple(levels), max(0, len(levels) - 1 - below), lanes), rng)
    verify(graph)
    stored = values.random((3,) * len(levels)) < rng.choice([0.0, 0.2, 0.6])
    entries = np.arange(float(stored.sum()))
    tensor = from_coordinates(stored.shape, np.array(np.nonzero(stored)), entries, Format.of(*levels), 0.0)
    machine = dataflow.random_machine(rng)
    found = simulate(graph, {"A": tensor}, machine, check=True, record=True).streams
    assert found[n.Port("m")].tokens == found[n.Port("v")].tokens
    if n.Port("c") in found:
        assert found[n.Port("c")].tokens == found[n.Port(f"s{len(levels) - 1}")].tokens


def test_lanes_share_the_work() -> None:
    """Rows of 40 values summed in lanes take the time of one lane, a cycle for each value and stop, and the way there and back."""
    text = ["tensor A[12, 40]  dense f64", "root = root()", "i = scan(root) A.0"]
    cycles = []
    for count in (1, 2, 3, 4):
        scans = [
            f"s{k} = scan({f'f.lane{k}' if count > 1 else 'f'}) A.1\nv{k} = load(s{k}.ref) A\nr{k} = reduce(v{k}) sum"
            for k in range(count)
        ]
        merged = f"m = merge({', '.join(f'r{k}' for k in range(count))}) levels=0"
        graph = parse("\n".join([*text, f"f = fork(i.ref) {count}", *scans, merged]))
        cycles.append(simulate(graph, {"A": pack(np.ones((12, 40)), Format.dense(2))}, load_machine("ideal")).cycles)
    assert cycles == [12 // lanes * 41 + 7 + lanes for lanes in (1, 2, 3, 4)]
