"""The collector of cyclic garbage is off while regions are lowered, and afterwards as it was before."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import programs
import pytest

from fuseflow.einsum.parse import parse
from fuseflow.errors import FusionError
from fuseflow.lower import primitive_choice
from fuseflow.lower.primitive_choice import lower_for
from fuseflow.lower.program import lower, lower_regions
from fuseflow.lower.regions import CompiledRegion
from fuseflow.schedule import Schedule
from fuseflow.sim import load_machine


@pytest.fixture(autouse=True)
def collecting() -> None:
    gc.enable()


def test_a_refused_program_leaves_the_collector_on() -> None:
    with pytest.raises(FusionError):
        lower(parse(programs.TEXTS["layer"]), Schedule.fuse("full").order("full", "i,nothing"), {})
    assert gc.isenabled()


def test_a_collector_that_was_off_stays_off() -> None:
    gc.disable()
    try:
        lower(parse(programs.TEXTS["layer"]), Schedule.fuse("none"), {})
        assert not gc.isenabled()
    finally:
        gc.enable()


@pytest.mark.parametrize(("machine", "fuse"), [("rda", "layerwise"), ("rda", "full"), ("comal", "none"), ("comal", "full")])
def test_the_collector_is_off_between_regions_that_are_lowered_for_a_machine(
    machine: str, fuse: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    between: list[bool] = []

    def watched(*arguments: object) -> Iterator[CompiledRegion]:
        for region in lower_regions(*arguments):  # type: ignore[arg-type]
            between.append(gc.isenabled())
            yield region

    monkeypatch.setattr(primitive_choice, "lower_regions", watched)
    _, regions = lower_for(parse(programs.TEXTS["layer"]), Schedule.fuse(fuse), load_machine(machine), {})
    assert list(regions)
    assert between
    assert not any(between)
    assert gc.isenabled()
