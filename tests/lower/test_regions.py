"""One region is lowered from a state, which stays what it is."""

from __future__ import annotations

import programs
import pytest

from fuseflow.einsum.parse import parse
from fuseflow.errors import FusionError
from fuseflow.lower.partition import partition_program
from fuseflow.lower.program import region_requests
from fuseflow.lower.regions import lower_region
from fuseflow.lower.state import LoweringState, RegionRequest, initial_state
from fuseflow.schedule import Schedule


def begun(schedule: Schedule) -> tuple[LoweringState, tuple[RegionRequest, ...]]:
    partitioned = partition_program(parse(programs.TEXTS["layer"]), schedule)
    return initial_state(partitioned, {}), region_requests(partitioned)


def test_a_region_can_be_lowered_twice_from_one_state() -> None:
    state, (first, *_) = begun(Schedule.fuse("none"))
    names = set(state.stored)
    (once,), after = lower_region(state, first)
    (second,), _ = lower_region(state, first)
    assert once.graph == second.graph and set(state.stored) == names
    assert set(after.stored) - names == {first.name} == set(after.statistics) - set(state.statistics)


def test_a_later_region_needs_what_an_earlier_one_writes() -> None:
    state, (first, second, _) = begun(Schedule.fuse("none"))
    _, after = lower_region(state, first)
    (region,), _ = lower_region(after, second)
    assert first.name in region.graph.inputs
    assert set(after.restricted_to([first.name]).stored) == {first.name}


def test_a_refused_region_leaves_the_state_as_it_was() -> None:
    state, (request,) = begun(Schedule.fuse("full").order("full", "i,nothing"))
    names = set(state.stored)
    with pytest.raises(FusionError, match="no index `nothing`"):
        lower_region(state, request)
    assert set(state.stored) == names
