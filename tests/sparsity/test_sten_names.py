"""The names of the paper on STen, and programs of the form of the listings in its section 5. Only the import differs."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from registrations import forgotten

import fuseflow.sparsity as sten


@pytest.fixture(autouse=True)
def _own_registry():
    with forgotten(), sten.set_dispatch_failure("raise"):
        yield


NAMES = {
    "SparseTensorWrapper": sten.PackedTensor,
    "SparseParameterWrapper": sten.PackedParameter,
    "ScalarFractionSparsifier": sten.Magnitude,
    "RandomFractionSparsifier": sten.RandomFraction,
    "ScalarThresholdSparsifier": sten.Threshold,
    "PerBlockNMSparsifier": sten.NM,
    "GroupedNMSparsifier": sten.NMG,
    "GroupedNMTensor": sten.NMGLayout.storage,
    "FixedMaskTensor": sten.MaskedSparseTensor,
}


@pytest.mark.parametrize("name", NAMES)
def test_names_of_the_paper_are_ours(name):
    assert getattr(sten, name) is NAMES[name] and name in sten.__all__


def test_section_5_a_grouped_layout_with_its_own_product():
    """The product of the paper replaces the built-in one, and its gradient is registered without the formats of the forward pass."""
    calls = []

    @sten.register_sparsifier_implementation(sparsifier=sten.GroupedNMSparsifier, inp=torch.Tensor, out=sten.GroupedNMTensor)
    def to_grouped(sparsifier, tensor, grad_fmt=None):
        calls.append("sparsifier")
        dims = {"sparse_dim": tensor.ndim - 2, "group_dim": tensor.ndim - 1}
        grouped = sten.GroupedNMTensor.from_dense(tensor, sparsifier.n, sparsifier.m, group_size=sparsifier.g, **dims)
        return sten.SparseTensorWrapper.wrapped_from_dense(grouped, tensor, grad_fmt)

    @sten.register_fwd_op_impl(
        operator=torch.nn.functional.linear,
        inp=(torch.Tensor, sten.GroupedNMTensor, torch.Tensor),
        out=[(sten.KeepAll, torch.Tensor)],
    )
    def linear_forward(ctx, inputs, output_sparsifiers):
        calls.append("forward")
        input, weight, bias = inputs
        ctx.save_for_backward(input, weight, bias)
        return F.linear(input, weight.wrapped_tensor.to_dense(), bias)

    @sten.register_bwd_op_impl(
        operator=torch.nn.functional.linear,
        grad_out=[torch.Tensor],
        grad_inp=((sten.KeepAll, torch.Tensor), (sten.KeepAll, torch.Tensor), (sten.KeepAll, torch.Tensor)),
    )
    def linear_backward(ctx, grad_outputs, input_sparsifiers):
        calls.append("backward")
        input, weight, _ = ctx.saved_tensors
        [grad] = grad_outputs
        return grad @ weight.wrapped_tensor.to_dense(), grad.T @ input, grad.sum(0)

    model, x = torch.nn.Linear(12, 24), torch.randn(5, 12)
    grouped = (sten.KeepAll(), torch.Tensor, sten.GroupedNMSparsifier(n=2, m=4, g=2), sten.GroupedNMTensor)
    weight = sten.sparsified_op(torch.clone, out_fmt=(grouped,), grad_out_fmt=None)(model.weight.detach())
    parameter = sten.SparseParameterWrapper(weight)
    dense = weight.wrapped_tensor.to_dense().clone().requires_grad_()
    F.linear(x, parameter, model.bias).square().sum().backward()
    F.linear(x, dense, model.bias.detach()).square().sum().backward()
    torch.testing.assert_close(parameter.grad, dense.grad)
    assert calls == ["sparsifier", "forward", "backward"]


@pytest.mark.parametrize("dims", [(0, 1), (1, 0)], ids=["columns", "rows"])
def test_section_5_a_grouped_tensor_from_a_dense_one(dims):
    dense = torch.rand(8, 12) + 0.1
    tensor = sten.GroupedNMTensor.from_dense(dense, n=2, m=4, sparse_dim=dims[0], group_size=1, group_dim=dims[1])
    kept = tensor.to_dense()
    groups = (kept != 0).movedim(dims[0], -1).reshape(dense.shape[dims[1]], -1, 4)
    assert torch.equal(kept[kept != 0], dense[kept != 0]) and bool((groups.sum(-1) == 2).all())
    patterns = groups[:6].mul(torch.tensor([1, 2, 4, 8])).sum(-1)  # of the first 6 coordinates, each has another pattern
    assert all(len(set(column.tolist())) == 6 for column in patterns.T)


def test_a_fixed_mask_tensor_has_the_fields_of_the_paper():
    tensor = sten.FixedMaskTensor(torch.tensor([1.0, 0.0]), torch.tensor([True, False]))
    assert torch.equal(tensor.val, tensor.to_dense()) and tensor.mask.tolist() == [True, False]
    wrapped = sten.SparseTensorWrapper.wrapped_from_dense(tensor, tensor.to_dense())
    wrapped.add_(1)
    assert wrapped.wrapped_tensor.to_dense().tolist() == [2.0, 0.0]
