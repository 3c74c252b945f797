"""The code of SparTA: what an analysis says in it, and what is read from it."""

import numpy as np
import pytest

import fuseflow as ff
from fuseflow.einsum.parse import parse
from fuseflow.errors import AttributesError
from fuseflow.propagation import analyse, constant
from fuseflow.propagation.tesa import TesaCode, tesa_code

PRODUCT = parse("tensor A[2, 2] dense i8\ntensor B[2, 2] dense\nY[i, j] = sum(k) A[i, k] * B[k, j]\noutput Y")


def test_what_an_analysis_says_is_coded():
    analysis = analyse(PRODUCT, {"B": constant([[2, np.nan], [0, 0]])})
    assert tesa_code(analysis, "B").codes.tolist() == [[0x800 | 32, 32], [0, 0]]
    a = tesa_code(analysis, "A")
    assert a.codes.tolist() == [[1 << 7 | 8, 0], [1 << 7 | 8, 0]]
    assert a.types().tolist() == [["i8", ""], ["i8", ""]] and not a.constant.any()
    assert analyse(PRODUCT, {"A": a.attribute}).known["A"][0, 1] == 0


def test_widths_and_types_of_the_published_code():
    """A pruned element, a float of 32 bits, a constant integer of 8, an unsigned one of 8, a bfloat of 16."""
    code = TesaCode(np.array([0, 32, 0x800 | 1 << 7 | 8, 2 << 7 | 8, 3 << 7 | 16], np.uint16))
    assert code.widths.tolist() == [0, 32, 8, 8, 16]
    assert code.types().tolist() == ["", "f32", "i8", "u8", "bf16"]
    assert code.kept.tolist() == [False, True, True, True, True] and code.constant.tolist() == [False, False, True, False, False]


@pytest.mark.parametrize(
    ("codes", "message"),
    [
        (np.array([0x1000], np.uint16), "0x1000 at \\(0,\\) is no code"),
        (np.array([[6 << 7 | 8]], np.uint16), "is no code"),
        (np.array([32], np.int64), "codes are `uint16`"),
    ],
)
def test_what_is_no_code_is_refused(codes, message):
    with pytest.raises(AttributesError, match=message):
        TesaCode(codes)


def test_floats_of_8_bits_and_less_have_codes():
    code = TesaCode(np.array([8, 4, 4 << 7 | 8, 5 << 7 | 8], np.uint16))
    assert code.types().tolist() == ["e4m3", "e2m1", "e5m2", "e8m0"]
    for name in ("e4m3", "e2m1", "e5m2", "e8m0"):
        declared = parse(f"tensor A[2] dense {name}\nY[i] = A[i] * 2\noutput Y")
        assert tesa_code(analyse(declared, {}), "A").types().tolist() == [name, name]


def test_a_type_that_is_not_there_is_refused():
    with pytest.raises(AttributesError, match="no type has 5 bits"):
        TesaCode(np.array([5], np.uint16)).types()


def test_the_names_that_users_have():
    names = dir(ff.attributes)
    assert {"analyse", "pruned", "shrink", "register_rule", "analyse_module", "propagate"} <= set(names)
    assert ff.attributes.shrink.__module__ == "fuseflow.frontend.model_propagation.channel_pruning"
    with pytest.raises(AttributeError, match="no attribute 'shrnk'"):
        _ = ff.attributes.shrnk
