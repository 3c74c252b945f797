"""Gradients of a call of each operator, as a training step has them, beside those of PyTorch.

The loss is the sum of squared distances from a target, and the interpreter computes the gradients."""

from __future__ import annotations

import pytest
import torch
from gradient_calls import CALLS
from gradient_checks import verdict

REFUSED = {
    "acos": "`acos` has no Einsum form",
    "asin": "`asin` has no Einsum form",
    "atan": "`atan` has no Einsum form",
    "atan2": "`atan2` has no Einsum form",
    "std_mean": "`std_mean`, through `aten.var_mean.correction`, has no Einsum form",
    "gaussian_nll": "a Python number is taken out of a tensor",
    "multi_margin": "`multi_margin_loss`, through `aten.gather.default`, has no Einsum form",
    "einsum_trace": "`einsum`, through `aten.diagonal.default`, has no Einsum form",
    "index_fill": "indexing by a tensor (`aten.index_fill.int_Scalar`)",
    "scatter_reduce_mean": "indexing by a tensor (`aten.scatter_reduce.two`)",
}
"""The calls that no model may have, trained or not, and the beginning of what is said of them."""
FAST = [
    "gelu",
    "maximum_of_equals",
    "max_of_equals",
    "std_keepdim",
    "softmax_masked",
    "layer_norm",
    "batch_norm_training",
    "cross_entropy_weights",
    "conv2d_options",
    "conv_transpose1d",
    "max_pool2d_equal",
    "embedding_padding",
    "embedding_bag",
    "index_mask",
    "scatter_add",
    "slice_in_place",
    "relu_in_place",
    "weight_norm",
]
"""The calls that are tested in every run. The others take minutes together."""
ONE = torch.ones(())


def gradient_verdict(name: str) -> tuple[str, str]:
    module = CALLS[name].module()
    target = torch.randn(module(ONE).shape, generator=torch.Generator().manual_seed(7))
    return verdict(module, (ONE,), None, target)


def test_the_list_has_calls_of_every_family() -> None:
    assert len(CALLS) - len(REFUSED) >= 270 and CALLS.keys() >= {*REFUSED, *FAST}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name not in FAST)) for name in CALLS if name not in REFUSED]
)
def test_the_gradients_of_an_operator_are_those_of_pytorch(name: str) -> None:
    assert gradient_verdict(name) == ("right", "")


@pytest.mark.slow
@pytest.mark.parametrize("name", REFUSED)
def test_the_gradients_of_an_operator_are_refused(name: str) -> None:
    kind, reason = gradient_verdict(name)
    assert kind == "refused" and reason.startswith(REFUSED[name])
