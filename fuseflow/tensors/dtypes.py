"""Element types of tensors: the names that programs and schedules use, and the NumPy types that hold them."""

from __future__ import annotations

from typing import Any

import numpy as np

from fuseflow.errors import TensorError, did_you_mean

DTYPES: dict[str, np.dtype[Any]] = {
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
    "i32": np.dtype(np.int32),
    "i64": np.dtype(np.int64),
}

EXACT_INTEGERS = 2**53
"""Integers below this magnitude are exact in the 64-bit floats in which values are computed. Others may be rounded to their neighbours."""


def parse_dtype(name: str) -> np.dtype[Any]:
    """Return the NumPy type of the element type `name`. Raise `TensorError` with the nearest right name if there is none."""
    if name not in DTYPES:
        raise TensorError(f"unknown dtype `{name}`", hint=did_you_mean(name, DTYPES))
    return DTYPES[name]


def dtype_name(dtype: np.dtype[Any]) -> str:
    """Return the name of a NumPy type. Raise `TensorError` for a type that tensors cannot have.

    >>> dtype_name(np.dtype("float32"))
    'f32'
    """
    for name, candidate in DTYPES.items():
        if candidate == dtype:
            return name
    raise TensorError(f"tensors cannot hold `{dtype}`", hint=f"convert to one of {', '.join(str(d) for d in DTYPES.values())}")
