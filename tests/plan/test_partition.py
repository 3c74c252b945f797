"""The partition of an operand: which entries are in which part, and what cannot be divided."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuseflow.errors import PlanError
from fuseflow.plan.partition import Form, PlannedPart, common_blocks, partition
from fuseflow.tensors import DTYPES, Format


def parts(values: np.ndarray, *planned: str | tuple[str, float], innermost: int = 1) -> list[np.ndarray]:
    """The entries of each part, whose forms are given as `32x32 i8`, some with a weight."""
    texts = [(part, None) if isinstance(part, str) else part for part in planned]
    listed = [PlannedPart(Form.parse(*text.split()), weight) for text, weight in texts]
    return [part.entries for part in partition("B", values, np.ones(values.shape, dtype=bool), listed, innermost)]


def test_groups_take_what_fits_and_the_residue_is_covered():
    values = np.array([[1.0, 1, 1, 0], [0, 0, 1, 1]])
    groups, rest = parts(values, "nm(2:4)", "elements")
    assert groups.tolist() == [[True, True, False, False], [False, False, True, True]]
    assert np.argwhere(rest).tolist() == [[0, 2]]


def test_groups_run_along_the_innermost_dimension():
    groups, rest = parts(np.ones((4, 2)), "nm(1:2)", "elements", innermost=0)
    assert groups.tolist() == [[True, True], [False, False]] * 2
    assert rest.sum() == 4


def test_blocks_share_by_weight():
    values = np.zeros((8, 8))
    values[:4, :4], values[6, 6] = 1, 1
    blocks, elements = parts(values, ("4x4", 16.1), ("elements", 8.04))
    assert np.argwhere(elements).tolist() == [[6, 6]] and blocks.sum() == 16
    blocks, elements = parts(values, ("4x4", 16.1), ("elements", 1.0))
    assert not blocks.any() and elements.sum() == 17


def test_blocks_of_a_narrow_type_leave_the_entries_that_it_does_not_hold():
    values = np.array([[1.0, 2], [3, 0.5]])
    narrow, wide = parts(values, ("2x2 i8", 1.0), ("elements", 8.0))
    assert np.argwhere(wide).tolist() == [[1, 1]] and narrow.sum() == 3


def test_groups_of_a_narrow_type_leave_the_entries_that_it_does_not_hold():
    groups, rest = parts(np.array([[0.5, 1, 2, 3]]), "nm(2:4) i4", "elements")
    assert groups.tolist() == [[False, True, True, False]] and rest.tolist() == [[True, False, False, True]]


def test_what_is_not_needed_is_in_no_part():
    listed = [PlannedPart(Form())]
    (only,) = partition("B", np.ones((2, 2)), np.eye(2, dtype=bool), listed, 1)
    assert (only.entries == np.eye(2)).all()


@pytest.mark.parametrize(
    ("planned", "message"),
    [
        ((), r"`B` has no parts\n  hint: leave it out, or give it one"),
        (("4x4", "4x4"), r"`B` has two parts `4x4`"),
        (("elements", "nm(2:4)"), r"`nm\(2:4\)` of `B` stands behind `elements`\n  hint: n:m parts come first"),
        ((("4x4", 2.0), "elements"), r"`B`: nothing says what blocks of `elements` cost\n  hint: give each part a `weight`"),
        (("nm(2:4)",), r"no part of `B` holds the entry \(0, 2\), which is 1\n  hint: add a part"),
        (("elements i4",), r"no part of `B` holds the entry \(1, 0\), which is 100"),
    ],
)
def test_what_is_no_division_is_refused(planned: tuple[str | tuple[str, float], ...], message: str):
    with pytest.raises(PlanError, match=message):
        parts(np.array([[1.0, 1, 1, 0], [100, 0, 0, 0]]), *planned)


def test_a_weight_of_0_is_refused():
    with pytest.raises(PlanError, match="a weight of 0 for `4x4 i8`"):
        PlannedPart(Form((4, 4), dtype="i8"), 0.0)


@pytest.mark.parametrize(
    ("dtype", "values", "held"),
    [
        ("i4", [1.0, -8.0, 7.0, -9.0, 8.0, 0.5, np.nan], [True, True, True, False, False, False, False]),
        ("f16", [0.5, 0.1, 2049.0, 65504.0, 65536.0], [True, False, False, True, False]),
        ("f32", [0.5, 0.1, 2.0**31, 2.0**40, np.nan, 1e300], [True, False, True, True, False, False]),
        ("f64", [0.5, 0.1, 2.0**31, 2.0**40, np.nan, 1e300], [True, True, True, True, False, True]),
        ("i32", [0.5, 0.1, 2.0**31, 2.0**40, np.nan, 1e300], [False] * 6),
        ("i64", [0.5, 0.1, 2.0**31, 2.0**40, np.nan, 1e300], [False, False, True, True, False, False]),
    ],
)
def test_a_part_gets_what_its_type_holds(dtype: str, values: list[float], held: list[bool]):
    typed, others = parts(np.array([values]), (f"elements {dtype}", 1.0), ("elements", 2.0))
    assert typed.tolist() == [held]
    assert others.tolist() == [[not each for each in held]]


SIZES = st.integers(1, 1024)
DTYPE = st.sampled_from(["", *DTYPES])
NM_TEXTS = st.tuples(st.integers(1, 9), st.integers(0, 9)).map(lambda nm: f"nm({nm[0]}:{sum(nm)})")


@given(st.builds(Form, st.tuples(SIZES, SIZES), dtype=DTYPE) | st.builds(Form.parse, NM_TEXTS, DTYPE))
def test_a_text_is_read_as_the_same_form(form: Form):
    assert Form.parse(form.storage, form.dtype) == form
    assert str(form).split() == [form.storage, *([form.dtype] if form.dtype else [])]


@pytest.mark.parametrize(
    ("text", "dtype", "message"),
    [
        ("element", "", r"cannot read the block `element`\n  hint: .*; or `elements`, or `nm\(2:4\)`"),
        ("32", "", "a block of 32 has 1 sizes, the tensor 2 dimensions"),
        ("0x4", "", "a block of 0x4: its sizes are 1 to 1024"),
        ("4x2000", "", "a block of 4x2000: its sizes are 1 to 1024"),
        ("4x4x4", "", "a block of 4x4x4 has 3 sizes"),
        ("-4x4", "", "cannot read the block `-4x4`"),
        ("nm(4:2)", "", r"level `nm\(4:2\)`"),
        ("nm", "", "cannot read the level `nm`"),
        ("4x4", "i9", "unknown dtype `i9`"),
    ],
)
def test_what_is_no_form_is_refused(text: str, dtype: str, message: str):
    with pytest.raises(PlanError, match=message):
        Form.parse(text, dtype)


def test_groups_have_no_blocks():
    with pytest.raises(PlanError, match=r"`nm\(2:4\)` in blocks of 4x4"):
        Form((4, 4), Form.parse("nm(2:4)").nm)


@pytest.mark.parametrize(
    ("text", "operand", "format"),
    [
        ("4x4", "dense", "csr"),
        ("elements", "dcsr all", "dcsr"),
        ("elements", "coo", "coo"),
        ("nm(2:4)", "csc", "(dense, nm(2:4)) order (1, 0)"),
        ("elements", "nm(2:4)", "csr"),
        ("2x2", "(dense, dense) order (1, 0)", "csc"),
    ],
)
def test_a_part_is_stored_in_the_order_of_the_operand(text: str, operand: str, format: str):
    assert Form.parse(text).format(Format.parse(operand, 2)) == Format.parse(format, 2)


def test_blocks_agree_along_what_is_shared():
    forms = [Form((32, 12)), Form((4, 8))]
    assert common_blocks(forms, {1}) == ((32, 4), (4, 4))
    assert common_blocks(forms, ()) == ((32, 12), (4, 8))
    assert common_blocks(forms, {0, 1}) == ((4, 4), (4, 4))
