"""Names of element types."""

from __future__ import annotations

import numpy as np
import pytest

from fuseflow.errors import TensorError
from fuseflow.tensors.dtypes import DTYPES, dtype_name, parse_dtype

SMALL_FLOATS = {"e5m2": 8, "e4m3": 8, "e2m1": 4, "e8m0": 8}
WIDTHS = SMALL_FLOATS | {name: int(name.lstrip("biuf")) for name in DTYPES if name not in SMALL_FLOATS}


@pytest.mark.parametrize("name", DTYPES)
def test_names_and_numpy_types_agree(name):
    row = parse_dtype(name)
    assert row.bits == WIDTHS[name] <= 8 * row.holder.itemsize
    if row.bits == 8 * row.holder.itemsize:
        assert dtype_name(row.holder) == name


def test_other_types_are_refused():
    with pytest.raises(TensorError, match=r"unknown dtype `f46`\n  hint: did you mean `f64`\?"):
        parse_dtype("f46")
    with pytest.raises(TensorError, match="tensors cannot hold `bool`"):
        dtype_name(np.dtype(bool))
