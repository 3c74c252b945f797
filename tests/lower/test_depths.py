"""Depths of FIFOs that a schedule states: what they mean, which names they have, and what is refused."""

from __future__ import annotations

import re

import numpy as np
import pytest

import fuseflow as ff
from fuseflow.einsum.parse import parse
from fuseflow.errors import DeadlockError, MachineError, ScheduleError, UsageError
from fuseflow.machine.files import with_settings
from fuseflow.samml.nodes import Edge
from fuseflow.sim import load_machine

SOFTMAX = """
tensor A[4, 40] csr
tensor X[40, 6]
M[i] = max(k) A[i, k]
S[i, k] = exp(A[i, k] - M[i])
Y[i, j] = sum(k) S[i, k] * X[k, j]
output Y
"""


def compiled(schedule: ff.Schedule, machine: str = "rda") -> ff.Compiled:
    rng = np.random.default_rng(0)
    arrays = {"A": rng.random((4, 40)), "X": rng.random((40, 6))}
    return ff.compile(parse(SOFTMAX), tensors=arrays, schedule=schedule, machine=machine)


def test_all_fifos_of_a_region() -> None:
    (region,) = compiled(ff.Schedule.fuse("full").depth("full", 7)).regions
    inputs = {Edge(node.name, k) for node in region.graph.nodes for k in range(len(node.inputs))}
    assert dict(region.graph.depths) == dict.fromkeys(inputs, 7)


def test_one_fifo_goes_before_its_region() -> None:
    (plain,) = compiled(ff.Schedule.fuse("full")).regions
    node = next(node.name for node in plain.graph.nodes if node.op == "alu")
    (region,) = compiled(ff.Schedule.fuse("full").depth("full", 7).depth(f"full/{node}.0", 99)).regions
    depths = dict(region.graph.depths)
    assert depths.pop(Edge(node, 0)) == 99
    assert set(depths.values()) == {7}


def test_one_region_of_several() -> None:
    first, *others = compiled(ff.Schedule.fuse("none").depth("Y", 9)).regions
    assert (first.graph.depths, {depth for _, depth in others[-1].graph.depths}) == ((), {9})


def test_the_copies_of_a_fifo_in_lanes_have_its_name() -> None:
    schedule = ff.Schedule.fuse("full").par(j=2)
    (plain,) = compiled(schedule).regions
    node = next(name for name in plain.graph.by_name if name.endswith("/j0") and plain.graph.by_name[name].inputs)
    name = node.removesuffix("/j0")
    (both,) = compiled(schedule.depth(f"full/{name}.0", 33)).regions
    assert both.graph.depths == ((Edge(f"{name}/j0", 0), 33), (Edge(f"{name}/j1", 0), 33))
    (one,) = compiled(schedule.depth(f"full/{name}/j1.0", 33)).regions
    assert one.graph.depths == ((Edge(f"{name}/j1", 0), 33),)


def test_results_are_the_same_and_cycles_are_not() -> None:
    shallow, deep = (compiled(ff.Schedule.fuse("full").depth("full", slots)).run() for slots in (2, 64))
    assert shallow.check is not None
    assert shallow.check.passed
    np.testing.assert_array_equal(shallow.outputs["Y"], deep.outputs["Y"])
    assert shallow.cycles > deep.cycles


def test_a_depth_at_which_the_graph_would_deadlock_is_where_auto_begins() -> None:
    """The values of a row wait until their maximum is known."""
    compiled_region = compiled(ff.Schedule.fuse("full").depth("full", 2))
    region = compiled_region.run(check=False).regions[0]
    assert region.simulation.depths
    assert min(region.simulation.depths.values()) > 2
    inputs = len(compiled_region.regions[0].graph.depths)
    assert region.resources.fifo == 4 * (2 * inputs + sum(depth - 2 for depth in region.simulation.depths.values()))


def test_machines_without_bounds_get_those_of_the_schedule() -> None:
    region = compiled(ff.Schedule.fuse("full").depth("full", 64), machine="ideal").run(check=False).regions[0]
    assert max(edge.peak for edge in region.simulation.edges) <= 64


def test_the_public_simulator_has_no_depths() -> None:
    with pytest.raises(MachineError, match="FIFOs of machine `comal` are unbounded"):
        compiled(ff.Schedule.fuse("full").depth("full", 64), machine="comal").run(check=False)


@pytest.mark.parametrize(
    ("name", "message", "hint"),
    [
        ("ful", "depth 3 of `ful`: no region `ful`", "did you mean `full`?"),
        ("full/mull.0", "depth 3 of `full/mull.0`: region `full` has no FIFO `mull.0`", "did you mean `mul.0`?"),
        ("full/mul.7", "depth 3 of `full/mul.7`: region `full` has no FIFO `mul.7`", "did you mean `mul.1`?"),
    ],
)
def test_what_is_not_there_is_refused(name: str, message: str, hint: str) -> None:
    with pytest.raises(ScheduleError, match=re.escape(message)) as error:
        compiled(ff.Schedule.fuse("full").depth(name, 3))
    assert error.value.hint == hint


def test_a_file_says_where() -> None:
    with pytest.raises(ScheduleError) as error:
        compiled(ff.Schedule.from_yaml("fuse: [full]\ndepth:\n  other: 3\n", "s.yaml"))
    assert str(error.value.span) == "s.yaml:3:3"


@pytest.mark.parametrize("name", ["", "a/b", "a/.1", "a/b.x", "-a"])
def test_what_is_no_name_is_refused(name: str) -> None:
    with pytest.raises(ScheduleError):
        ff.Schedule().depth(name, 3)


@pytest.mark.parametrize("slots", [0, -1, True])
def test_what_is_no_depth_is_refused(slots: int) -> None:
    with pytest.raises(ScheduleError, match="is not a number of slots"):
        ff.Schedule().depth("full", slots)


def test_flags_and_files_are_lossless() -> None:
    schedule = ff.Schedule.from_flags(["full"], depths=["full=128", "full/rep_k'2/k0.1=4096"])
    assert schedule.depths == (("full", 128), ("full/rep_k'2/k0.1", 4096))
    assert ff.Schedule.from_yaml(str(schedule)) == schedule
    assert ff.Schedule.from_flags(depths=["full=64"], base=schedule).depths[0] == ("full", 64)
    with pytest.raises(UsageError, match="`many` is not a number of slots"):
        ff.Schedule.from_flags(depths=["full=many"])


def test_auto_takes_a_cut_that_has_the_regions_of_the_depths() -> None:
    choice = ff.autoschedule(parse(SOFTMAX), schedule=ff.Schedule.fuse("auto").depth("full", 3), top=0)
    assert choice.schedule.fuse_regions in (("layerwise",), ("full",)) and choice.schedule.depths == (("full", 3),)
    with pytest.raises(ScheduleError, match="`nothing`"):
        ff.autoschedule(parse(SOFTMAX), schedule=ff.Schedule.fuse("auto").depth("nothing", 3), top=0)


EMPTY = {
    "a vector": (
        "tensor S[3, 3, 4] csf\ntensor A[4, 4] csr\ntensor x[3] (compressed)",
        "T[i, j] = sum(b, k) S[i, b, k] * A[k, j] * x[b]",
        "x",
    ),
    "a matrix": ("tensor A[4, 4] csr\ntensor B[4, 4] csr", "T[i, j] = sum(k) A[i, k] * B[k, j]", "A"),
    "the other matrix": ("tensor A[4, 4] csr\ntensor B[4, 4] dcsr", "T[i, j] = sum(k) A[i, k] * B[k, j]", "B"),
    "all of them": ("tensor A[4, 4] dcsr\ntensor x[4] (compressed)", "T[i] = sum(k) A[i, k] * x[k]", "Ax"),
}


@pytest.mark.parametrize("case", EMPTY)
def test_depths_by_the_estimate_where_an_operand_stores_nothing(case: str) -> None:
    """A port that reads nothing was divided by: `--depth auto` ended in a ZeroDivisionError."""
    declared, statement, empty = EMPTY[case]
    program = parse(f"{declared}\n{statement}\noutput T\n")
    tensors = {t.name: np.zeros(t.shape) if t.name in empty else np.eye(*t.shape[-2:]) * np.ones(t.shape) for t in program.inputs}
    result = ff.compile(program, tensors=tensors, schedule=ff.Schedule().lower(depth_policy="auto"), machine="rda").run()
    assert result.check is not None and result.check.passed
    assert not result.tensors["T"].to_dense().any()


STUCK = """
tensor A[6, 6] csr
tensor B[6, 6] csr
T[i, j] = A[i, j] + B[i, j]
Y[i] = sum(j) T[i, j] / (1 + (sum(k) T[i, k]))
output Y
"""


@pytest.mark.parametrize("depth", [None, 1, 2])
def test_a_deadlock_names_the_knob_that_turns(depth: int | None) -> None:
    """`fifo_depth` of the machine changes nothing at a FIFO whose depth the schedule states."""
    schedule = ff.Schedule.fuse("full")
    machine = with_settings(load_machine("ideal"), {"fifo_depth": 1})
    tensors = dict.fromkeys("AB", np.ones((6, 6)))
    stuck = ff.compile(
        parse(STUCK), tensors=tensors, schedule=schedule if depth is None else schedule.depth("full", depth), machine=machine
    )
    with pytest.raises(DeadlockError) as caught:
        stuck.run()
    assert ("--depth" in caught.value.hint) is (depth is not None)
    assert "raise `fifo_depth` of the machine" not in caught.value.hint or depth is None


def test_a_deadlock_that_one_fifo_clears_says_whose_depth_it_is() -> None:
    tensors = {"A": np.ones((6, 6)), "B": np.ones((6, 6))}
    (region,) = ff.compile(parse(STUCK), tensors=tensors, schedule=ff.Schedule.fuse("full"), machine="ideal").regions
    hints = set[str]()
    for edge in [Edge(node.name, k) for node in region.graph.nodes for k in range(len(node.inputs))]:
        schedule = ff.Schedule.fuse("full").depth(f"full/{edge.node}.{edge.input}", 1)
        try:
            ff.compile(parse(STUCK), tensors=tensors, schedule=schedule, machine="ideal").run()
        except DeadlockError as error:
            hints.add(error.hint)
    assert hints and all(hint.endswith("no smaller one does; its depth is stated (`--depth`)") for hint in hints)
