"""Lanes of a schedule: which index of which region, what a result says of them."""

from __future__ import annotations

import json

import numpy as np
import pytest

import fuseflow as ff
from fuseflow import Schedule
from fuseflow.einsum.parse import parse
from fuseflow.errors import ScheduleError
from fuseflow.explain.fusion import explain_fusion
from fuseflow.samml.nodes import Fork
from fuseflow.sim import load_machine

PROGRAM = """
tensor A[6, 6] csr
tensor X[6, 4] dense
tensor W[4, 3] dense
T[i, j] = sum(k) X[i, k] * W[k, j]
U[i, j] = relu(sum(k) A[i, k] * T[k, j])
output U
"""


def compiled(schedule: Schedule) -> ff.Compiled:
    draw = np.random.default_rng(1)
    a = (draw.random((6, 6)) < 0.4) * draw.integers(1, 5, (6, 6))
    arrays = {"A": a.astype(np.float32), "X": draw.random((6, 4), np.float32), "W": draw.random((4, 3), np.float32)}
    return ff.compile(parse(PROGRAM), tensors=arrays, schedule=schedule, machine="ideal")


def lanes_of(schedule: Schedule) -> dict[str, list[int]]:
    return {r.name: [n.lanes for n in r.graph.nodes if isinstance(n, Fork)] for r in compiled(schedule).regions}


def test_an_index_is_dealt_in_every_region_that_has_it() -> None:
    lanes = lanes_of(Schedule.fuse("none").par(i=3))
    assert set(lanes["T"]) == set(lanes["U"]) == {3}


def test_a_region_s_own_lanes_win() -> None:
    lanes = lanes_of(Schedule.fuse("none").par(**{"i": 3, "T.i": 1}))
    assert not lanes["T"] and set(lanes["U"]) == {3}


def test_lanes_of_one_region_leave_the_others_alone() -> None:
    lanes = lanes_of(Schedule.fuse("none").par(**{"U.i": 2}))
    assert not lanes["T"] and set(lanes["U"]) == {2}


@pytest.mark.parametrize(
    "schedule", [Schedule.par(i=3), Schedule.par(i=2, j=2), Schedule.fuse("none").par(k=8), Schedule.par(i=64)]
)
def test_values_are_those_of_one_lane(schedule: Schedule) -> None:
    result = compiled(schedule).run()
    assert result.check is not None and result.check.passed
    np.testing.assert_allclose(result.outputs["U"], compiled(Schedule()).run().outputs["U"], rtol=1e-5)


def test_cycles_fall_with_lanes() -> None:
    one, two = compiled(Schedule()).run().cycles, compiled(Schedule.par(i=2)).run().cycles
    assert two < 0.75 * one


def test_a_result_says_what_each_lane_did() -> None:
    result = compiled(Schedule.fuse("full").par(i=2)).run()
    (region,) = json.loads(json.dumps(result.to_dict()))["regions"]
    lanes = region["statistics"]["lanes"]["i"]
    assert [lane["lane"] for lane in lanes] == [0, 1]
    by_name = {node["name"]: node for node in region["statistics"]["nodes"]}
    own = [node for name, node in by_name.items() if name.endswith("/i0")]
    assert lanes[0]["firings"] >= sum(node["firings"] for node in own) > 0
    assert lanes[0]["busy"] == max(node["occupied"] for node in own)


def test_without_lanes_there_is_nothing_to_say() -> None:
    assert compiled(Schedule()).run().regions[0].lanes == {}


def test_the_place_of_lanes_that_cannot_be() -> None:
    schedule = Schedule.from_yaml("par:\n  i: 4\n  kk: 2\n", "s.yaml")
    with pytest.raises(ScheduleError) as error:
        compiled(schedule)
    assert "2 lanes of `kk`" in error.value.message and str(error.value.span) == "s.yaml:3:3"


def test_explanations_are_of_the_graph_without_lanes() -> None:
    source = compiled(Schedule()).source
    machine = load_machine("ideal")
    assert explain_fusion(source, Schedule.fuse("full").par(i=4), machine) == explain_fusion(
        source, Schedule.fuse("full"), machine
    )


def test_lanes_of_a_stage_win_over_those_of_its_region() -> None:
    both = compiled(Schedule.fuse("full").par(**{"i": 2, "full/T.i": 3}))
    assert {n.lanes for n in both.regions[0].graph.nodes if isinstance(n, Fork)} == {2, 3}
    np.testing.assert_allclose(both.run().outputs["U"], compiled(Schedule.fuse("full")).run().outputs["U"], rtol=1e-5)
    loads = both.run().regions[0].lanes
    assert {loop: len(lanes) for loop, lanes in loads.items()} == {"i": 2, "T.i": 3}


def test_the_stages_of_a_region() -> None:
    (region,) = compiled(Schedule.fuse("full")).regions
    assert region.stages == {"T": ("i", "k", "l", "j"), "U.sum": ("i", "k", "j"), "U": ("i", "j")}
    assert compiled(Schedule.fuse("full").par(**{"full/T.l": 2})).regions[0].stages == region.stages


@pytest.mark.parametrize(
    ("name", "message", "hint"),
    [
        ("full/S.i", "region `full` has no stage `S`", "known: `T`, `U`, `U.sum`"),
        ("fulll/T.i", "no region `fulll`", "did you mean `full`?"),
        ("full/T.ii", "no loop of region `full` is called `ii`", "did you mean `i`?"),
        ("full/U.l", "stage `U` does not run in loop l", "`T` runs in i, k, l, j"),
    ],
)
def test_stages_that_are_not_there(name: str, message: str, hint: str) -> None:
    schedule = Schedule.from_yaml(f"fuse: full\npar:\n  {name}: 2\n", "s.yaml")
    with pytest.raises(ScheduleError) as error:
        compiled(schedule)
    assert message in error.value.message and hint in error.value.hint and str(error.value.span) == "s.yaml:3:3"
