"""The check of a run: every model output is compared with PyTorch, or with the dense interpreter where there is no PyTorch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fuseflow.einsum.sparse_arrays import SparseArray, flat_positions
from fuseflow.tensors import Tensor

TOLERANCE = {"f": 1e-4, "d": 1e-9}
"""The largest error that passes, relative to the largest magnitude of an output, by NumPy type character. Integers must be exact."""


@dataclass(frozen=True, slots=True)
class Check:
    """The outcome of a comparison with a reference.

    `max_rel_error` is the largest absolute difference, divided by the largest finite magnitude of its output; `worst` names that output.
    `masked_rows` counts the rows that are NaN in the reference and empty in the run, and that the comparison leaves out. Such a row is
    fully masked: PyTorch divides 0 by 0, where a sparse row stores nothing.
    """

    reference: str
    passed: bool
    max_rel_error: float
    masked_rows: int = 0
    worst: str = ""


def check_outputs(
    outputs: Mapping[str, Tensor], expected: Mapping[str, npt.NDArray[np.generic] | SparseArray], reference: str
) -> Check:
    """Compare all outputs. The check reports the error of the worst one."""
    worst, masked, passed, name = 0.0, 0, True, ""
    for output, array in expected.items():
        tensor = outputs[output]
        wanted: npt.NDArray[np.generic]
        if isinstance(array, SparseArray) and tensor.shape == array.shape and not np.isnan(array.values).any():
            computed, wanted = stored_elements(tensor, array)
        else:
            computed, wanted = tensor.to_dense(), array.toarray() if isinstance(array, SparseArray) else array
        with np.errstate(over="ignore"):  # the dense interpreter computes in 64 bits what overflows in 32
            wanted = wanted.astype(computed.dtype) if computed.dtype.kind == "f" else wanted
        error, rows = compare_arrays(computed, wanted, tensor.fill)
        passed &= error <= TOLERANCE.get(outputs[output].dtype.char, 0.0)
        masked += rows
        if error > worst or not name:
            worst, name = error, output
    return Check(reference, passed, worst, masked, name)


def stored_elements(tensor: Tensor, expected: SparseArray) -> tuple[npt.NDArray[np.generic], npt.NDArray[np.float64]]:
    """Return the elements of a tensor and those that are expected, wherever one of the two stores something, and their implicit values
    if there is any other element. Fully masked rows are not looked for, so no row of the expected array may be NaN.
    """
    own = flat_positions(tensor.shape, tensor.coordinates())
    positions = np.union1d(own, expected.positions)
    values = np.full(len(positions) + (len(positions) < expected.size), tensor.fill, dtype=tensor.dtype)
    values[np.searchsorted(positions, own)] = tensor.values
    wanted = np.full(len(values), expected.fill)
    wanted[: len(positions)] = expected.at(positions)
    return values, wanted


def compare_arrays(output: npt.NDArray[np.generic], reference: npt.NDArray[np.generic], fill: float = 0.0) -> tuple[float, int]:
    """Return the largest relative error and the number of rows left out. The error is infinite where one side is not finite and the other
    differs.

    A row of a matrix, or of a tensor of higher rank, is left out if all of it is NaN in `reference` and equal to `fill` in `output`.
    """
    if output.shape != reference.shape:
        return np.inf, 0
    a, b = np.atleast_2d(output.astype(np.float64)), np.atleast_2d(reference.astype(np.float64))
    masked = (np.isnan(b) & (a == fill)).all(axis=-1) & (reference.ndim > 1 and b.shape[-1] > 0)
    a, b = a[~masked], b[~masked]
    finite = np.isfinite(b)
    if not np.array_equal(a[~finite], b[~finite], equal_nan=True) or not np.isfinite(a[finite]).all():
        return np.inf, int(masked.sum())
    largest = float(np.abs(b[finite]).max(initial=0.0))
    difference = float(np.abs(a[finite] - b[finite]).max(initial=0.0))
    return (difference / largest if largest else difference), int(masked.sum())
