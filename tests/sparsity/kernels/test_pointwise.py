"""Functions of single entries, and sums, of packed tensors against those of dense ones."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from packed_layouts import IDS, LAYOUTS, mask_for, packed, places

import fuseflow.sparsity as sp
from fuseflow.sparsity.kernels.pointwise import FUNCTIONS

SHAPE = (4, 6)


@pytest.mark.parametrize("layout", LAYOUTS, ids=IDS)
def test_functions_that_keep_zero_keep_the_places(layout):
    dense, mask = torch.rand(SHAPE) * 0.9 + 0.05, mask_for(layout, SHAPE)
    for function in FUNCTIONS:
        ours, theirs = packed(layout, dense, mask, requires_grad=True), (dense * mask).requires_grad_()
        with sp.set_dispatch_failure("raise"):
            got = function(ours)
        assert type(got.wrapped_tensor) is layout.storage
        expected = function(theirs)
        torch.testing.assert_close(got.stored_dense(), expected.detach())
        grad = torch.randn(SHAPE)
        got.backward(grad)
        gradient = torch.autograd.grad(expected, theirs, grad)[0]
        torch.testing.assert_close(ours.grad.stored_dense()[mask], gradient[mask])
        assert not ours.grad.stored_dense()[~places(ours)].any()


@pytest.mark.parametrize("function", [torch.cos, torch.exp, torch.sigmoid, F.softplus, torch.log])
def test_functions_that_do_not_keep_zero_fall_back(function):
    dense, mask = torch.rand(SHAPE), mask_for(sp.CSR(), SHAPE)
    with pytest.warns(sp.DispatchWarning, match="has no implementation"):
        got = function(packed(sp.CSR(), dense, mask))
    torch.testing.assert_close(got, function(dense * mask))


@pytest.mark.parametrize("layout", LAYOUTS, ids=IDS)
@pytest.mark.parametrize("alpha", [1, -2.5])
def test_sums(layout, alpha):
    a, b, mask, other = torch.randn(SHAPE), torch.randn(SHAPE), mask_for(layout, SHAPE), mask_for(layout, SHAPE, seed=5)
    with sp.set_dispatch_failure("raise"):
        for dense in (b, b[0], b[:, :1], torch.tensor(2.0)):
            x = packed(layout, a, mask, requires_grad=True)
            y = dense.clone().requires_grad_()
            torch.testing.assert_close(torch.add(x, y, alpha=alpha), a * mask + alpha * y)
            result = torch.add(y, x, alpha=alpha)
            torch.testing.assert_close(result, y + alpha * a * mask)
            result.backward(torch.ones(SHAPE) * 3)
            torch.testing.assert_close(x.grad.stored_dense(), 3 * alpha * places(x).float())
            torch.testing.assert_close(y.grad, 3.0 * torch.ones(SHAPE).sum_to_size(y.shape))
        same = torch.add(packed(layout, a, mask), packed(layout, b, mask), alpha=alpha)
        assert type(same.wrapped_tensor) is layout.storage
        torch.testing.assert_close(same.stored_dense(), (a + alpha * b) * mask)
        x, y = packed(layout, a, mask, True), packed(layout, b, other, True)
        union = torch.add(x, y, alpha=alpha)
        torch.testing.assert_close(union.stored_dense(), a * mask + alpha * b * other)
        grad = torch.randn(SHAPE)
        union.backward(grad)
        torch.testing.assert_close(x.grad.stored_dense(), grad * places(x))
        torch.testing.assert_close(y.grad.stored_dense(), alpha * grad * places(y))


@pytest.mark.parametrize("layout", LAYOUTS, ids=IDS)
def test_differences_and_multiples_of_what_has_the_same_places(layout):
    dense, mask = torch.randn(SHAPE), mask_for(layout, SHAPE)
    x = packed(layout, dense, mask, requires_grad=True)
    with sp.set_dispatch_failure("raise"):
        assert not (x - x).stored_dense().any()
        torch.testing.assert_close((x / 2).stored_dense(), dense * mask / 2)
        torch.testing.assert_close((3 * x).stored_dense(), dense * mask * 3)
        torch.testing.assert_close((x * x).stored_dense(), dense * mask * dense)
    (x * x).backward(torch.ones(SHAPE))
    torch.testing.assert_close(x.grad.stored_dense(), 2 * dense * mask)


def test_a_quotient_by_zero_is_not_computed_on_the_places():
    x = packed(sp.CSR(), torch.ones(SHAPE), mask_for(sp.CSR(), SHAPE))
    with pytest.warns(sp.DispatchWarning):
        assert (x / 0).isnan().any()
