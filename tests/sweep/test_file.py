"""Sweep files: what they may contain, and where errors in them are reported."""

from __future__ import annotations

from pathlib import Path

import pytest

from fuseflow.errors import FuseFlowError
from fuseflow.schedule import Schedule
from fuseflow.sweep.design_space import build_space
from fuseflow.sweep.sweep_file import read_sweep

PROGRAM = """\
tensor A[3, 4] csr
tensor x[4] dense
y[i] = sum(k) A[i, k] * x[k]
z[i] = relu(y[i])
output z
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "p.ein").write_text(PROGRAM)
    (tmp_path / "m.py").write_text("def build(data): ...\n")
    (tmp_path / "full.yaml").write_text("fuse: [full]\n")
    return tmp_path


def read(folder: Path, text: str):
    (folder / "s.yaml").write_text(text)
    return build_space(read_sweep(folder / "s.yaml"))


def test_points_are_all_combinations_in_the_order_of_the_file(folder: Path) -> None:
    space = read(
        folder,
        "model: m.py\ndata: [karate, cora]\nmachine: [ideal, rda]\nset: [{}, {fifo_depth: 8}]\noptions: [{}, {hidden: 4}]\n"
        "seed: [0, 1]\nschedules: [full.yaml, {name: csr, format: {adj: csr}}]\nvary: {par: [{}, {i: 2}, {i: 4, k: 2}]}\n",
    )
    assert len(space) == space.combinations == 2 * 2 * 2 * 2 * 2 * 2 * 3
    assert space.axes == ("data", "options", "seed", "machine", "set", "schedule", "par")
    assert space.points[0].name(space.axes) == "data=karate options=- seed=0 machine=ideal set=- schedule=full par=-"
    last = space.points[-1]
    assert last.name(space.axes[3:]) == "machine=rda set=fifo_depth=8 schedule=csr par=i=4,k=2"
    assert Schedule.from_yaml(last.point.schedule) == Schedule.format("adj", "csr").par(i=4, k=2)
    assert last.point.machine["fifo_depth"] == 8


def test_one_point_is_a_sweep(folder: Path) -> None:
    space = read(folder, "model: p.ein\n")
    assert len(space) == 1
    assert space.axes == ()
    assert space.points[0].point.schedule == str(Schedule())


def test_equal_points_are_one_under_their_first_labels(folder: Path) -> None:
    space = read(folder, "model: p.ein\nschedules: [full.yaml, {fuse: [full]}, {fuse: [none]}]\n")
    assert (len(space), space.combinations) == (2, 3)
    assert [place.labels["schedule"] for place in space.points] == ["full", "fuse:none"]


def test_what_varies_is_added_to_every_schedule(folder: Path) -> None:
    space = read(
        folder,
        "model: p.ein\nschedules: [{par: {i: 2}}]\n"
        "vary: {par: [{}, {k: 4}], order: [first, {z: i}], fuse: [none, 'y,z', [y, z]], copies: [true, false]}\n",
    )
    schedules = [Schedule.from_yaml(place.point.schedule) for place in space.points]
    assert len(space) == 2 * 2 * 2 * 2  # two ways to write y,z
    assert {dict(s.parallel)["i"] for s in schedules} == {2}
    assert {s.order_policy for s in schedules} == {"first", "best"}
    assert {s.fuse_regions for s in schedules} == {("none",), ("y", "z")}


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("modle: p.ein\n", ":1:", "unknown key `modle`"),
        ("mode: estimate\n", ":1:", "needs the key `model`"),
        ("model: p.ein\nmoed: simulate\n", ":2:1", "did you mean `mode`"),
        ("model: p.ein\nmode: estimat\n", ":2:1", "did you mean `estimate`"),
        ("model: p.ein\nmode: [1\n", ":3:1", "not YAML"),
        ("- p.ein\n", ":1:1", "a sweep file is a mapping"),
        ("model: []\n", ":1:1", "`model`"),
        ("model: p.ein\nvary:\n  fues: [none]\n", ":3:3", "did you mean `fuse`"),
        ("model: p.ein\nvary:\n  machine: [rda]\n", ":3:3", "stands beside `vary`"),
        ("model: p.ein\nvary:\n  par:\n  - {}\n  - {i: x}\n", ":5:5", "`par.i`"),
        ("model: p.ein\nvary:\n  par:\n  - {i: 0}\n", ":4:5", "not a number of lanes"),
        ("model: p.ein\nvary:\n  locate: [auto, nevr]\n", ":3:18", "did you mean `never`"),
        ("model: p.ein\nschedules:\n- {fuse: [none]}\n- {fuse: [full], ordr: {}}\n", ":4:18", "did you mean `order`"),
        ("model: p.ein\nschedules:\n- {par: {i: 0}}\n", ":3:10", "not a number of lanes"),
        ("model: p.ein\nschedules: [gone.yaml]\n", "", "cannot read the schedule"),
        ("model: p.ein\nschedules: [{fuse: [none]}]\nvary: {fuse: [full]}\n", ":3:8", "`fuse`, which varies"),
        ("model: p.ein\nschedules: [{par: {i: 2}}]\nvary: {par: [{i: 4}]}\n", ":3:8", "`par` of `i`, which varies"),
        ("model: p.ein\nschedules: [{name: a}, {name: a, fuse: full}]\n", ":2:24", "two schedules are called `a`"),
        ("model: gone.ein\n", ":1:1", "cannot read `"),
        ("model: p.txt\n", ":1:1", "as a model"),
        ("model: p.ein\ndata: karate\n", ":2:1", "takes no `data`"),
        ("model: m.py\ntensors: t.yaml\n", ":2:1", "takes no `tensors`"),
        ("model: m.py\ndata: [karate, coar]\n", ":2:1", "did you mean `cora`"),
        ("model: m.py\ndata: karate\ndata_dir: here\n", ":3:1", "none of the data reads files"),
        ("model: p.ein\nmode: simulate\n", ":2:1", "no data to simulate"),
        ("model: p.ein\nmachine: [rda, radn]\n", ":2:16", "unknown machine `radn`"),
        ("model: p.ein\nset: {fifo_dept: 3}\n", ":2:1", "did you mean `fifo_depth`"),
        ("model: p.ein\nlimit: 0\n", ":2:1", "`limit`"),
        ("model: p.ein\ntop: 3\n", ":2:1", "`mode: prune`"),
        ("model: p.ein\nseed: -1\n", ":2:1", "`seed"),
    ],
)
def test_what_is_wrong_has_a_place_and_a_way_out(folder: Path, text: str, place: str, message: str) -> None:
    with pytest.raises(FuseFlowError) as error:
        read(folder, text)
    assert message in str(error.value)
    assert not place or f"s.yaml{place}" in str(error.value)
