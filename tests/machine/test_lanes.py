"""The key `lanes` of machine files: elements of few bits in the place of one of 32."""

from __future__ import annotations

import pytest

from fuseflow.errors import MachineError
from fuseflow.machine.files import load_machine, read_machine
from fuseflow.machine.machine import Lanes


def test_the_usual_lanes():
    assert [Lanes().of(bits) for bits in (4, 8, 16, 32, 64)] == [8, 4, 2, 1, 1]
    assert "lanes" not in load_machine("rda").settings


def test_a_file_and_a_setting_change_some_of_them():
    machine = read_machine("name: m\nlanes: {8: 16, 4: 32}\n")
    assert [machine.lanes.of(bits) for bits in (4, 8, 16, 32)] == [32, 16, 2, 1]
    assert machine.settings["lanes"] == {"4": 32, "8": 16, "16": 2, "32": 1}
    assert load_machine("rda", {"lanes.16": 3}).lanes.of(16) == 3


@pytest.mark.parametrize(
    ("line", "place", "message", "hint"),
    [
        ("lanes: {8: 0}", "m.yaml:2:9", "`lanes.8: 0`: must be a whole number, 1 or more", ""),
        ("lanes: {8: many}", "m.yaml:2:9", "`lanes.8: many`: must be a whole number, 1 or more", ""),
        ("lanes: {8: 4.5}", "m.yaml:2:9", "`lanes.8: 4.5`: must be a whole number, 1 or more", ""),
        ("lanes: {8: -4}", "m.yaml:2:9", "`lanes.8: -4`: must be a whole number, 1 or more", ""),
        ("lanes: {12: 2}", "m.yaml:2:9", "unknown key `lanes.12`", "the widths are 4, 8, 16, 32 bits"),
        ("lanes: {64: 1}", "m.yaml:2:9", "unknown key `lanes.64`", "the widths are 4, 8, 16, 32 bits"),
        ("lanes: {eight: 1}", "m.yaml:2:9", "unknown key `lanes.eight`", "the widths are 4, 8, 16, 32 bits"),
        ("lanes: 4", "m.yaml:2:1", "`lanes: 4`: must be a mapping", "write `{4: 8, 8: 4, 16: 2, 32: 1}`"),
        ("lanes: [8, 4]", "m.yaml:2:1", "must be a mapping", "write `{4: 8, 8: 4, 16: 2, 32: 1}`"),
        ("rules: comal\nlanes: {8: 8}", "m.yaml:3:1", "with `rules: comal` tiles have times of their own", "leave `lanes` out"),
    ],
)
def test_bad_lanes_are_refused(line: str, place: str, message: str, hint: str):
    with pytest.raises(MachineError) as refused:
        read_machine(f"name: m\n{line}\n", "m.yaml")
    assert str(refused.value.span) == place
    assert message in refused.value.message
    assert hint in refused.value.hint


def test_a_setting_of_an_unknown_width_is_refused():
    with pytest.raises(MachineError, match=r"unknown key `lanes\.12`\n  hint: the widths are 4, 8, 16, 32 bits"):
        load_machine("ideal", {"lanes.12": 3})
