"""The distances between commands, as they follow from the constants of the device."""

from __future__ import annotations

from dataclasses import replace

from fuseflow.memory.timing import HBM2_2000, command_distances, lookahead


def test_the_distances_of_the_default_device() -> None:
    assert command_distances(HBM2_2000) == {
        "read_data": 16,
        "act_to_read": 15,
        "act_to_write": 13,
        "act_to_close": 35,
        "act_to_act": 48,
        "act_to_act_near": 4,
        "act_to_act_far": 4,
        "four_acts": 15,
        "act_to_refresh": 49,
        "act_on_bus": 2,
        "close_to_act": 13,
        "close_to_refresh": 14,
        "read_to_close": 5,
        "write_to_close": 23,
        "same_near": 4,
        "same_far": 2,
        "read_to_write": 13,
        "write_to_read_near": 15,
        "write_to_read_far": 13,
        "refresh_to_act": 349,
        "refresh_to_close": 350,
        "refresh_period": 3900,
    }
    assert lookahead(HBM2_2000) == 17


def test_a_slower_device_looks_further_ahead() -> None:
    assert lookahead(replace(HBM2_2000, nCL=20)) == 23
