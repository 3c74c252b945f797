"""The forms of parts: their texts, their formats, and the blocks that they share."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuseflow.errors import PlanError
from fuseflow.plan.part_format import Form, common_blocks
from fuseflow.tensors import DTYPES, Format

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
