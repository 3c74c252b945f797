"""The check of a training step: each of its values is compared with PyTorch's in f64, as closely as PyTorch's own f32 comes to it.

The error of a tensor is the largest difference of an entry, relative to the largest entry in f64. It passes up to 1e-5, or up to 8 times
the error of PyTorch's own f32. The second part is for tensors in which terms cancel: the gradient of a bias of keys below a softmax is 0
but for rounding, and Adam, which divides by its magnitude, makes steps of the full learning rate of it. PyTorch's own error may be small by
chance, or since its kernels round less often. So its error is the largest of its f32, and of runs that round every result at random.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, isfinite
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse
from torch import Tensor

from fuseflow.training.reference import StepValues

TOLERANCE = 1e-5
"""The largest error that passes anyway. PyTorch's own f32 was within 2.2e-6 on twelve small models (`tests/data/training`)."""
ROUNDING_FACTOR = 8.0
"""How many times PyTorch's own error passes: another order of summation has another error, of the same size."""
LOST = 0.1
"""From this error of PyTorch's own f32 on, a tensor is rounding alone: not even its first digit is known."""

Values: TypeAlias = npt.NDArray[Any] | sparse.coo_array | Tensor
"""A tensor of a step as a result of a run or of PyTorch."""


@dataclass(frozen=True, slots=True)
class TensorError:
    """How far a tensor is from PyTorch's in f64. `difference` is the largest of its entries, `own_difference` that of PyTorch's f32 or of a
    run with random rounding, and `scale` is the largest magnitude in f64."""

    name: str
    difference: float
    own_difference: float
    scale: float

    @property
    def error(self) -> float:
        """The largest difference relative to the largest entry."""
        return 0.0 if self.difference == 0 else self.difference / self.scale if self.scale else inf

    @property
    def bound(self) -> float:
        """The largest difference that passes."""
        return max(TOLERANCE * self.scale, ROUNDING_FACTOR * self.own_difference)

    @property
    def share(self) -> float:
        """The difference as a share of the largest one that passes."""
        return 0.0 if self.difference == 0 else self.difference / self.bound if self.bound else inf

    @property
    def passed(self) -> bool:
        """Whether the difference is small enough."""
        return self.difference <= self.bound

    @property
    def is_rounding(self) -> bool:
        """Whether the tensor is rounding alone, so that little is known of it."""
        return self.own_difference > 0 and LOST * self.scale <= self.own_difference


@dataclass(frozen=True, slots=True)
class StepCheck:
    """The outcome of the check of a step. `tensors` are its errors, and `faults` are sentences that say what else is wrong."""

    tensors: tuple[TensorError, ...]
    faults: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether everything is right."""
        return not self.faults and all(tensor.passed for tensor in self.tensors)

    @property
    def worst(self) -> TensorError | None:
        """The tensor whose difference is the largest share of what passes, or None if nothing was compared. A tensor that is rounding
        alone, and passes, is it only if all are."""
        known = [tensor for tensor in self.tensors if not (tensor.passed and tensor.is_rounding)]
        return max(known or self.tensors, key=lambda tensor: tensor.share, default=None)

    @property
    def rounding(self) -> tuple[str, ...]:
        """The names of tensors that are rounding alone."""
        return tuple(tensor.name for tensor in self.tensors if tensor.is_rounding)

    @property
    def problem(self) -> str:
        """A sentence that says why the check did not pass, or an empty text."""
        if self.faults:
            return self.faults[0]
        worst = self.worst
        if worst is None or worst.passed:
            return ""
        own = worst.own_difference / worst.scale if worst.scale else worst.own_difference
        return f"`{worst.name}` differs from PyTorch: relative error {worst.error:.3g}, where PyTorch's own in f32 is {own:.3g}"


def check_step(
    values: Mapping[str, Values],
    reference: StepValues,
    exact: StepValues,
    masks: Mapping[str, Tensor] | None = None,
    rounded: Sequence[StepValues] = (),
) -> StepCheck:
    """Compare the results of a step with PyTorch's, in f32 (`reference`) and in f64 (`exact`), both from the same values.

    `values` have the names of `StepValues.results`; gradients may be missing. Entries that `masks` do not keep must be 0. Where
    PyTorch cannot run in f64, `exact` may be `reference`: the error is then relative to f32. `rounded` are the results of further runs,
    which round at random.
    """
    expected, runs = exact.results, [run.results for run in rounded]
    missing = [name for name in expected if name not in values and not name.startswith("grad.")]
    faults = [f"the step has no `{name}`, which PyTorch has" for name in missing]
    faults += [f"the step has `{name}`, which PyTorch does not have" for name in values if name not in expected]
    errors = list[TensorError]()
    for name in (name for name in expected if name in values):
        value, wanted = _array(values[name]), _array(expected[name])
        if value.shape != wanted.shape:
            faults.append(f"`{name}` has the shape {list(value.shape)}, where PyTorch has {list(wanted.shape)}")
            continue
        scale = float(np.abs(wanted[np.isfinite(wanted)]).max(initial=0))
        own = _difference(_array(reference.results[name]), wanted)
        others = [_difference(_array(run[name]), wanted) for run in runs]
        own = max([own, *filter(isfinite, others)])  # a run that divides by rounding alone may end in NaN, which says nothing
        errors.append(TensorError(name, _difference(value, wanted), own, scale))
        mask = (masks or {}).get(_parameter(name, masks or {}))
        outside = np.argwhere((value != 0) & ~mask.numpy()).tolist() if mask is not None else []
        if outside:
            faults.append(f"`{name}` is not 0 at ({', '.join(map(str, outside[0]))}), where the weight is pruned")
    return StepCheck(tuple(errors), tuple(faults))


def _parameter(name: str, parameters: Mapping[str, Any]) -> str:
    """Return the parameter of which a result is the gradient, the new value or a new state, or an empty name if it is of none of these.

    >>> _parameter("next.fc.weight.exp_avg", {"fc.weight": None}), _parameter("next.fc.bias", {"fc.weight": None})
    ('fc.weight', '')
    """
    own = name.partition(".")[2]
    return own if own in parameters else own.rpartition(".")[0] if own.rpartition(".")[0] in parameters else ""


def _array(values: Values) -> npt.NDArray[np.float64]:
    """Return a tensor as a dense array in f64."""
    if isinstance(values, Tensor):
        return np.asarray(values.detach().to_dense().cpu().double().numpy())
    return np.asarray(values.toarray() if isinstance(values, sparse.coo_array) else values, dtype=np.float64)


def _difference(values: npt.NDArray[np.float64], wanted: npt.NDArray[np.float64]) -> float:
    """Return the largest difference of two arrays. Equal infinities, and NaN in both, do not differ; NaN in one differs by infinity."""
    same = (values == wanted) | (np.isnan(values) & np.isnan(wanted))
    with np.errstate(invalid="ignore"):
        differences = np.abs(values - wanted)
    return float(np.where(same, 0, np.nan_to_num(differences, nan=inf)).max(initial=0))
