"""The operator table: arrays and scalars agree, annihilators win, names are checked."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuseflow import keep_rules
from fuseflow.errors import ProgramError
from fuseflow.ops import OPERATORS, REDUCERS, operator, reducer

SPECIAL = [0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, 3.0, -3.0, math.inf, -math.inf, math.nan, 1e308, -1e308, 1e-310, 710.0, -710.0]
ANNIHILATORS = [(name, *row) for name, op in OPERATORS.items() for row in op.annihilators]


def same(a: float, b: float) -> bool:
    return (math.isnan(a) and math.isnan(b)) or a == b or math.isclose(a, b, rel_tol=1e-14, abs_tol=1e-300)


@pytest.mark.parametrize("name", OPERATORS)
def test_scalar_equals_array_at_special_values(name: str) -> None:
    op = OPERATORS[name]
    for operands in itertools.product(SPECIAL, repeat=op.arity):
        scalar = op.scalar(*operands)
        assert type(scalar) is float
        assert same(scalar, float(op(*operands))), (operands, scalar, op(*operands))


@given(st.sampled_from(sorted(OPERATORS)), st.lists(st.floats(), min_size=3, max_size=3))
def test_scalar_equals_array_at_any_values(name: str, values: list[float]) -> None:
    op = OPERATORS[name]
    operands = values[: op.arity]
    assert same(op.scalar(*operands), float(op(*operands))), (operands, op.scalar(*operands), op(*operands))


@pytest.mark.parametrize("name", OPERATORS)
def test_arrays_broadcast_like_single_values(name: str) -> None:
    op = OPERATORS[name]
    whole = op(*[np.array(SPECIAL)] * op.arity)
    for k, value in enumerate(SPECIAL):
        assert same(float(whole[k]), float(op(*[value] * op.arity)))


@pytest.mark.parametrize(("name", "position", "value", "result"), ANNIHILATORS)
def test_an_annihilator_wins_over_everything(name: str, position: int, value: float, result: float) -> None:
    op = OPERATORS[name]
    assert op.annihilated(position, value) == result
    for others in itertools.product(SPECIAL, repeat=op.arity - 1):
        operands = [*others[:position], value, *others[position:]]
        assert op.scalar(*operands) == result, operands
        assert float(op(*operands)) == result, operands


def test_the_annihilators_are_those_that_joins_rely_on() -> None:
    assert {(name, position, value) for name, position, value, _ in ANNIHILATORS} == {
        ("mul", 0, 0.0), ("mul", 1, 0.0), ("div", 0, 0.0), ("pow", 1, 0.0), ("sub", 0, -math.inf),
        ("add", 0, -math.inf), ("add", 1, -math.inf), ("min", 0, -math.inf), ("min", 1, -math.inf),
        ("threshold", 0, 0.0),
    }  # fmt: skip


@pytest.mark.parametrize("least", [-1.0, 0.0, 0.5, 2.0, math.inf])
@pytest.mark.parametrize("value", SPECIAL)
def test_a_threshold_keeps_what_the_table_of_rules_keeps(value: float, least: float) -> None:
    kept_value = value if keep_rules.kept(keep_rules.Threshold(least), value) and value != 0 else 0.0
    assert same(operator("threshold").scalar(value, least), kept_value)
    assert same(float(operator("threshold")(value, least)), kept_value)


def test_where_with_a_known_condition_is_fixed_by_a_constant_branch() -> None:
    where = operator("where")
    assert where.annihilated(0, 0.0, (None, None, 7.0)) == 7.0
    assert where.annihilated(0, 1.0, (None, 5.0, None)) == 5.0
    assert where.annihilated(0, 1.0, (None, None, 7.0)) is None


def test_where_is_fixed_by_a_branch_that_equals_the_other_one() -> None:
    where = operator("where")
    assert where.annihilated(1, 7.0, (None, None, 7.0)) == 7.0
    assert where.annihilated(2, -math.inf, (None, -math.inf, None)) == -math.inf
    assert where.annihilated(1, 0.0, (None, None, 7.0)) is None
    assert where.annihilated(2, 0.0, (None, None, None)) is None
    assert where.annihilated(1, math.nan, (None, None, math.nan)) is None
    for condition in SPECIAL:
        assert where.scalar(condition, 7.0, 7.0) == 7.0 == float(where(condition, 7.0, 7.0))


@pytest.mark.parametrize("name", REDUCERS)
def test_reductions_agree_on_arrays_and_scalars(name: str) -> None:
    op = REDUCERS[name]
    with np.errstate(all="ignore"):
        for a, b in itertools.product(SPECIAL, repeat=2):
            assert same(op.scalar(a, b), float(op.array(a, b))), (a, b)
    for a in SPECIAL:
        assert same(op.scalar(op.identity, a), a)


@pytest.mark.parametrize("name", REDUCERS)
@pytest.mark.parametrize("value", [0.0, 1.0, -2.0, -math.inf])
@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_the_reduction_of_equal_values_is_the_fold(name: str, value: float, count: int) -> None:
    op = REDUCERS[name]
    total = op.identity
    for _ in range(count):
        total = op.scalar(total, value)
    assert same(op.repeated(value, count), total)


def test_unknown_names_get_the_nearest_right_one() -> None:
    with pytest.raises(ProgramError, match="sigmoid"):
        operator("sigmoide")
    with pytest.raises(ProgramError, match="prod"):
        reducer("product")


@pytest.mark.parametrize("name", [name for name, row in OPERATORS.items() if not row.rounds])
def test_what_is_not_rounded_gives_floats_of_32_bits_of_such_floats(name: str) -> None:
    row = OPERATORS[name]
    values = np.array([-np.inf, -3.5e5, -1.1, -0.3, -0.0, 1e-40, 0.1, 2.5, 16777217.0, 3e38, np.inf, np.nan], np.float32)
    others = {"nearest": (2.0**-7, 2.0**-133), "nearest_finite": (2.0**-3, 448.0)}.get(name, (-8.0, 7.0))
    operands = [values[:, None], values[None, :], np.float32(7)][: row.arity]
    if name in ("nearest", "nearest_finite", "saturate"):
        operands = [values, *map(np.float32, others)]
    with np.errstate(all="ignore"):
        result = row(*operands)
        np.testing.assert_array_equal(result, result.astype(np.float32).astype(np.float64))
