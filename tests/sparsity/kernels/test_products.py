"""Products of packed matrices against the same products of dense ones."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from packed_layouts import IDS, LAYOUTS, mask_for, packed, places, shapes
from torch.utils._python_dispatch import TorchDispatchMode

import fuseflow.sparsity as sp
from fuseflow.errors import DispatchError

batches = st.sampled_from([(), (1,), (5,), (2, 3), (0,), (2, 0, 3)])
shares = st.sampled_from([0.0, 0.1, 0.5, 1.0])


@pytest.fixture(autouse=True)
def _raise():
    with sp.set_dispatch_failure("raise"):
        yield


def compare(function, dense_tensors, stored, layout, mask, atol=1e-4):
    """Compare a function of tensors, of which one is packed, and its gradients with those of dense tensors."""
    dense_tensors = [t.clone().requires_grad_() for t in dense_tensors]
    ours = [t.detach().clone().requires_grad_() for t in dense_tensors]
    ours[stored] = packed(layout, dense_tensors[stored], mask, requires_grad=True)
    kept = [t * mask if place == stored else t for place, t in enumerate(dense_tensors)]
    expected, got = function(*kept), function(*ours)
    assert got.shape == expected.shape and got.dtype == expected.dtype
    torch.testing.assert_close(got, expected, atol=atol, rtol=atol)
    grad = torch.randn(expected.shape, dtype=expected.dtype)
    expected.backward(grad)
    got.backward(grad)
    for place, (mine, theirs) in enumerate(zip(ours, dense_tensors, strict=True)):
        if place == stored:
            assert isinstance(mine.grad, sp.PackedTensor)
            full = torch.autograd.grad(function(*(kept := [k.detach().requires_grad_() for k in kept])), kept[stored], grad)[0]
            torch.testing.assert_close(mine.grad.stored_dense(), full * places(ours[stored]), atol=atol, rtol=atol)
        else:
            torch.testing.assert_close(mine.grad, theirs.grad, atol=atol, rtol=atol)


@pytest.mark.parametrize("layout", LAYOUTS, ids=IDS)
@settings(max_examples=12, deadline=None)
@given(shape=shapes, batch=batches, share=shares, bias=st.booleans(), strided=st.booleans(), seed=st.integers(0, 99))
def test_linear_is_the_dense_one(layout, shape, batch, share, bias, strided, seed):
    torch.manual_seed(seed)
    x = torch.randn(*batch, 2 * shape[1])[..., ::2] if strided else torch.randn(*batch, shape[1])
    tensors = [x, torch.randn(shape), *([torch.randn(shape[0])] if bias else [])]
    compare(F.linear, tensors, 1, layout, mask_for(layout, shape, share, seed))


@pytest.mark.parametrize("layout", LAYOUTS, ids=IDS)
@pytest.mark.parametrize(
    ("function", "shape", "stored"),
    [
        (torch.mm, (6, 4), 0),
        (torch.matmul, (6,), 0),
        (torch.matmul, (6, 4), 0),
        (torch.matmul, (2, 3, 6, 5), 0),
        (torch.mm, (5, 4), 1),
        (torch.matmul, (4,), 1),
        (torch.matmul, (2, 3, 4), 1),
        (F.linear, (5, 6), 0),
        (lambda a, b: a @ b, (6, 2), 0),
    ],
)
def test_a_product_with_a_packed_matrix_is_the_dense_one(layout, function, shape, stored):
    tensors = [torch.randn(shape), torch.randn(shape)]
    tensors[stored] = torch.randn(4, 6)
    compare(function, tensors, stored, layout, mask_for(layout, (4, 6)))


@pytest.mark.parametrize("layout", LAYOUTS, ids=IDS)
@pytest.mark.parametrize("factors", [{}, {"alpha": 2.5}, {"beta": 0}, {"beta": -1, "alpha": 0.5}])
@pytest.mark.parametrize("added", [(4, 5), (5,), (4, 1)])
def test_addmm_scales_both_parts(layout, factors, added):
    mask = mask_for(layout, (4, 6))
    compare(
        lambda b, p, x: torch.addmm(b, p, x, **factors),
        [torch.randn(added), torch.randn(4, 6), torch.randn(6, 5)],
        1,
        layout,
        mask,
    )
    side = [torch.randn(5, 6), torch.randn(5, 4), torch.randn(4, 6)]
    compare(lambda b, x, p: torch.addmm(b, mat1=x, mat2=p, **factors), side, 2, layout, mask)


@pytest.mark.parametrize("layout", LAYOUTS, ids=IDS)
def test_gradients_pass_gradcheck_and_keep_float64(layout):
    x = torch.randn(3, 6, dtype=torch.float64, requires_grad=True)
    bias = torch.randn(4, dtype=torch.float64, requires_grad=True)
    dense, mask = torch.randn(4, 6, dtype=torch.float64), mask_for(layout, (4, 6))
    weight = packed(layout, dense, mask)
    assert torch.autograd.gradcheck(lambda x, b: F.linear(x, weight, b), (x, bias))
    compare(F.linear, [x.detach(), dense, bias.detach()], 1, layout, mask, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("layout", LAYOUTS, ids=IDS)
def test_narrow_types_stay(layout, dtype):
    compare(F.linear, [torch.randn(3, 6).to(dtype), torch.randn(4, 6).to(dtype)], 1, layout, mask_for(layout, (4, 6)), atol=2e-2)


class Elements(TorchDispatchMode):
    """Notes how many elements the tensors have that are created."""

    def __init__(self):
        super().__init__()
        self.most = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        for tensor in torch.utils._pytree.tree_leaves(result):
            if type(tensor) is torch.Tensor and tensor.layout is torch.strided:
                self.most = max(self.most, tensor.numel())
        return result


@pytest.mark.parametrize("layout", [*LAYOUTS[:4], sp.BCSR((4, 4)), sp.NMLayout(2, 8), sp.NMLayout(2, 8, dim=0)], ids=str)
def test_no_tensor_of_the_size_of_the_weight_is_created(layout):
    shape = (96, 192)
    mask = mask_for(layout, shape, 0.1)
    weight = packed(layout, torch.randn(shape), mask, requires_grad=True)
    x = torch.randn(3, shape[1], requires_grad=True)
    with Elements() as elements:
        F.linear(x, weight).sum().backward()
    assert 0 < elements.most < 96 * 192 // 2
    with Elements() as elements, sp.set_dispatch_failure("silent"):
        torch.cos(weight)
    assert elements.most >= 96 * 192  # The check can fail.


def test_a_product_with_two_packed_matrices_says_that_it_is_not_there():
    layout, mask = sp.CSR(), mask_for(sp.CSR(), (4, 4))
    weight = packed(layout, torch.randn(4, 4), mask)
    with pytest.raises(DispatchError, match=r"`torch\.mm` has no implementation for \(sp\.CsrTensor, sp\.CsrTensor\)") as error:
        torch.mm(weight, weight)
    assert "operator=torch.mm" in str(error.value) and "set_dispatch_failure" in error.value.hint


def test_wrong_lengths_and_types_are_named():
    weight = packed(sp.CSR(), torch.randn(4, 6), mask_for(sp.CSR(), (4, 6)))
    with pytest.raises(DispatchError, match="vectors of length 6, and not 5"):
        F.linear(torch.randn(2, 5), weight)
    with pytest.raises(DispatchError, match="different types: float32, float64"):
        F.linear(torch.randn(2, 6, dtype=torch.float64), weight)
