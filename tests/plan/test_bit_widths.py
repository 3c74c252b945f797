"""Bit rounding: the bits of entries, and the widths to which they are rounded up."""

from __future__ import annotations

from itertools import chain, combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuseflow.errors import PlanError
from fuseflow.plan.bit_widths import held_exactly, needed_bits, round_up, rounding_options
from fuseflow.tensors import DTYPES

WIDTHS = (4, 8, 16, 32)


@given(st.integers(-(2**31), 2**31 - 1))
def test_an_integer_needs_the_bits_of_two_s_complement(number: int):
    least = next(bits for bits in range(1, 33) if -(2 ** (bits - 1)) <= number < 2 ** (bits - 1))
    assert needed_bits(np.array([number])) == (0 if number == 0 else least)


@pytest.mark.parametrize("value", [0.5, -0.25, 2.0**31, -(2.0**31) - 1, 1e300, np.inf, -np.inf, np.nan])
def test_what_is_no_integer_of_32_bits_needs_32(value: float):
    assert needed_bits(np.array([value])) == 32


@pytest.mark.parametrize("name", ["i4", "i8", "i16"])
def test_bits_say_whether_an_integer_type_holds_a_value(name: str):
    least, greatest = DTYPES[name].range
    values = np.array([0, 1, least, greatest, least - 1, greatest + 1, 0.5, np.nan])
    assert (held_exactly(values, DTYPES[name]) == (needed_bits(values) <= DTYPES[name].bits)).all()


def test_a_float_of_16_bits_holds_what_has_few_digits():
    assert held_exactly(np.array([0.5, 0.1, 2049.0, 65504.0, 65536.0]), DTYPES["f16"]).tolist() == [
        True,
        False,
        False,
        True,
        False,
    ]


def test_a_wide_type_does_not_hold_every_value_either():
    values = np.array([0.5, 0.1, 2.0**31, 2.0**40, np.nan, 1e300])
    assert held_exactly(values, DTYPES["f32"]).tolist() == [True, False, True, True, False, False]
    assert held_exactly(values, DTYPES["f64"]).tolist() == [True, True, True, True, False, True]
    assert held_exactly(values, DTYPES["i32"]).tolist() == [False] * 6
    assert held_exactly(values, DTYPES["i64"]).tolist() == [False, False, True, True, False, False]


@given(st.lists(st.integers(0, 32)), st.sets(st.sampled_from(WIDTHS)))
def test_options_are_the_subsets_that_hold_all(bits: list[int], widths: set[int]):
    entries, most = np.array(bits, dtype=np.int64), max(bits, default=0)
    if most > max(widths, default=-1):
        with pytest.raises(PlanError, match=rf"an entry needs {most} bits.*\n  hint: add a width of at least {most}"):
            rounding_options(entries, widths)
        return
    found = rounding_options(entries, widths)
    roundings = {tuple(round_up(entries, option)) for option in found}
    assert len(roundings) == len(found) and list(found) == sorted(found, key=len)
    subsets = chain.from_iterable(combinations(sorted(widths), count) for count in range(1, len(widths) + 1))
    assert {tuple(round_up(entries, subset)) for subset in subsets if most <= subset[-1]} - roundings <= {(0,) * len(bits)}
