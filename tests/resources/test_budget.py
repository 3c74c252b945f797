"""Budgets as users write them, and what fits into them."""

from __future__ import annotations

import pytest

from fuseflow.errors import UsageError
from fuseflow.resources import Resources
from fuseflow.resources.budget import NAMED_BUDGETS, Budget


@pytest.mark.parametrize(
    ("text", "limits"),
    [
        ("mul=64", {"mul": 64}),
        ("port=256, mul=64", {"mul": 64, "port": 256}),
        ("fifo=64KB,workspace=1.5kb,buffer=2MiB", {"fifo": 65536, "workspace": 1536, "buffer": 2 * 1024**2}),
        ("fifo=100", {"fifo": 100}),
        ("area=2M", {"area": 2_000_000}),
        ("area=1.5k, mul=4", {"mul": 4, "area": 1500}),
        ("small", {"mul": 16, "port": 64, "fifo": 65536, "buffer": 65536}),
        ("small,mul=32", {"mul": 32, "port": 64, "fifo": 65536, "buffer": 65536}),
        ("medium", {"mul": 64, "port": 256, "fifo": 1024**2, "buffer": 1024**2}),
        ("large", {"mul": 1024, "port": 1024, "fifo": 16 * 1024**2, "buffer": 16 * 1024**2}),
    ],
)
def test_a_budget_is_read(text: str, limits: dict[str, int]) -> None:
    budget = Budget.parse(text)
    assert dict(budget.limits) == limits
    assert Budget.parse(str(budget)) == budget == Budget.of(limits)
    assert hash(Budget.parse(str(budget))) == hash(budget)


def test_live_bytes_are_limited_for_the_whole_program() -> None:
    budget = Budget.parse("live=1.5MB,small")
    assert budget.live == 3 * 2**19 and budget.limits == Budget.parse("small").limits
    assert Budget.parse(str(budget)) == budget == Budget.of(budget.to_json()) != Budget.parse("small")
    assert budget.with_limit("mul", 4).live == budget.live
    assert not budget.exceeded(Resources(mul=16))
    with pytest.raises(UsageError, match="the limit of `live=0` is not above zero"):
        Budget.parse("live=0")


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("mull=64", "there is no resource `mull`", "did you mean `mul`?"),
        ("smal", "there is no budget `smal`", "did you mean `small`?"),
        ("mul", "the limit of `mul` is no number", "as in `mul=64`"),
        ("mul=", "the limit of `mul=` is no number", "as in `mul=64`"),
        ("mul=-4", "the limit of `mul=-4` is not above zero", "leave `mul` out"),
        ("mul=0", "the limit of `mul=0` is not above zero", "leave `mul` out"),
        ("mul=64KB", "the limit of `mul=64KB` has the unit `KB`", "`mul` is a number of units"),
        ("fifo=64QB", "the limit of `fifo=64QB` has the unit `QB`", "`64KB`"),
        ("area=2MB", "the limit of `area=2MB` has the unit `MB`", "`2M`"),
        ("mul=1.5", "the limit of `mul=1.5` is no whole number", "as in `mul=64`"),
        ("mul=4,mul=8", "the budget has two limits of `mul`", "keep one"),
        ("mul=many", "the limit of `mul=many` is no number", "as in `mul=64`"),
        ("fifo=9999999999GB", "the limit of `fifo=9999999999GB` is more than 64 bits count", "leave `fifo` out"),
        (f"mul={'9' * 400}", f"the limit of `mul={'9' * 400}` is no number", "as in `mul=64`"),
        ("", "there is no budget ``", "known: "),
    ],
)
def test_what_is_no_budget_is_refused_with_what_would_be(text: str, message: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        Budget.parse(text)
    assert caught.value.message == message
    assert hint in caught.value.hint


def test_what_is_not_named_is_unlimited_and_an_unbounded_fifo_fits_no_limit() -> None:
    budget = Budget.of({"mul": 4, "fifo": "1KB"})
    assert not budget.exceeded(Resources(mul=4, add=10_000, fifo=1024))
    assert budget.exceeded(Resources(mul=5, fifo=1025)) == {"mul": 5, "fifo": 1025}
    assert Budget.parse("area=2K").exceeded(Resources(area=2001)) == {"area": 2001}
    assert Budget.parse("area=2K").exceeded(Resources(area=None)) == {"area": None}
    assert budget.exceeded(Resources(fifo=None)) == {"fifo": None}
    assert budget.shares(Resources(mul=2, fifo=None)) == {"mul": 0.5, "fifo": float("inf")}


def test_named_budgets_grow() -> None:
    small, medium, large = (NAMED_BUDGETS[name].limits for name in ("small", "medium", "large"))
    assert all(small[name] < medium[name] < large[name] for name in small)
