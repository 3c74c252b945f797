"""Loop orders of the user: every one, complete or partial, is honoured, or refused with a reason."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice, permutations

import programs
import pytest

from fuseflow.einsum.parse import parse
from fuseflow.errors import FusionError, ScheduleError, Span
from fuseflow.fusion.order_candidates import enumerate_orders
from fuseflow.lower.program import lower
from fuseflow.schedule import Schedule

NAMES = ["spmm", "axw", "layer", "masked_softmax", "sddmm", "rows", "hoist", "row_max"]


def order_of(text: str, target: str, order: tuple[str, ...], schedule: Schedule) -> tuple[str, ...]:
    """Return the order of the region that is called `target`, or that holds that Einsum, when the user orders it as `order`."""
    _, regions = lower(parse(text), schedule.order(target, ",".join(order)), {})
    return next(r.fused.order for r in regions if r.name == target or r.einsums == (target,))


def outcome(text: str, region: str, order: tuple[str, ...], schedule: Schedule) -> str:
    """Return `honoured`, `refused` (in words that name the order or its region), or what is wrong."""
    try:
        chosen = order_of(text, region, order, schedule)
    except FusionError as error:
        return "refused" if ",".join(order) in str(error) or f"`{region}`" in str(error) else f"refused without a reason: {error}"
    return "honoured" if tuple(v for v in chosen if v in order) == order else f"{chosen} is not {order}"


@pytest.mark.parametrize("copies", [True, False], ids=["copies", "no copies"])
@pytest.mark.parametrize("name", NAMES)
def test_orders_of_a_region(name, copies):
    """Complete and partial ones. (A softmax that cannot be merged in the order has loops of its own besides.)"""
    text, schedule = programs.TEXTS[name], replace(Schedule.fuse("full"), copies=copies)
    (*_, region) = lower(parse(text), schedule, {})[1]
    loops = region.fused.indices
    orders = [*permutations(loops), *permutations(loops, 2)]
    outcomes = {outcome(text, region.name, order, schedule) for order in orders}
    assert outcomes <= {"honoured", "refused"} and "honoured" in outcomes


def test_a_region_without_a_legal_order_says_so():
    text = programs.TEXTS["enclosed"]
    for order in permutations("ijkl"):
        assert outcome(text, "full", order, replace(Schedule.fuse("full"), copies=False)) == "refused"


@pytest.mark.parametrize("target", ["T", "U"])
def test_orders_of_an_einsum_are_in_its_own_names(target):
    text, schedule = programs.TEXTS["layer"], Schedule.fuse("none")
    for asked in permutations("ijk"):
        assert order_of(text, target, asked, schedule) == asked


def test_an_order_of_a_named_region():
    schedule = Schedule.fuse("front").region("front", "T", "U")
    assert order_of(programs.TEXTS["layer"], "front", ("i", "j"), schedule)[0] == "i"


def test_an_order_of_one_einsum_s_region_may_use_its_names():
    """Its only Einsum is called otherwise than its region; both name it, and not twice."""
    text, schedule = programs.TEXTS["layer"], Schedule.fuse("front").region("front", "T")
    assert order_of(text, "front", ("j", "i", "k"), schedule) == order_of(text, "T", ("j", "i", "k"), schedule)
    with pytest.raises(ScheduleError, match="ordered twice"):
        lower(parse(text), schedule.order("front", "i").order("T", "j"), {})


def test_a_name_that_is_reduced_twice():
    """The region tells the two loops apart; its names are taken as they are printed."""
    text = "tensor A[3, 4] csr\ntensor B[3, 4] csr\nY[i] = (sum(k) A[i, k]) * (sum(k) B[i, k])\noutput Y"
    for asked in permutations(lower(parse(text), Schedule(), {})[1][-1].fused.indices):
        assert order_of(text, "Y", asked, Schedule.fuse("none")) == asked


def test_a_softmax_in_its_own_names():
    """k is a loop of its own if it is ordered, else it is merged with j."""
    text = "tensor A[3, 4] csr\nY[i, j] = exp(A[i, j]) / (sum(k) exp(A[i, k]))\noutput Y"
    assert order_of(text, "Y", ("i", "j"), Schedule.fuse("none")) == ("i", "j")
    assert order_of(text, "Y", ("i", "k", "j"), Schedule.fuse("none")) == ("i", "k", "j")


DEAD = "tensor A[3] f64\nT[i] = A[i] + 1\nY[i] = A[i] * 2\noutput Y"


def test_an_order_of_what_never_runs_is_refused():
    with pytest.raises(ScheduleError, match="order of `T`: nothing that it computes is read"):
        lower(parse(DEAD), Schedule.fuse("none").order("T", "i"), {})
    schedule = Schedule.from_yaml("fuse: none\norder:\n  T: [i]", "s.yaml")
    with pytest.raises(ScheduleError) as error:
        lower(parse(DEAD), schedule, {})
    assert error.value.span == Span("s.yaml", 3, 3)


def test_an_order_of_its_own_loops_makes_no_other_region():
    """The loops that a region shows are those that its order names, in any legal order, copies or not."""
    text = """
        tensor A[3, 3] csr f64
        tensor T[3, 3] dense f64
        T[j, i] = A[i, j] * (sum(k) A[k, j])
        m[j] = max(i) A[i, j]
        E[i, j] = exp(A[i, j] - m[j])
        Y[i, j] = E[i, j] / (sum(k) E[k, j])
        output T, Y
    """
    fused = lower(parse(text), Schedule.fuse("full"), {})[1][-1].fused
    for asked in islice(enumerate_orders(fused.constraints, fused.indices), 10):
        assert order_of(text, "full", asked, Schedule.fuse("full")) == asked


def test_one_copy_serves_any_order_of_a_sum_with_its_transpose():
    text = "tensor A[6, 6] csr\nY[i, j] = A[i, j] + A[j, i]\noutput Y"
    for asked in ("ij", "ji"):
        regions = lower(parse(text), Schedule.order("Y", list(asked)), {})[1]
        assert [r.name for r in regions] == ["A.copy_1_0", "full"]
