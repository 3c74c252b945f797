"""The loads of lanes, from the work of each of their nodes."""

from __future__ import annotations

from fuseflow.run.result import LaneLoad, lane_loads
from fuseflow.sim.outcome.statistics import NodeStatistics


def node(name: str, firings: int) -> NodeStatistics:
    return NodeStatistics(name, "alu", firings, 0, 0, 0, firings, occupied=firings)


def test_lanes_inside_lanes_are_added_up() -> None:
    places = {"a": (("i", 0), ("k", 0)), "b": (("i", 0), ("k", 1)), "c": (("i", 1), ("k", 0))}
    loads = lane_loads(places, [node("a", 5), node("b", 7), node("c", 1), node("outside", 99)])
    assert loads["i"] == (LaneLoad(0, 2, 12, 7), LaneLoad(1, 1, 1, 1))
    assert loads["k"] == (LaneLoad(0, 2, 6, 5), LaneLoad(1, 1, 7, 7))
