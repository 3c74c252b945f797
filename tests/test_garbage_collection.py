"""The pause of garbage collection."""

from __future__ import annotations

import gc

import pytest
from click.testing import CliRunner

from fuseflow.cli.main import main
from fuseflow.garbage_collection import collection_paused


def test_collection_rests_and_goes_on_as_before() -> None:
    assert gc.isenabled()
    with collection_paused():
        with collection_paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_collection_goes_on_after_an_error() -> None:
    with pytest.raises(ZeroDivisionError), collection_paused():
        raise ZeroDivisionError
    assert gc.isenabled()


def test_collection_that_is_off_stays_off() -> None:
    gc.disable()
    try:
        with collection_paused():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_a_command_in_the_process_of_others_leaves_their_collector_alone() -> None:
    before = gc.get_threshold(), gc.get_freeze_count()
    gc.disable()
    try:
        assert CliRunner().invoke(main, ["machines"]).exit_code == 0
        assert not gc.isenabled()
        assert (gc.get_threshold(), gc.get_freeze_count()) == before
    finally:
        gc.enable()
