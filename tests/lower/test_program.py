"""From program and schedule to regions: schedules honoured, formats kept, requests refused with reasons."""

from __future__ import annotations

import programs
import pytest

from fuseflow.einsum.parse import parse
from fuseflow.errors import FuseFlowError, ScheduleError, Span
from fuseflow.lower.program import lower
from fuseflow.samml.text import show
from fuseflow.schedule import Schedule

LAYER = parse(programs.TEXTS["layer"])


def regions(schedule: Schedule):
    return lower(LAYER, schedule, {})[1]


def test_none_and_full():
    assert [r.einsums for r in regions(Schedule.fuse("none"))] == [("T",), ("U",), ("Y",)]
    assert [r.einsums for r in regions(Schedule.fuse("full"))] == [("T", "U", "Y")]


def test_orders_count_for_their_region():
    orders = {r.name: r.fused.order for r in regions(Schedule.fuse("none").order("T", "j,i,k").order("U", "i,j,k"))}
    assert (orders["T"], orders["U"]) == (("j", "i", "k"), ("i", "j", "k"))


def test_a_later_region_reads_what_an_earlier_one_really_stored():
    by_name = {r.name: r for r in regions(Schedule.fuse("none").order("T", "j,i,k"))}
    assert by_name["U"].graph.declared["T"] == by_name["T"].graph.declared["T"]
    assert by_name["U"].graph.declared["T"].format.order == (1, 0)


def test_a_fused_order_names_the_indices_of_the_region():
    (region,) = regions(Schedule.fuse("full").order("full", "i,k,l,j"))
    assert region.fused.order == ("i", "k", "l", "j")


@pytest.mark.parametrize(
    ("schedule", "message", "hint"),
    [
        (Schedule.fuse("full").order("V", "i"), "order of `V`: no region or Einsum has this name", "known"),
        (Schedule.fuse("full").order("T", "i,k,j"), "order of `T`: it is fused into region `full`", "--order full=..."),
        (Schedule.fuse("full").format("B", "csr"), "format of `B`: there is no such tensor", "did you mean `b`?"),
        (Schedule.fuse("none").format("T", "coo"), "result `T` cannot be written as coo", "--format T=dcsr"),
        (Schedule.fuse("full").par(q=4), "4 lanes of `q`: no region has this index", "known: `i`"),
        (Schedule.fuse("full").par(**{"layer.i": 4}), "no region `layer` has an index `i`", "`full.i`"),
        (Schedule.fuse("layer9"), "layer9", ""),
        (
            Schedule.fuse("none").order("T", "k,i,j").lower(copies=False),
            "puts k before i, but X[i, k] is stored i before k (csr)",
            "legal orders",
        ),
        (Schedule.fuse("none").order("T", "i,k,m"), "has no index `m`", ""),
    ],
)
def test_refusals(schedule, message, hint):
    with pytest.raises(FuseFlowError) as error:
        lower(LAYER, schedule, {})
    assert message in error.value.message
    assert hint in error.value.hint


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("fuse: [T, layer9]", 1, 11),
        ("fuse: layer9", 1, 1),
        ("regions:\n  r: [T]\n  q: [layer9]", 3, 3),
        ("fuse: full\norder:\n  V: [i]", 3, 3),
        ("fuse: full\norder:\n  T: [i, k, j]", 3, 3),
        ("fuse: full\nformat: {X: csr, B: csr}", 2, 18),
        ("fuse: full\nformat: {b: csr}", 2, 10),
        ("fuse: full\npar: {q: 4}", 2, 7),
    ],
)
def test_a_name_that_the_program_has_not_is_shown_in_the_schedule_file(text, line, column):
    with pytest.raises(FuseFlowError) as error:
        lower(LAYER, Schedule.from_yaml(text, "s.yaml"), {})
    assert error.value.span == Span("s.yaml", line, column)


def test_a_flag_over_a_file_has_no_place_in_it():
    schedule = Schedule.from_flags(orders=["V=j"], base=Schedule.from_yaml("order: {V: i, T: i}", "s.yaml"))
    assert schedule.place("order", "V") is None
    assert schedule.place("order", "T") == Span("s.yaml", 1, 15)


def test_compilation_is_repeatable():
    first, second = (regions(Schedule.fuse("full")) for _ in range(2))
    assert [show(r.graph) for r in first] == [show(r.graph) for r in second]


def test_dead_einsums_make_no_region():
    program = parse("tensor A[3] f64\nT[i] = A[i] + 1\nY[i] = A[i] * 2\noutput Y")
    assert [r.name for r in lower(program, Schedule.fuse("none"), {})[1]] == ["Y"]


def test_two_orders_for_one_region_contradict():
    program = parse("tensor A[3, 3] f64\nY[i, j] = A[i, j] * 2\noutput Y")
    schedule = Schedule.fuse("full").order("full", "i,j").order("Y", "j,i")
    with pytest.raises(ScheduleError, match="ordered twice"):
        lower(program, schedule, {})
