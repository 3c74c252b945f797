"""The collector of cyclic garbage is off while regions are lowered, and afterwards as it was before."""

from __future__ import annotations

import gc

import programs
import pytest

from fuseflow.einsum.parse import parse
from fuseflow.errors import FusionError
from fuseflow.lower.garbage import collector_off
from fuseflow.lower.program import lower
from fuseflow.schedule import Schedule


@pytest.fixture(autouse=True)
def collecting() -> None:
    gc.enable()


def test_the_collector_is_off_inside_and_on_again_behind() -> None:
    with collector_off():
        assert not gc.isenabled()
        with collector_off():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


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
