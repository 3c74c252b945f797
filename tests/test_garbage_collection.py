"""The pause of garbage collection."""

from __future__ import annotations

import gc

import pytest

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
