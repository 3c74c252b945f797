"""Timelines: their firings are those of the statistics, the most that a FIFO holds is its peak, what the memory moves is what was asked."""

from __future__ import annotations

from collections import Counter
from functools import partial

import numpy as np
import pytest
from anywhere import anywhere

from fuseflow.errors import FuseFlowError
from fuseflow.sim import Engine, Simulation, simulate
from fuseflow.sim.events.log import CycleSpan, Topology, Track
from fuseflow.sim.events.timeline import Burst, Timeline
from fuseflow.sim.traced_rerun import find_timeline


def runs(first: int, last: int, engine: Engine):
    """Random graphs that run to their end, with their timelines: firing by firing, and in windows."""
    for seed in range(first, last):
        case = anywhere(seed)
        try:
            simulation = simulate(case.graph, case.tensors, case.machine, engine=engine)
        except FuseFlowError:
            continue
        given = case.graph, case.tensors, case.machine, simulation
        yield given, simulation, find_timeline(*given), find_timeline(*given, lambda: Timeline(CycleSpan(), detail=0))


def check(simulation: Simulation, timeline: Timeline, comal: bool) -> None:
    busy, ends = Counter[str](), dict[int, int]()
    for track, burst in timeline.bursts():
        assert burst.start >= ends.get(track, 0), "bursts of a track overlap"
        ends[track] = burst.start + burst.cycles
        assert ends[track] <= simulation.cycles + comal  # where the firing on `D` costs no cycle
        assert burst.firings <= burst.cycles + comal and (burst.step != 1 or burst.firings == burst.cycles)
        if not timeline.topology.tracks[track].helper:
            busy[timeline.topology.tracks[track].node] += burst.firings
    assert busy == {node.name: node.busy for node in simulation.nodes if node.busy}
    held = {timeline.topology.edges[edge]: levels for edge, _, levels in timeline.levels()}
    for edge in simulation.edges:
        (levels,) = [levels for key, levels in held.items() if (key.node, key.input) == (edge.node, edge.input)]
        assert levels.min(initial=0) == 0 and levels[-1] == 0
        most = int(levels.max(initial=0))
        assert most == edge.peak if timeline.exact else most <= edge.peak
    if simulation.memory is not None:
        moved = {name: int(counts.sum()) for name, _, counts in timeline.rates()}
        ports = simulation.memory.ports
        asked = [sum(s.asked_bytes for port, s in ports if port.direction == direction) for direction in ("read", "write")]
        assert list(moved.values()) == asked


@pytest.mark.parametrize("engine", ["reference", "fast"])
def test_a_timeline_says_what_the_statistics_say(engine: Engine):
    checked = 0
    for given, simulation, exact, coarse in runs(0, 12, engine):
        comal = given[2].rules == "comal"
        assert exact.exact and not coarse.exact
        check(simulation, exact, comal)
        check(simulation, coarse, comal)
        checked += 1
    assert checked > 4


def test_a_window_is_a_part_of_the_whole():
    for given, simulation, whole, _ in runs(12, 24, "reference"):
        start, end = simulation.cycles // 3, 2 * simulation.cycles // 3 + 1
        part = find_timeline(*given, partial(Timeline, CycleSpan(start, end)))
        inside, found = Counter[int](), Counter[int]()
        for track, burst in whole.bursts():
            inside[track] += sum(start <= burst.start + i * burst.step < end for i in range(burst.firings))
        for track, burst in part.bursts():
            found[track] += burst.firings
        assert +inside == found
        for (_, cycles, levels), (_, all_cycles, all_levels) in zip(part.levels(), whole.levels(), strict=True):
            for cycle, level in zip(cycles.tolist(), levels.tolist(), strict=True):
                at = int(np.searchsorted(all_cycles, cycle, side="right")) - 1
                assert level == (0 if at < 0 else all_levels[at]) or cycle >= end


def test_firings_that_follow_each_other_are_one_burst():
    timeline = Timeline(CycleSpan())
    timeline.open(Topology((Track("a"),), (), ()))
    timeline.events(np.array([[0, 3, 2, 1, 1, 0, 0, -1], [0, 5, 1, 1, 2, 0, 4, -1], [0, 9, 3, 4, 2, 0, 8, -1]]))
    assert list(timeline.bursts()) == [(0, Burst(3, 3, 3, 1)), (0, Burst(9, 9, 3, 4))]
