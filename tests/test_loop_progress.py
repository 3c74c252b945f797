"""Loops that tell how far they are."""

from __future__ import annotations

import pytest

import fuseflow as ff
from fuseflow.loop_progress import counted, listening

Told = list[tuple[str, int, int]]


def test_a_loop_tells_before_each_item_and_at_its_end():
    told: Told = []
    with listening(lambda *heard: told.append(heard)):
        assert list(counted("ab", "reading")) == ["a", "b"]
    assert told == [("reading", 0, 2), ("reading", 1, 2), ("reading", 2, 2)]
    assert list(counted("ab", "reading")) == ["a", "b"]
    assert len(told) == 3


def test_of_loops_inside_each_other_only_the_outermost_tells():
    told: Told = []
    with listening(lambda *heard: told.append(heard)):
        for _ in counted("ab", "outer"):
            list(counted("cde", "inner"))
        list(counted("f", "next"))
    assert {loop for loop, _, _ in told} == {"outer", "next"}


def test_a_loop_that_fails_leaves_the_listener():
    told: Told = []
    with listening(lambda *heard: told.append(heard)):
        with pytest.raises(ZeroDivisionError):
            _ = [1 / number for number in counted((1, 0), "dividing")]
        list(counted("f", "next"))
    assert told[-1] == ("next", 1, 1)


def test_an_import_and_an_estimate_tell(tmp_path):
    (tmp_path / "m.py").write_text(
        "import torch\ndef build(data):\n    return torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.ReLU()), (torch.ones(2, 3),)\n"
    )
    told: Told = []
    with listening(lambda *heard: told.append(heard)):
        ff.compile(tmp_path / "m.py", schedule=ff.Schedule.fuse("none")).estimate()
    ends = {loop: total for loop, done, total in told if done == total}
    assert {"running the model", "simplifying operators", "reading operators", "packing tensors", "estimating regions"} <= set(
        ends
    )
    assert all(ends.values())
