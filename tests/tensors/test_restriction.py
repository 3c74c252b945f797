from __future__ import annotations

import numpy as np
import pytest

from fuseflow.tensors import Format, pack
from fuseflow.tensors.restriction import regroup_format, regroup_tensor


@pytest.mark.parametrize(
    ("format", "before", "after", "expected"),
    [
        ("dense", ["a", "bc"], ["a", "b", "c"], "(dense, dense, dense)"),
        ("(dense, dense) order (1, 0)", ["a", "bc"], ["a", "b", "c"], "(dense, dense, dense) order (1, 2, 0)"),
        ("csr", ["ab", "c"], ["a", "b", "c"], "(dense, dense, compressed)"),
        ("csr", ["a", "bc"], ["a", "b", "c"], None),
        ("csc", ["a", "bc"], ["a", "b", "c"], "(dense, dense, compressed) order (1, 2, 0)"),
        ("(dense, dense, compressed)", ["a", "b", "c"], ["ab", "c"], "(dense, compressed)"),
        ("(dense, dense, compressed)", ["a", "b", "c"], ["a", "bc"], None),
        ("(dense, dense, dense) order (1, 0, 2)", ["a", "b", "c"], ["ab", "c"], None),
        ("(dense, dense, dense) order (2, 0, 1)", ["a", "b", "c"], ["ab", "c"], "(dense, dense) order (1, 0)"),
        ("(dense, dense, dense) order (0, 2, 1)", ["a", "b", "c"], ["ab", "c"], None),
    ],
)
def test_formats(format, before, after, expected) -> None:
    stored = Format.parse(format, len(before))
    found = regroup_format(stored, before, after)
    assert (None if found is None else str(found)) == expected
    if found is None:
        return
    size = {"a": 2, "b": 3, "c": 4}
    shape = tuple(int(np.prod([size[p] for p in parts])) for parts in before)
    array = np.random.default_rng(0).integers(-1, 2, shape).astype(np.float32)
    other = tuple(int(np.prod([size[p] for p in parts])) for parts in after)
    tensor = pack(array, stored)
    view = regroup_tensor(tensor, found, other)
    assert view.values is tensor.values
    np.testing.assert_array_equal(view.to_dense(), array.reshape(other))
