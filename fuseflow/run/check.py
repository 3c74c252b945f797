"""The check of a run: every model output is compared with PyTorch, or with the dense interpreter where there is no PyTorch.

An error is relative to the largest magnitude of its output. Where large terms cancel, that is smaller than the rounding error of any order
in which they are summed. So a comparison that fails is made again with a floor below the errors: what rounding makes of the magnitudes
that were summed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fuseflow.einsum.interpret import InputArray
from fuseflow.einsum.nodes import Program
from fuseflow.einsum.rounding import rounding_variances
from fuseflow.einsum.sparse_arrays import Operand, SparseArray, flat_positions
from fuseflow.tensors import Tensor
from fuseflow.tensors.levels.base import Ints

TOLERANCE = {"f32": 1e-4, "f64": 1e-9, "f16": 2.0**-9, "bf16": 2.0**-6}
"""The largest error that passes, relative to the largest magnitude of an output, by element type. Integers must be exact.
Floats with 16 bits may differ by two steps: another order of summation may round to the neighbour."""
ROUNDING_FACTOR = 16
"""An error of as many standard deviations of what rounding makes is taken for rounding."""


@dataclass(frozen=True, slots=True)
class Difference:
    """An element that differs from its reference. It has no `coordinates` if it is the implicit value of a tensor that stores little."""

    coordinates: tuple[int, ...] | None
    computed: float
    expected: float

    def __str__(self) -> str:
        place = "where nothing is stored" if self.coordinates is None else f"at ({', '.join(map(str, self.coordinates))})"
        return f"{place} it is {self.computed:.9g}, not {self.expected:.9g}"


@dataclass(frozen=True, slots=True)
class Check:
    """The outcome of a comparison with a reference.

    `max_rel_error` is the largest absolute difference, divided by the largest finite magnitude of its output; `worst` names that output,
    and `largest` is its element that differs most.
    Where terms cancel, the divisor is so large that an error of rounding passes.
    `masked_rows` counts the rows that are NaN in the reference and empty in the run, and that the comparison leaves out. Such a row is
    fully masked: PyTorch divides 0 by 0, where a sparse row stores nothing.
    """

    reference: str
    passed: bool
    max_rel_error: float
    masked_rows: int = 0
    worst: str = ""
    largest: Difference | None = None


Expected = Mapping[str, npt.NDArray[np.generic] | SparseArray]


def check_program(
    program: Program,
    arrays: Callable[[], Mapping[str, InputArray]],
    outputs: Mapping[str, Tensor],
    expected: Expected,
    reference: str,
) -> Check:
    """Compare all outputs of a program with what is expected. If they differ, compare them with the errors that rounding makes in mind,
    where these are cheap to compute from `arrays`, the inputs."""
    check = check_outputs(outputs, expected, reference)
    if check.passed:
        return check
    variances = rounding_variances(program, arrays())
    return check if variances is None else check_outputs(outputs, expected, reference, variances)


def check_outputs(
    outputs: Mapping[str, Tensor], expected: Expected, reference: str, variances: Mapping[str, Operand] | None = None
) -> Check:
    """Compare all outputs. The check reports the error of the worst one."""
    worst, masked, passed, name, largest = 0.0, 0, True, "", None
    for output, array in expected.items():
        tensor, tolerance = outputs[output], TOLERANCE.get(outputs[output].element_type.name, 0.0)
        variance = None if variances is None else variances[output]
        wanted: npt.NDArray[np.generic]
        expected_variance: npt.NDArray[np.generic] | None
        if isinstance(array, SparseArray) and tensor.shape == array.shape and not np.isnan(array.values).any():
            positions, computed, wanted = stored_elements(tensor, array)
            places: Ints | None = positions
            expected_variance = None if variance is None else _at(variance, positions, len(computed))
        else:
            computed, wanted, places = tensor.to_dense(), _dense(array), None
            expected_variance = None if variance is None else _dense(variance)
        with np.errstate(over="ignore"):  # the dense interpreter computes in 64 bits what overflows in 32
            wanted = wanted.astype(computed.dtype) if computed.dtype.kind == "f" else wanted
        floor = (
            None if expected_variance is None or not tolerance else _rounding(expected_variance, computed.dtype.char) / tolerance
        )
        error, rows = compare_arrays(computed, wanted, tensor.fill, floor)
        passed &= error <= tolerance
        masked += rows
        if error > worst or not name:
            worst, name = error, output
            largest = _largest_difference(computed, wanted, tensor, places) if error else None
    return Check(reference, passed, worst, masked, name, largest)


def _largest_difference(
    computed: npt.NDArray[np.generic], wanted: npt.NDArray[np.generic], tensor: Tensor, positions: Ints | None
) -> Difference | None:
    """Return the element that differs most. Elements are those of a whole tensor, or those at `positions` and the implicit value."""
    if computed.shape != wanted.shape:
        return None
    a, b = computed.astype(np.float64).reshape(-1), wanted.astype(np.float64).reshape(-1)
    with np.errstate(invalid="ignore"):
        difference = np.where((a == b) | (np.isnan(b) & (np.isnan(a) | (a == tensor.fill))), 0.0, np.abs(a - b))
    if not difference.size:
        return None
    at = int(np.argmax(np.where(np.isnan(difference), np.inf, difference)))
    if positions is None:
        place = np.unravel_index(at, computed.shape)
    elif at < len(positions):
        place = np.unravel_index(int(positions[at]), tensor.shape)
    else:
        return Difference(None, float(a[at]), float(b[at]))
    return Difference(tuple(map(int, place)), float(a[at]), float(b[at]))


def _rounding(variance: npt.NDArray[np.generic], dtype: str) -> npt.NDArray[np.float64]:
    """Return the largest errors that are taken for rounding, given their variances in squares of the unit roundoff."""
    with np.errstate(invalid="ignore"):
        deviation: npt.NDArray[np.float64] = np.sqrt(variance.astype(np.float64))
    return ROUNDING_FACTOR * float(np.finfo(dtype).eps) / 2 * deviation


def _dense(array: npt.NDArray[np.generic] | SparseArray) -> npt.NDArray[np.generic]:
    return array.toarray() if isinstance(array, SparseArray) else array


def _at(array: Operand, positions: Ints, count: int) -> npt.NDArray[np.float64]:
    """Return the elements at these positions, and the implicit value if the count is one more."""
    elements = array.at(positions) if isinstance(array, SparseArray) else array.reshape(-1)[positions]
    implicit = array.fill if isinstance(array, SparseArray) else 0.0
    return np.append(elements, implicit)[:count]


def stored_elements(tensor: Tensor, expected: SparseArray) -> tuple[Ints, npt.NDArray[np.generic], npt.NDArray[np.float64]]:
    """Return positions, the elements of a tensor and those that are expected: wherever one of the two stores something, and their implicit
    values, which have no position, if there is any other element. Fully masked rows are not looked for, so no row of the expected array
    may be NaN.
    """
    coordinates, elements = tensor.entries()
    own = flat_positions(tensor.shape, coordinates)
    positions = np.union1d(own, expected.positions)
    values = np.full(len(positions) + (len(positions) < expected.size), tensor.fill, dtype=tensor.dtype)
    values[np.searchsorted(positions, own)] = elements
    wanted = np.full(len(values), expected.fill)
    wanted[: len(positions)] = expected.at(positions)
    return positions, values, wanted


def compare_arrays(
    output: npt.NDArray[np.generic],
    reference: npt.NDArray[np.generic],
    fill: float = 0.0,
    floor: npt.NDArray[np.generic] | None = None,
) -> tuple[float, int]:
    """Return the largest relative error and the number of rows left out. The error is infinite where one side is not finite and the other
    differs. It is relative to the largest magnitude of the reference, or to the `floor` of an element if that is larger and finite.

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
    scale = np.full(int(finite.sum()), np.abs(b[finite]).max(initial=0.0))
    if floor is not None:
        floors = np.atleast_2d(floor.astype(np.float64))[~masked][finite]
        scale = np.maximum(scale, np.where(np.isfinite(floors), floors, 0.0))
    difference = np.abs(a[finite] - b[finite])
    error = np.divide(difference, scale, out=difference.copy(), where=scale > 0)
    return float(error.max(initial=0.0)), int(masked.sum())
