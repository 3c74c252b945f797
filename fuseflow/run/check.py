"""Checking a run: every model output against PyTorch, or against the dense interpreter where there is no PyTorch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fuseflow.tensors import Tensor

TOLERANCE = {"f": 1e-4, "d": 1e-9}
"""Largest error relative to the largest magnitude of an output, by NumPy type character; integers are exact."""


@dataclass(frozen=True, slots=True)
class Check:
    """`max_rel_error` is the largest absolute difference over the largest finite magnitude of its output.

    `masked_rows` counts rows that are NaN in the reference and empty here (fully masked: PyTorch divides 0 by 0, a sparse row stores
    nothing); they are left out of the comparison.
    """

    reference: str
    passed: bool
    max_rel_error: float
    masked_rows: int = 0
    worst: str = ""


def check_outputs(got: Mapping[str, Tensor], expected: Mapping[str, npt.NDArray[np.generic]], reference: str) -> Check:
    """Compare all outputs; the error reported is that of the worst one."""
    worst, masked, passed, name = 0.0, 0, True, ""
    for output, want in expected.items():
        dense = got[output].to_dense()
        with np.errstate(over="ignore"):  # the dense interpreter computes in 64 bits what overflows in 32
            error, rows = compare_arrays(dense, want.astype(dense.dtype) if dense.dtype.kind == "f" else want, got[output].fill)
        passed &= error <= TOLERANCE.get(got[output].dtype.char, 0.0)
        masked += rows
        if error > worst or not name:
            worst, name = error, output
    return Check(reference, passed, worst, masked, name)


def compare_arrays(got: npt.NDArray[np.generic], want: npt.NDArray[np.generic], fill: float = 0.0) -> tuple[float, int]:
    """(largest relative error, rows left out): infinite where one side is not finite and the other differs.

    Left out are the rows of a matrix (or of a tensor of higher rank) that are NaN in `want` and implicit, `fill`, in `got`.
    """
    if got.shape != want.shape:
        return np.inf, 0
    a, b = np.atleast_2d(got.astype(np.float64)), np.atleast_2d(want.astype(np.float64))
    masked = (np.isnan(b) & (a == fill)).all(axis=-1) & (want.ndim > 1 and b.shape[-1] > 0)
    a, b = a[~masked], b[~masked]
    finite = np.isfinite(b)
    if not np.array_equal(a[~finite], b[~finite], equal_nan=True) or not np.isfinite(a[finite]).all():
        return np.inf, int(masked.sum())
    largest = float(np.abs(b[finite]).max(initial=0.0))
    difference = float(np.abs(a[finite] - b[finite]).max(initial=0.0))
    return (difference / largest if largest else difference), int(masked.sum())
