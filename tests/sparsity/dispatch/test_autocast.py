"""Packed tensors under autocast: types and values are those of the dense call, forward and backward."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from packed_layouts import IDS, LAYOUTS, mask_for, packed, places

import fuseflow.sparsity as sp

SHAPE = (8, 12)
CALLS = {
    "linear": lambda w, x, b: F.linear(x, w, b),
    "linear without bias": lambda w, x, b: F.linear(x, w),
    "mm": lambda w, x, b: torch.mm(w, x.T),
    "matmul": lambda w, x, b: w @ x.T,
    "addmm": lambda w, x, b: torch.addmm(b.unsqueeze(1), w, x.T),
    "relu": lambda w, x, b: torch.relu(w),
    "sum": lambda w, x, b: w.sum(),
    "prod": lambda w, x, b: w.prod(1),
    "einsum": lambda w, x, b: torch.einsum("ij,kj->ik", w, x),
}


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("layout", LAYOUTS, ids=IDS)
def test_calls_have_the_types_and_values_of_the_dense_ones(layout, dtype):
    torch.manual_seed(0)
    dense, x, bias, mask = torch.randn(SHAPE), torch.randn(5, 12), torch.randn(8), mask_for(layout, SHAPE)
    for call in CALLS.values():
        ours, theirs = packed(layout, dense, mask, requires_grad=True), None
        theirs, inputs = ours.stored_dense().clone().requires_grad_(), [x.clone().requires_grad_() for _ in range(2)]
        with sp.set_dispatch_failure("silent"):
            with torch.autocast("cpu", dtype=dtype):
                results = call(ours, inputs[0], bias), call(theirs, inputs[1], bias)
            for result in results:
                result.sum().backward()
        got = results[0].stored_dense() if isinstance(results[0], sp.PackedTensor) else results[0]
        assert got.dtype == results[1].dtype
        torch.testing.assert_close(got, results[1], rtol=0.02, atol=0.02, check_dtype=True)
        gradient = ours.grad.stored_dense() if isinstance(ours.grad, sp.PackedTensor) else ours.grad
        torch.testing.assert_close(gradient * places(ours), theirs.grad * places(ours), rtol=0.02, atol=0.05)
        if inputs[1].grad is not None:
            torch.testing.assert_close(inputs[0].grad, inputs[1].grad, rtol=0.02, atol=0.05)


@pytest.mark.parametrize("layout", [sp.CSR(), sp.NMLayout(2, 4), sp.NMGLayout(2, 4, 1)], ids=str)
def test_a_packed_model_trains_under_autocast(layout):
    torch.manual_seed(0)
    model = torch.nn.Linear(12, 8)
    ours = sp.pack(model, {"weight": (layout, mask_for(layout, SHAPE))})
    optimizer = torch.optim.SGD(ours.parameters(), 0.1)
    losses = []
    for _ in range(5):
        optimizer.zero_grad()
        with sp.set_dispatch_failure("raise"), torch.autocast("cpu", dtype=torch.bfloat16):
            result = ours(torch.ones(3, 12))
        assert result.dtype == torch.bfloat16 and ours.weight.dtype == torch.float32
        loss = F.mse_loss(result.float(), torch.ones(3, 8))
        loss.backward()
        assert ours.weight.grad.dtype == torch.float32 and isinstance(ours.weight.grad, sp.PackedTensor)
        optimizer.step()
        losses.append(float(loss))
    assert losses[-1] < losses[0] / 2


class Held:
    """A storage of a user."""

    def __init__(self, data):
        self.data = data

    def to_dense(self):
        return self.data


def test_implementations_of_a_user_get_the_types_of_autocast():
    """`conv2d` is cast, and `cos` is not, as on dense tensors."""
    seen = []

    @sp.register_fwd_op_impl(F.conv2d, [torch.Tensor, Held, torch.Tensor])
    def conv2d(ctx, inputs, output_sparsifiers):
        seen.append([tensor.dtype for tensor in inputs])
        return F.conv2d(inputs[0], inputs[1].stored_dense(), inputs[2])

    @sp.register_fwd_op_impl(torch.cos, [Held])
    def cos(ctx, inputs, output_sparsifiers):
        seen.append([tensor.dtype for tensor in inputs])
        return inputs[0].stored_dense().cos()

    sp.register_sparsifier_implementation(sp.SameFormatSparsifier, torch.Tensor, Held)(lambda sparsifier, tensor: Held(tensor))
    weight, x, bias = torch.randn(3, 2, 2, 2), torch.randn(1, 2, 4, 4), torch.randn(3)
    held = sp.PackedTensor.wrapped_from_dense(Held(weight), weight)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(F.conv2d(x, held, bias), F.conv2d(x, weight, bias))
        assert torch.cos(held).dtype == torch.cos(weight).dtype == torch.float32
    assert seen == [[torch.bfloat16] * 3, [torch.float32]]
    assert F.conv2d(x, held, bias).dtype == torch.float32
