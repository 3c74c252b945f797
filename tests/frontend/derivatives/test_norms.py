"""Gradients of norms, distances and deviations, at 0 too."""

from __future__ import annotations

import math

import pytest
import torch
from derivative_checks import check_rule
from torch import Tensor

aten = torch.ops.aten
GENERATOR = torch.Generator().manual_seed(5)
X, Y = torch.randn(2, 4, 6, dtype=torch.float64, generator=GENERATOR)
EQUAL = X.round()
EQUAL[1] = 0.0
MATRICES = {"numbers": X, "equal": EQUAL, "zero": torch.zeros_like(X)}
matrices = pytest.mark.parametrize("x", MATRICES.values(), ids=MATRICES)


@matrices
@pytest.mark.parametrize("order", [0, 0.5, 1, 1.5, 2, 3, math.inf])
def test_norms(x: Tensor, order: float) -> None:
    check_rule(aten.linalg_vector_norm.default, x, order)
    check_rule(aten.linalg_vector_norm.default, x, order, [1], True)
    check_rule(aten.norm.ScalarOpt_dim, x, order, [-1])
    check_rule(aten.norm.Scalar, x, order)


def test_the_usual_norm_is_short() -> None:
    assert check_rule(aten.linalg_vector_norm.default, X, 2, [1]) == ["eq", "scalar_tensor", "where", "div", "mul"]


@matrices
@pytest.mark.parametrize("p", [1, 2, 3])
def test_distances(x: Tensor, p: float) -> None:
    check_rule(aten.cdist.default, x, Y, p)
    check_rule(aten.cdist.default, x, x.clone(), p)
    check_rule(aten.pairwise_distance.default, x, Y, p)
    check_rule(aten.pairwise_distance.default, x, Y[0], p, 1e-6, True)


@matrices
def test_cosines(x: Tensor) -> None:
    check_rule(aten.cosine_similarity.default, x, Y)
    check_rule(aten.cosine_similarity.default, x.reshape(4, 2, 3), Y[:, :3].unsqueeze(1), -1)


@matrices
def test_deviations(x: Tensor) -> None:
    for operator in (aten.var, aten.std, aten.var_mean):
        for unbiased in (False, True):
            check_rule(operator.default, x, unbiased)
            check_rule(operator.dim, x, [1], unbiased, True)
        check_rule(operator.correction, x, [0], correction=0)
        check_rule(operator.correction, x)
