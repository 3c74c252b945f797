"""Design spaces enumerate schedules."""

from __future__ import annotations

import pytest

from fuseflow.errors import ScheduleError
from fuseflow.explore import Axis, Space
from fuseflow.schedule import Schedule


def test_points_are_schedules():
    space = Space(
        Schedule.format("x", "csr"), (Axis("fuse", "", ("none", "layer1,layer2")), Axis("order", "T", ("i,k,j", "k,i,j")))
    )
    points = dict(space.points())
    assert len(points) == len(space) == 4
    assert points["fuse=layer1,layer2 order T=k,i,j"] == Schedule.fuse("layer1", "layer2").order("T", "k,i,j").format("x", "csr")


def test_an_empty_space_is_its_base():
    assert list(Space(Schedule(), ()).points()) == [("", Schedule())]


@pytest.mark.parametrize(
    ("kind", "target", "values", "message"),
    [("fues", "", ("none",), "did you mean `fuse`"), ("order", "", ("i",), "needs a target"), ("fuse", "", (), "no values")],
)
def test_bad_axes(kind, target, values, message):
    with pytest.raises(ScheduleError) as error:
        Axis(kind, target, values)
    assert message in str(error.value)
