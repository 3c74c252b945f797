"""Names of element types."""

from __future__ import annotations

import numpy as np
import pytest

from fuseflow.errors import TensorError
from fuseflow.tensors.dtypes import DTYPES, dtype_name, parse_dtype


@pytest.mark.parametrize("name", DTYPES)
def test_names_and_numpy_types_agree(name):
    assert dtype_name(parse_dtype(name)) == name
    assert parse_dtype(name).itemsize * 8 == int(name[1:])


def test_other_types_are_refused():
    with pytest.raises(TensorError, match=r"unknown dtype `f46`\n  hint: did you mean `f64`\?"):
        parse_dtype("f46")
    with pytest.raises(TensorError, match="tensors cannot hold `bool`"):
        dtype_name(np.dtype(bool))
