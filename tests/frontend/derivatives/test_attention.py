"""Gradients of softmax, its logarithm, a logarithm of sums of exponentials, and attention: PyTorch's, without a maximum."""

from __future__ import annotations

import math

import pytest
import torch
from derivative_checks import check_rule

aten = torch.ops.aten
GENERATOR = torch.Generator().manual_seed(5)
SCORES = torch.randn(3, 4, 5, dtype=torch.float64, generator=GENERATOR)
EQUAL = SCORES.round()
MASKED = SCORES.clone()
MASKED[:, :, 1] = -math.inf
MASKED[0, 0] = -math.inf
Q, K, V = (torch.randn(2, 4, n, 6, dtype=torch.float64, generator=GENERATOR) for n in (3, 5, 5))


@pytest.mark.parametrize("x", [SCORES, EQUAL, MASKED], ids=["scores", "equal", "masked"])
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_gradients_read_the_result(x: torch.Tensor, dim: int) -> None:
    assert check_rule(aten.softmax.int, x, dim) == ["mul", "sum", "mul", "sub"]
    assert check_rule(aten._softmax.default, x, dim, False) == ["mul", "sum", "mul", "sub"]
    assert check_rule(aten._safe_softmax.default, x, dim) == ["mul", "sum", "mul", "sub"]
    assert check_rule(aten.log_softmax.int, x, dim) == ["exp", "sum", "mul", "sub"]
    assert check_rule(aten._log_softmax.default, x, dim, False) == ["exp", "sum", "mul", "sub"]
    for keep in (False, True):
        assert check_rule(aten.logsumexp.default, x, [dim], keep) == ["sub", "exp", "mul"]


def test_a_softmax_may_convert_its_operand() -> None:
    check_rule(aten.softmax.int, SCORES.float(), 1, torch.float64)
    check_rule(aten.log_softmax.int, SCORES.float(), 1, dtype=torch.float64)


def test_exponentials_may_be_added_up_along_several_dimensions() -> None:
    check_rule(aten.logsumexp.default, SCORES, [0, -1])


def test_attention_has_one_maximum() -> None:
    names = check_rule(aten.scaled_dot_product_attention.default, Q, K, V)
    assert names.count("amax") == 1 and len(names) == 16


@pytest.mark.parametrize(
    "mask",
    [
        torch.tensor([[1, 0, 1, 0, 0], [1, 1, 1, 1, 1], [0, 0, 0, 0, 1]], dtype=torch.bool),
        torch.randn(4, 3, 5, dtype=torch.float64, generator=GENERATOR),
        torch.randn(2, 1, 1, 5, dtype=torch.float64, generator=GENERATOR),
    ],
    ids=["truth", "bias", "bias of keys"],
)
def test_attention_has_a_mask(mask: torch.Tensor) -> None:
    check_rule(aten.scaled_dot_product_attention.default, Q, K, V, mask, scale=0.3)


def test_heads_share_keys() -> None:
    check_rule(aten.scaled_dot_product_attention.default, Q, K[:, :2], V[:, :2], enable_gqa=True)
    check_rule(aten.scaled_dot_product_attention.default, Q, K[:, :1], V[:, :1], enable_gqa=True)


def test_attention_has_no_heads() -> None:
    check_rule(aten.scaled_dot_product_attention.default, Q[0, 0], K[0, 0], V[0, 0])
