"""Archives of scipy whose parts do not fit together, by as little as can be."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from fuseflow.errors import FileError
from fuseflow.tensors.array_files import load_array
from fuseflow.tensors.npy_files import open_npz, read_named_csr

GOOD = {"format": "csr", "shape": [2, 3], "indptr": [0, 2, 3], "indices": [0, 2, 1], "data": [1.0, 2.0, 3.0]}
DIAGONALS = {"format": "dia", "shape": [2, 3], "offsets": [0, 1], "data": [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]}
COORDINATES = {"format": "coo", "shape": [2, 3], "row": [0, 1], "col": [2, 0], "data": [1.0, 2.0]}


@pytest.mark.parametrize("parts", [GOOD, DIAGONALS, COORDINATES], ids=lambda parts: parts["format"])
@pytest.mark.parametrize("order", ["<", ">"])
def test_a_good_archive_is_that_of_scipy(tmp_path, parts, order):
    data = np.array(parts["data"]).astype(f"{order}f8")
    np.savez(tmp_path / "a.npz", **{**parts, "data": data})
    np.savez(tmp_path / "scipy.npz", **{**parts, "format": parts["format"].encode()})
    np.testing.assert_array_equal(load_array(tmp_path / "a.npz").toarray(), sparse.load_npz(tmp_path / "scipy.npz").toarray())


@pytest.mark.parametrize(
    ("parts", "changes", "message"),
    [
        (GOOD, {"indptr": [0, 2, 2]}, "`indptr` does not divide 3 values among 2 rows or columns"),
        (GOOD, {"indptr": [1, 2, 3]}, "`indptr` does not divide"),
        (GOOD, {"indptr": [0, 3]}, "`indptr` does not divide"),
        (GOOD, {"shape": [3, 3], "indptr": [0, 2, 1, 3]}, "`indptr` does not divide"),
        (GOOD, {"indptr": [0.0, 2.0, 3.0]}, "`indptr` is not a list of whole numbers"),
        (GOOD, {"indices": [0, 3, 1]}, "`indices` has the coordinate 3, outside of 0..2"),
        (GOOD, {"indices": [0, 2, -1]}, "`indices` has the coordinate -1, outside of 0..2"),
        (GOOD, {"indices": [0, 2]}, "it has 3 values at 2 coordinates"),
        (GOOD, {"data": [1.0, 2.0]}, "it has 2 values at 3 coordinates"),
        (GOOD, {"data": ["1", "2", "3"]}, "it holds elements of type `<U1`, not numbers"),
        (GOOD, {"shape": [2]}, "`indptr` does not divide"),
        (GOOD, {"shape": [2, -3]}, "its shape is"),
        (COORDINATES, {"row": [0, 2]}, "`dimension 0` has the coordinate 2, outside of 0..1"),
        (COORDINATES, {"col": [-1, 0]}, "`dimension 1` has the coordinate -1, outside of 0..2"),
        (COORDINATES, {"col": [0]}, "it has 2 values, and not so many coordinates"),
        (DIAGONALS, {"offsets": [0, 0]}, "it has 2 diagonals at 2 offsets"),
    ],
)
def test_parts_that_do_not_fit_together_are_refused(tmp_path, parts, changes, message):
    changed = {**parts, **changes}
    np.savez(tmp_path / "a.npz", **changed)
    with pytest.raises(FileError) as error:
        load_array(tmp_path / "a.npz")
    assert message in str(error.value) and "a.npz` is no sparse array" in str(error.value)
    if parts is GOOD:
        np.savez(tmp_path / "named.npz", **{f"adj_{name}": value for name, value in changed.items()})
        with open_npz(tmp_path / "named.npz") as archive, pytest.raises(FileError, match="has no matrix `adj`"):
            read_named_csr(tmp_path / "named.npz", archive, "adj")
