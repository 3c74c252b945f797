"""The check of a step passes what rounding makes, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import sparse
from training_cases import prepared

from fuseflow.training.check import check_step
from fuseflow.training.reference import Reference, StepValues
from fuseflow.training.spec import TrainingSpec


def step(loss: float, gradient: list[float], weight: list[float], state: list[float], dtype=torch.float64) -> StepValues:
    values = [torch.tensor(value, dtype=dtype) for value in (loss, gradient, weight, state)]
    return StepValues(values[0], {"w": values[1]}, {"w": values[2]}, {}, {"w.exp_avg": values[3]})


EXACT = step(2.0, [1.0, -4.0], [10.0, 0.0], [1e-9, 0.0])
OWN = step(2.0, [1.0, -4.0], [10.0, 0.0], [5e-9, 0.0])


def results(**changed) -> dict[str, object]:
    names = {"grad": "grad.w", "weight": "next.w", "state": "next.w.exp_avg", "loss": "loss"}
    return {**EXACT.results, **{names[key]: np.asarray(value) for key, value in changed.items()}}


@pytest.mark.parametrize(
    ("changed", "worst"),
    [
        ({}, None),
        ({"grad": [1.0, -4.0 - 3.9e-5]}, None),
        ({"grad": [1.0 - 4.1e-5, -4.0]}, "grad.w"),
        ({"weight": [10.0, 9e-5]}, None),
        ({"weight": [10.0, 2e-4]}, "next.w"),
        ({"loss": 2.0001}, "loss"),
        ({"loss": np.nan}, "loss"),
        ({"weight": [10.0, np.inf]}, "next.w"),
        # PyTorch's own f32 is wrong by 4e-9, so that 8 times that passes.
        ({"state": [3.2e-8, 0.0]}, None),
        ({"state": [4e-8, 0.0]}, "next.w.exp_avg"),
        ({"state": [1e-9, 4e-8], "weight": [10.0, 1e-3]}, "next.w"),
    ],
)
def test_errors_are_relative_to_the_largest_entry_or_to_that_of_f32(changed, worst):
    check = check_step(results(**changed), OWN, EXACT)
    assert check.passed == (worst is None) == (not check.problem) and check.rounding == ("next.w.exp_avg",)
    if worst is not None:
        assert check.worst is not None and check.worst.name == worst and f"`{worst}` differs from PyTorch" in check.problem


def test_the_error_of_a_step_is_of_what_is_no_rounding_alone():
    """The state is off by 30 times its largest entry, as it may be, since PyTorch's own f32 is wrong by 4 times that."""
    check = check_step(results(state=[3e-8, 0.0], grad=[1.0, -4.0 - 1e-5]), OWN, EXACT)
    assert check.passed and check.worst.name == "grad.w" and check.worst.error == pytest.approx(2.5e-6)


def test_the_error_of_a_tensor_is_said():
    check = check_step(results(grad=[1.0, -4.4]), OWN, EXACT)
    assert check.problem == "`grad.w` differs from PyTorch: relative error 0.1, where PyTorch's own in f32 is 0"


def test_values_may_be_sparse():
    weight = torch.tensor([[1.0, 0.0], [0.0, 2.0]])
    exact = StepValues(torch.tensor(1.0), {}, {"w": weight.to_sparse_csr()}, {}, {})
    for stored in (sparse.coo_array(weight.numpy()), weight.to_sparse_coo(), weight.numpy()):
        assert check_step({"loss": np.asarray(1.0), "next.w": stored}, exact, exact).passed


def test_infinities_and_nan_must_be_where_pytorch_has_them():
    exact = step(np.nan, [np.inf, 1.0], [1.0, 1.0], [0.0, 0.0])
    assert check_step(exact.results, exact, exact).passed
    assert not check_step({**exact.results, "loss": np.asarray(1.0)}, exact, exact).passed
    assert not check_step({**exact.results, "grad.w": np.asarray([-np.inf, 1.0])}, exact, exact).passed


def test_a_tensor_of_zeros_must_be_0():
    exact = step(1.0, [0.0, 0.0], [1.0, 1.0], [0.0, 0.0])
    check = check_step({**exact.results, "grad.w": np.asarray([0.0, 1e-30])}, exact, exact)
    assert not check.passed and check.worst is not None and check.worst.error == np.inf


@pytest.mark.parametrize("name", ["grad.w", "next.w", "next.w.exp_avg"])
def test_what_is_outside_of_a_pattern_must_be_0(name):
    masks = {"w": torch.tensor([True, False])}
    exact = step(2.0, [1.0, 0.0], [10.0, 0.0], [1.0, 0.0])
    assert check_step(exact.results, exact, exact, masks).passed
    check = check_step({**exact.results, name: exact.results[name] + torch.tensor([0, 1e-12])}, exact, exact, masks)
    assert check.problem == f"`{name}` is not 0 at (1), where the weight is pruned"


def test_results_are_those_of_pytorch():
    values = results()
    assert check_step({name: value for name, value in values.items() if name != "grad.w"}, OWN, EXACT).passed
    missing = {name: value for name, value in values.items() if name != "next.w"}
    assert check_step(missing, OWN, EXACT).problem == "the step has no `next.w`, which PyTorch has"
    more = {**values, "grad.v": np.zeros(2)}
    assert check_step(more, OWN, EXACT).problem == "the step has `grad.v`, which PyTorch does not have"
    assert check_step(results(weight=[10.0]), OWN, EXACT).problem == "`next.w` has the shape [1], where PyTorch has [2]"


def test_the_gradient_of_a_bias_of_keys_is_rounding_alone():
    """The recorded case of which the check speaks: what f32 gives passes, and a step that leaves the update out does not."""
    case = prepared("block_mask_adam")
    spec, inputs = TrainingSpec.of(case.loss, "adam:lr=1e-3"), list(case.inputs.values())
    own, exact = (Reference(case.model, spec, dtype=dtype) for dtype in (None, torch.float64))
    taken, wanted = own.step(own.initial, 1, inputs, case.target), exact.step(exact.initial, 1, inputs, case.target)
    check = check_step(taken.results, taken, wanted)
    assert check.passed and check.rounding == ("grad.k.bias", "next.k.bias.exp_avg", "next.k.bias.exp_avg_sq")
    assert not check_step({**taken.results, "next.v.bias": own.initial["v.bias"]}, taken, wanted).passed
