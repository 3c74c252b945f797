"""MatrixMarket files: what is read is what the file says, and what is not read is refused with its line."""

from __future__ import annotations

import io

import numpy as np
import pytest
from scipy import io as scipy_io
from scipy import sparse

from fuseflow.errors import FileError
from fuseflow.tensors.array_files import load_array


def written(tmp_path, kind, text):
    path = tmp_path / "a.mtx"
    path.write_bytes(f"%%MatrixMarket matrix {kind}\n{text}".encode())
    return path


def read(tmp_path, kind, text):
    matrix = load_array(written(tmp_path, kind, text))
    return matrix.toarray() if sparse.issparse(matrix) else matrix


@pytest.mark.parametrize(
    ("number", "value"),
    [
        ("1.5D+02", 150),  # the case mtx_fortran_exponent
        ("2.0D-01", 0.2),
        ("-.5d1", -5),
        ("+3.D0", 3),
        ("1d2", 100),
        ("+1.5", 1.5),  # the case mtx_line_numbers
        ("1E+2", 100),
        ("4", 4),
        ("nan", np.nan),
        ("-NaN", np.nan),
        ("-Inf", -np.inf),
        ("+infinity", np.inf),
        ("1e-400", 0),
        ("0000.1250", 0.125),
    ],
)
def test_real_numbers(tmp_path, number, value):
    np.testing.assert_array_equal(read(tmp_path, "coordinate real general", f"1 2 1\n1 2 {number}\n"), [[0, value]])
    np.testing.assert_array_equal(read(tmp_path, "array real general", f"1 1\n {number}\t\n"), [[value]])


@pytest.mark.parametrize(
    "number",
    ["1.5+02", "1.5D", "1.5D+", "1.5DD2", "0x1p3", "1_0", "1,5", "1.#INF", "nan(1)", "infin", "1e400", "-1d999", "1j", "1 2"],
)
def test_other_words_are_no_real_numbers(tmp_path, number):
    for kind, text in (("coordinate", f"2 2 2\n1 1 3\n\n2 2 {number}\n"), ("array", f"2 1\n5\n\n{number}\n")):
        with pytest.raises(FileError, match=r"a\.mtx`, line 5: `.*`: expected .*a real number that 64 bits hold"):
            read(tmp_path, f"{kind} real general", text)


@pytest.mark.parametrize("number", ["1.5", "2.0", "1e3", "1D3", "nan", "1_0", "9223372036854775808", "0x10"])
@pytest.mark.parametrize("field", ["integer", "unsigned-integer"])
def test_integers_have_no_fraction_and_no_exponent(tmp_path, field, number):
    with pytest.raises(FileError, match=r"line 4: `2 1 .*`: expected a row, a column and an integer of"):
        read(tmp_path, f"coordinate {field} general", f"2 2 2\n1 1 3\n2 1 {number}\n")


@pytest.mark.parametrize("number", [2**53 + 1, 2**63 - 1, 1 - 2**63, "+7", "-0", "007"])
def test_integers_keep_all_their_digits(tmp_path, number):
    found = read(tmp_path, "coordinate integer general", f"1 1 1\n1 1 {number}\n")
    assert found.dtype == np.int64 and found[0, 0] == int(number)


@pytest.mark.parametrize(
    ("kind", "text", "message"),
    [
        # the case mtx_line_numbers: comments and blank lines are lines of the file
        ("coordinate real general", "% a\n% b\n% c\n\n2 2 2\n1 1 1\n\n3 1 3\n", "line 9: `3 1 3`: the row is outside of 1..2"),
        ("coordinate real general", "2 2 1\n0 1 3\n", "line 3: `0 1 3`: the row is outside of 1..2"),
        ("coordinate real general", "%\n2 2 1\n1 -1 3\n", "line 4: `1 -1 3`: the column is outside of 1..2"),
        ("coordinate real general", "2 2 1\n1 36893488147419103233 3\n", "line 3: `1 36893488147419103233 3`: expected a row"),
        ("coordinate real general", "2 2 1\n1.0 1 3\n", "line 3: `1.0 1 3`: expected a row, a column and a real number"),
        ("coordinate real general", "2 2 2\n1 1 3\n\n", "line 2: 2 entries of 2 x 2 are stated here, and 1 lines of them follow"),
        ("coordinate real general", "\n%\n2 2 1\n1 1 3\n2 2 3\n", "line 4: 1 entries of 2 x 2 are stated here, and 2 lines"),
        ("coordinate real general", "2 2 1\n% late\n1 1 3\n", "line 3: `% late`: expected a row, a column"),
        ("coordinate real general", "\n2 2\n1 1 3\n", "line 3: expected a line with the sizes of the matrix and its entries"),
        ("coordinate pattern general", "2 2 1\n1 1 5\n", "line 3: `1 1 5`: expected a row and a column"),
        ("coordinate pattern skew-symmetric", "2 2 1\n2 1\n", "line 1: a pattern has no values, so it is not skew-symmetric"),
        ("coordinate complex general", "2 2 1\n1 1 1 0\n", "line 1: the numbers are complex\n  hint: store real numbers"),
        ("coordinate unsigned-integer general", "2 2 1\n1 1 -1\n", "line 3: `1 1 -1`: the value is too small"),
        (
            "coordinate integer skew-symmetric",
            f"2 2 1\n2 1 {-(2**63)}\n",
            "line 3: `2 1 -9223372036854775808`: the value is too small",
        ),
        # the case mtx_symmetric_not_square
        (
            "coordinate real skew-symmetric",
            "4 3 2\n2 1 1\n3 3 5\n",
            "line 2: a skew-symmetric matrix is square, and this one is 4 x 3",
        ),
        ("coordinate real symmetric", "% x\n2 3 1\n2 1 1\n", "line 3: a symmetric matrix is square, and this one is 2 x 3"),
        ("coordinate real hermitian", "3 2 1\n2 1 1\n", "line 2: a hermitian matrix is square, and this one is 3 x 2"),
        ("array real symmetric", "1 2\n1\n2\n", "line 2: a symmetric matrix is square, and this one is 1 x 2"),
        ("coordinate real skew-symmetric", "3 3 2\n2 1 1\n3 3 5\n", "line 4: `3 3 5`: a skew-symmetric matrix stores nothing on"),
        ("coordinate real symmetric", "2 2 2\n2 1 5\n1 2 5\n", "line 4: `1 2 5`: a symmetric matrix stores entries on one side"),
        (
            "coordinate pattern symmetric",
            "3 3 3\n1 3\n2 2\n3 2\n",
            "line 5: `3 2`: a symmetric matrix stores entries on one side",
        ),
        (
            "coordinate integer hermitian",
            "2 2 2\n1 2 5\n2 1 5\n",
            "line 4: `2 1 5`: a hermitian matrix stores entries on one side",
        ),
        ("coordinate real lower", "2 2 1\n2 1 1\n", "line 1: the symmetry `lower` is unknown"),
        ("array pattern general", "2 2\n1\n", "line 1: the kind `array pattern` of a matrix is unknown"),
    ],
)
def test_a_file_that_is_against_its_header_is_refused_with_its_line(tmp_path, kind, text, message):
    with pytest.raises(FileError) as error:
        read(tmp_path, kind, text)
    assert f"a.mtx`, {message}" in str(error.value)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("coordinate real symmetric", "3 3 3\n2 1 5\n3 3 7\n3 1 -1.5\n"),
        ("coordinate real symmetric", "3 3 3\n1 2 5\n3 3 7\n1 3 -1.5\n"),
        ("coordinate real skew-symmetric", "3 3 2\n2 1 5\n3 2 7\n"),
        ("coordinate real skew-symmetric", "3 3 2\n1 2 5\n2 3 7\n"),
        ("coordinate real hermitian", "2 2 2\n2 1 5\n2 2 1\n"),
        ("coordinate integer symmetric", "2 2 3\n2 1 5\n2 1 4\n1 1 3\n"),
        ("coordinate pattern symmetric", "3 3 2\n2 1\n3 3\n"),
        ("coordinate pattern general", "2 3 2\n2 3\n1 1\n"),
        ("array real general", "2 3\n1\n2\n3\n4\n5\n6\n"),
        ("array real symmetric", "3 3\n1\n2\n3\n4\n5\n6\n"),
        ("array integer skew-symmetric", "3 3\n1\n2\n3\n"),
        ("array real hermitian", "2 2\n1\n2\n3\n"),
        ("coordinate real general", "2 2 2\r\n1 1 5\r\n\r\n2 2 3"),
    ],
)
def test_matrices_are_those_of_scipy(tmp_path, kind, text):
    found = read(tmp_path, kind, text)
    expected = scipy_io.mmread(io.BytesIO(written(tmp_path, kind, text).read_bytes()))
    expected = expected.toarray() if sparse.issparse(expected) else expected
    np.testing.assert_array_equal(found, expected)
    assert found.dtype == expected.dtype


def test_a_line_of_a_long_file(tmp_path):
    lines = [f"{row} 1 0.5" for row in range(1, 1001)]
    lines[776] = "777 1 O.5"
    with pytest.raises(FileError, match=r"line 779: `777 1 O\.5`"):
        read(tmp_path, "coordinate real general", "\n".join(["1000 1 1000", *lines]))
