"""The check of a run: every model output is compared with PyTorch, or with the dense interpreter where there is no PyTorch.

An element passes that differs from its reference by a small share of itself. Where terms cancel, another order of summation or a wider type
makes larger differences. So for other elements the difference is compared with the rounding error of the summed magnitudes, where that is
cheap to compute (`einsum.comparison`), and else with the largest magnitude of elements like them. An element whose value is lost in
rounding is not compared: every number would be right. It is counted, and an output in which nothing can be compared does not pass.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fuseflow.einsum.format_inference import infer
from fuseflow.einsum.interpret import InputArray
from fuseflow.einsum.nodes import Program
from fuseflow.einsum.rounding_errors import LARGEST_SPACE, ROUNDING_FACTOR, masked_elements, rounding_variances
from fuseflow.einsum.sparse_arrays import Operand, SparseArray, flat_positions
from fuseflow.tensors import Tensor
from fuseflow.tensors.levels.base import Ints

Floats = npt.NDArray[np.float64]

PYTORCH = "PyTorch"
"""The name of the reference that computes NaN in rows that a mask covers, where a run has empty rows."""


class Precision(NamedTuple):
    """How exact an element type is: the largest error that passes, relative to the magnitude of an element (`tolerance`), the largest
    difference that passes anyway, relative to the largest magnitude of elements like it (`floor`), and the unit roundoff."""

    tolerance: float
    floor: float
    roundoff: float


PRECISIONS = {
    "f32": Precision(1e-4, 1e-6, 2.0**-24),
    "f64": Precision(1e-9, 1e-11, 2.0**-53),
    "f16": Precision(2.0**-9, 2.0**-9, 2.0**-11),
    "bf16": Precision(2.0**-6, 2.0**-6, 2.0**-8),
    "e4m3": Precision(0.125, 2.0**-9, 2.0**-4),
    "e5m2": Precision(0.25, 2.0**-9, 2.0**-3),
    "e2m1": Precision(0.5, 2.0**-9, 0.25),
    "e8m0": Precision(1.0, 2.0**-9, 0.5),
}
"""The precision of each type of floats. Floats with 16 bits may differ by two steps, and floats with fewer bits by one: another order of
summation may round to the neighbour."""
EXACT = Precision(0.0, 0.0, 0.0)
"""The precision of integers."""
LOST = 0.1
"""The share of its magnitude by which rounding may change an element. If it is more, not even the first digit is known."""
GAP = 100.0
"""If a magnitude is more than this many times the next smaller one, elements are of two kinds, such as scores beside a mask."""
FEW = 0.01
"""Elements that are fewer than this share of all are not a kind for themselves."""
QUICK_SPACE = 1 << 26
"""The most points for which rounding is computed although every element is within the tolerance of the largest one like it."""

NAN_MEANING = (
    "a sparse result stores nothing where its first factor or its numerator is 0, so 0 / 0 and 0 * inf are 0 here, and a row that a mask "
    "covers completely is empty until something is added to it"
)


@dataclass(frozen=True, slots=True)
class Difference:
    """An element that differs from its reference. It has no `coordinates` if it is the implicit value of a tensor that stores little."""

    coordinates: tuple[int, ...] | None
    computed: float
    expected: float

    def text(self, reference: str) -> str:
        """Return a text with both values and where they are. `reference` is the name of the reference."""
        place = "where nothing is stored" if self.coordinates is None else f"at ({', '.join(map(str, self.coordinates))})"
        if np.isnan(self.expected):
            return f"{reference} has NaN {place} where the run has {self.computed:.9g}"
        if np.isnan(self.computed):
            return f"the run has NaN {place} where {reference} has {self.expected:.9g}"
        return f"{place} it is {self.computed:.9g}, not {self.expected:.9g}"


@dataclass(frozen=True, slots=True)
class Check:
    """The outcome of a comparison with a reference.

    `max_rel_error` is the largest difference of elements that were compared, divided by the largest magnitude of elements like
    it. For a check that failed, it is the error that failed, divided by the magnitude that its tolerance is relative to. It is
    infinite if one side is NaN or infinite and the other is not. `worst` names the output, and `largest` is its element that
    differs most. `not_compared` of all `elements` differ, but rounding errors may be larger than their values, because terms
    cancel. `uncertain` is the one of these that differs most. `masked_rows` counts the rows that are NaN in the reference and
    empty in the run, and that the comparison leaves out, since they are behind a mask (`einsum.comparison`). `unknown` names
    an output without a compared element, so that the check did not pass.
    """

    reference: str
    passed: bool
    max_rel_error: float
    masked_rows: int = 0
    worst: str = ""
    largest: Difference | None = None
    elements: int = 0
    not_compared: int = 0
    uncertain: Difference | None = None
    unknown: str = ""

    @property
    def verdict(self) -> str:
        """The outcome in a word: `passed`, `FAILED`, or `UNKNOWN` if nothing of an output could be compared."""
        return "passed" if self.passed else "UNKNOWN" if self.unknown else "FAILED"

    @property
    def lost(self) -> str:
        """A text with the number of elements that were not compared, empty if all were."""
        return f"{self.not_compared:,} of {self.elements:,} elements could not be compared" if self.not_compared else ""

    @property
    def details(self) -> str:
        """A text with the largest error and the number of elements that were not compared."""
        lost = f", {self.lost}" if self.lost else ""
        lost += f" (terms cancel: {self.uncertain.text(self.reference)})" if self.uncertain else ""
        masked = f", {self.masked_rows} fully masked rows left out" if self.masked_rows else ""
        return f"largest relative error {self.max_rel_error:.2g}{lost}{masked}"

    @property
    def problem(self) -> str:
        """A sentence that says why the check did not pass."""
        if self.unknown:
            why = "rounding may make more than its values" if self.uncertain else "all of its rows are fully masked"
            return f"nothing of output `{self.unknown}` could be compared with {self.reference}: {why}"
        if self.largest is not None and np.isnan(self.largest.expected):
            return f"output `{self.worst}` differs: {self.largest.text(self.reference)}"
        return f"output `{self.worst}` differs from {self.reference}: relative error {self.max_rel_error:.3g}"

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences about the element that differs most, and about the cause of such a difference; none if nothing differs."""
        output, difference = (self.unknown, self.uncertain) if self.unknown else (self.worst, self.largest)
        if difference is None:
            return ()
        if np.isnan(difference.expected) and not self.unknown:  # which the problem says
            return (NAN_MEANING,)
        return (f"the largest difference of `{output}`: {difference.text(self.reference)}",)


Expected = Mapping[str, npt.NDArray[np.generic] | SparseArray]


def check_program(
    program: Program,
    arrays: Callable[[], Mapping[str, InputArray]],
    outputs: Mapping[str, Tensor],
    expected: Expected,
    reference: str,
) -> Check:
    """Compare all outputs of a program with the expected ones. Their rounding errors, and the elements that are NaN in PyTorch
    behind a mask, are computed from `arrays`, the inputs, if they matter."""
    pairs = list(_pairs(outputs, expected))
    behind = masked_elements(program, arrays()) if reference == PYTORCH and any(pair.nan_alone for pair in pairs) else {}
    compared = [pair.compared(behind=behind.get(pair.output)) for pair in pairs]
    plain = [check for check, _ in compared]
    if all(is_close for _, is_close in compared):
        return combine_checks(plain, reference)
    points = QUICK_SPACE if all(check.passed for check in plain) else LARGEST_SPACE
    roundoffs = _roundoffs(program)
    largest = max(roundoffs[pair.output] for pair in pairs)
    variances = rounding_variances(program, arrays(), largest, points) if largest else None
    if variances is None:
        return combine_checks(plain, reference)
    exact = [pair.compared(variances[pair.output], roundoffs[pair.output], behind.get(pair.output))[0] for pair in pairs]
    return combine_checks(exact, reference)


def _roundoffs(program: Program) -> dict[str, float]:
    """Return, for each result, the largest unit roundoff of its type and of the results that it is computed from: a 64-bit float
    that comes from a 32-bit one is no more exact. It is 0 for integers."""
    types, roundoffs = infer(program).declared, dict[str, float]()
    for einsum in program.einsums:
        own = PRECISIONS.get(types[einsum.name].dtype, EXACT).roundoff
        roundoffs[einsum.name] = max(own, *(roundoffs.get(name, 0.0) for name in einsum.operands), 0.0)
    return roundoffs


def check_outputs(outputs: Mapping[str, Tensor], expected: Expected, reference: str) -> Check:
    """Compare all outputs by their values alone. The check reports the error of the worst one."""
    return combine_checks([pair.compared()[0] for pair in _pairs(outputs, expected)], reference)


def relative_error(computed: npt.NDArray[np.generic], expected: npt.NDArray[np.generic]) -> float:
    """Return the largest difference, relative to the largest magnitude that is expected. It is infinite if the shapes differ, or
    if one side is not finite and the other differs."""
    if computed.shape != expected.shape:
        return np.inf
    a, b = computed.astype(np.float64), expected.astype(np.float64)
    largest = float(_magnitudes(b).max(initial=0.0))
    return float(_distances(a, b).max(initial=0.0)) / (largest or 1.0)


def combine_checks(checks: Sequence[Check], reference: str) -> Check:
    """Return the worst of several checks against one reference, with the counts of all of them. One of an output in which nothing could be
    compared counts as passed until here."""
    if not checks:
        return Check(reference, True, 0.0)
    worst = max(checks, key=lambda one: (not one.passed, one.max_rel_error))
    unknown = next((one.unknown for one in checks if worst.passed and one.unknown), "")
    return replace(
        worst,
        reference=reference,
        passed=worst.passed and not unknown,
        masked_rows=sum(one.masked_rows for one in checks),
        elements=sum(one.elements for one in checks),
        not_compared=sum(one.not_compared for one in checks),
        uncertain=next((one.uncertain for one in checks if one.uncertain and unknown in ("", one.worst)), None),
        unknown=unknown or worst.unknown,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Pair:
    """The elements of an output in the run and in its reference: the whole tensor, or only those at `positions` and then the
    implicit value."""

    output: str
    tensor: Tensor
    computed: npt.NDArray[np.generic]
    wanted: npt.NDArray[np.generic]
    positions: Ints | None

    @property
    def precision(self) -> Precision:
        return PRECISIONS.get(self.tensor.element_type.name, EXACT)

    @property
    def nan_alone(self) -> bool:
        """Whether the reference is NaN in an element in which the run is not."""
        return self.computed.shape == self.wanted.shape and bool((np.isnan(self.wanted) & ~np.isnan(self.computed)).any())

    def compared(
        self, variance: Operand | None = None, roundoff: float = 0.0, behind: Operand | None = None
    ) -> tuple[Check, bool]:
        """Compare the elements, and say whether they are so close that their rounding errors need not be computed.

        `variance` are the variances of rounding errors, in squares of the unit roundoff, and `behind` is 1 for elements behind a
        mask; either is None if not known.
        """
        if self.computed.shape != self.wanted.shape:
            return Check("", False, np.inf, worst=self.output), False
        left_out = self._masked_rows(behind)
        a, b = self.computed.astype(np.float64), self.wanted.astype(np.float64)
        difference, magnitude = np.where(left_out, 0.0, _distances(a, b)), _magnitudes(b)
        scale, tolerance = like_magnitudes(magnitude), self.precision.tolerance
        near = np.maximum(tolerance * magnitude, self.precision.floor * scale)
        close, lost = difference <= near, np.zeros(a.shape, dtype=np.bool_)
        allowed = tolerance * scale
        if variance is not None:
            rounding = self._rounding(variance, roundoff)
            allowed = np.where(np.isnan(a), 0.0, np.maximum(near, rounding))  # a NaN of the run alone is no rounding
            lost = ~close & (difference <= allowed) & (rounding > np.maximum(LOST * magnitude, tolerance * scale))
        failed = difference > allowed
        relative = np.where(lost, 0.0, difference / scale)
        if failed.any():
            with np.errstate(divide="ignore", invalid="ignore"):
                of_allowed = tolerance * difference / allowed if tolerance else relative
            relative = np.where(failed, np.where(relative > tolerance, relative, of_allowed), 0.0)
        check = Check(
            "",
            not bool(failed.any()),
            float(relative.max(initial=0.0)),
            int(left_out[..., 0].sum()) if left_out.any() else 0,
            self.output,
            self._largest(relative),
            self._count(np.ones_like(lost)),
            self._count(lost),
            self._largest(np.where(lost, difference, 0.0)),
            self.output if a.size and (lost | left_out).all() else "",
        )
        return check, bool(close.all())

    def _count(self, which: npt.NDArray[np.bool_]) -> int:
        """Return how many elements of the output are selected by `which`. The implicit value counts for all that are not stored."""
        implicit = self.positions is not None and len(self.positions) < which.size and bool(which[-1])
        return int(which.sum()) + (math.prod(self.tensor.shape) - which.size if implicit else 0)

    def _masked_rows(self, behind: Operand | None) -> npt.NDArray[np.bool_]:
        """Return a mask of the elements of rows that are NaN in the reference and empty in the run because of an attention mask."""
        shape = self.computed.shape
        if behind is None or len(shape) < 2 or 0 in shape:
            return np.zeros(shape, dtype=np.bool_)
        empty = np.isnan(self.wanted) & (self.computed == self.tensor.fill) & (_dense(behind).reshape(shape) == 1)
        return np.broadcast_to(empty.all(axis=-1, keepdims=True), shape)

    def _rounding(self, variance: Operand, roundoff: float) -> Floats:
        """Return, for each element, the largest error that counts as rounding. It is 0 for integers."""
        at = _dense(variance) if self.positions is None else _at(variance, self.positions, len(self.computed))
        deviation: Floats = np.sqrt(np.nan_to_num(at.astype(np.float64), posinf=np.inf))
        return ROUNDING_FACTOR * (roundoff if self.precision.roundoff else 0.0) * deviation.reshape(self.computed.shape)

    def _largest(self, measure: Floats) -> Difference | None:
        """Return the element with the largest `measure`, or None if it is 0 everywhere."""
        if not measure.any():
            return None
        at = int(np.argmax(measure))
        a, b = float(self.computed.reshape(-1)[at]), float(self.wanted.reshape(-1)[at])
        if self.positions is not None and at == len(self.positions):
            return Difference(None, a, b)
        place = np.unravel_index(at if self.positions is None else int(self.positions[at]), self.tensor.shape)
        return Difference(tuple(map(int, place)), a, b)


def _pairs(outputs: Mapping[str, Tensor], expected: Expected) -> Iterator[_Pair]:
    """Yield a pair for each output that has an expected value."""
    for output, array in expected.items():
        tensor = outputs[output]
        positions: Ints | None = None
        wanted: npt.NDArray[np.generic]
        if isinstance(array, SparseArray) and tensor.shape == array.shape and not np.isnan(array.values).any():
            positions, computed, wanted = stored_elements(tensor, array)
        else:
            computed, wanted = tensor.to_dense(), _dense(array)
        with np.errstate(over="ignore"):  # the dense interpreter computes in 64 bits what overflows in 32
            wanted = wanted.astype(computed.dtype) if computed.dtype.kind == "f" else wanted
        yield _Pair(output, tensor, computed, wanted, positions)


def _distances(a: Floats, b: Floats) -> Floats:
    """Return how far elements are apart: 0 for two NaN, infinite where one side is not finite and the other differs."""
    with np.errstate(invalid="ignore"):
        apart = np.where(np.isfinite(a) & np.isfinite(b), np.abs(a - b), np.inf)
    distances: Floats = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0.0, apart)
    return distances


def _magnitudes(b: Floats) -> Floats:
    """Return the magnitudes of finite elements, and 0 elsewhere."""
    return np.abs(np.where(np.isfinite(b), b, 0.0))


def like_magnitudes(magnitudes: Floats) -> Floats:
    """Return for every element the largest magnitude of elements like it. Scores, and elements that a mask makes -1e9, are of two
    kinds, with no magnitude between them. Zeros are like the smallest elements, and where all are 0 errors are relative to 1.

    >>> like_magnitudes(np.array([2.0, 1e9, 3.0, 0.0])).tolist(), like_magnitudes(np.zeros(2)).tolist()
    ([3.0, 1000000000.0, 3.0, 3.0], [1.0, 1.0])
    """
    ordered = np.sort(magnitudes[magnitudes > 0], axis=None)
    if not ordered.size:
        return np.ones_like(magnitudes)
    ends, begin = list[int](), 0
    for end in (*(np.flatnonzero(ordered[1:] > GAP * ordered[:-1]) + 1).tolist(), ordered.size):
        if end - begin >= FEW * ordered.size or end == ordered.size:
            ends.append(end)
            begin = end
    largest: Floats = ordered[np.array(ends) - 1]
    return largest[np.searchsorted(largest, magnitudes)]


def _dense(array: npt.NDArray[np.generic] | SparseArray) -> npt.NDArray[np.generic]:
    return array.toarray() if isinstance(array, SparseArray) else array


def _at(array: Operand, positions: Ints, count: int) -> npt.NDArray[np.float64]:
    """Return `count` elements: those at these positions, and the implicit value if there is one more."""
    elements = array.at(positions) if isinstance(array, SparseArray) else array.reshape(-1)[positions]
    implicit = array.fill if isinstance(array, SparseArray) else 0.0
    return np.append(elements, implicit)[:count]


def stored_elements(tensor: Tensor, expected: SparseArray) -> tuple[Ints, npt.NDArray[np.generic], npt.NDArray[np.float64]]:
    """Return positions, the elements of a tensor at them, and the expected ones: wherever one of the two stores an element, and
    then their implicit values, which have no position, if there is any other element."""
    coordinates, elements = tensor.entries()
    own = flat_positions(tensor.shape, coordinates)
    positions = np.union1d(own, expected.positions)
    values = np.full(len(positions) + (len(positions) < expected.size), tensor.fill, dtype=tensor.dtype)
    values[np.searchsorted(positions, own)] = elements
    wanted = np.full(len(values), expected.fill)
    wanted[: len(positions)] = expected.at(positions)
    return positions, values, wanted
