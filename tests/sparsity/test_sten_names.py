"""The names of the paper on STen, and programs of the form of the listings in its sections 3 and 5. Only the import differs."""

from __future__ import annotations

import pytest
import scipy.sparse
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


def test_section_3_classes_of_the_user():
    """A layout is a class with `to_dense`, a sparsifier is any class, and what is registered for both says how they go together."""

    class ColumnTensor:
        def __init__(self, data):
            self.data = data

        def to_dense(self):
            return torch.from_numpy(self.data.toarray())

    class KeepShare:
        def __init__(self, fraction):
            self.fraction = fraction

    @sten.register_sparsifier_implementation(sparsifier=KeepShare, inp=torch.Tensor, out=ColumnTensor)
    def to_columns(sparsifier, tensor, grad_fmt=None):
        matrix = scipy.sparse.csc_matrix(sten.random_mask_sparsify(tensor, sparsifier.fraction))
        return sten.SparseTensorWrapper.wrapped_from_dense(ColumnTensor(matrix), tensor, grad_fmt)

    @sten.register_fwd_op_impl(operator=torch.mm, inp=(ColumnTensor, torch.Tensor), out=((sten.KeepAll, torch.Tensor),))
    def mm_forward(ctx, inputs, output_sparsifiers):
        first, second = inputs
        ctx.save_for_backward(first, second)
        return torch.from_numpy(first.wrapped_tensor.data @ second.numpy())

    @sten.register_bwd_op_impl(
        operator=torch.mm, grad_out=(torch.Tensor,), grad_inp=((sten.KeepAll, torch.Tensor), (sten.KeepAll, torch.Tensor))
    )
    def mm_backward(ctx, grad_outputs, input_sparsifiers):
        first, second = ctx.saved_tensors
        [grad] = grad_outputs
        return grad @ second.T, torch.from_numpy(first.wrapped_tensor.data.T @ grad.numpy())

    columns = (sten.KeepAll(), torch.Tensor, KeepShare(0), ColumnTensor)
    dense = (sten.KeepAll(), torch.Tensor, sten.KeepAll(), torch.Tensor)
    sparse_add = sten.sparsified_op(orig_op=torch.add, out_fmt=(columns,), grad_out_fmt=(dense,))
    a, b, c = (torch.randn(shape, requires_grad=True) for shape in ((3, 4), (3, 4), (4, 5)))
    d = torch.mm(sparse_add(a, b), c)
    torch.testing.assert_close(d, (a + b) @ c)
    gradient = torch.randn(3, 5)
    wanted = torch.autograd.grad((a + b) @ c, (a, b, c), gradient)
    torch.testing.assert_close(torch.autograd.grad(d, (a, b, c), gradient), wanted)


def test_section_3_a_model_becomes_sparse():
    model = torch.nn.Sequential(torch.nn.Linear(8, 12), torch.nn.ReLU(), torch.nn.Linear(12, 4))
    sb = sten.SparsityBuilder()
    sb.set_weight(
        name="0.weight",
        initial_sparsifier=sten.ScalarFractionSparsifier(0.5),
        inline_sparsifier=sten.KeepAll(),
        tmp_format=torch.Tensor,
        external_sparsifier=sten.KeepAll(),
        out_format=sten.FixedMaskTensor,
    )
    sb.set_weight_grad(name="0.weight", external_sparsifier=sten.ScalarThresholdSparsifier(0.0), out_format=sten.FixedMaskTensor)
    sb.set_weight(name="2.weight", initial_sparsifier=sten.PerBlockNMSparsifier(2, 4))
    sb.set_interm(name="1", inline_sparsifier=sten.ScalarThresholdSparsifier(0.1), tmp_format=torch.Tensor)
    sb.set_interm_grad(name="1", external_sparsifier=sten.RandomFractionSparsifier(0.1))
    sparse = sb.get_sparse_model(model)
    assert int(sparse[0].weight.count_nonzero()) == 48 and int(sparse[2].weight.count_nonzero()) == 24
    optimizer = torch.optim.SGD(sparse.parameters(), lr=0.1)
    sparse, optimizer = sb.sparsify_model_and_optimizer_inplace(model, optimizer=torch.optim.SGD(model.parameters(), lr=0.1))
    sparse(torch.randn(5, 8)).sum().backward()
    optimizer.step()
    assert int(sparse[0].weight.count_nonzero()) <= 48


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


def test_section_5_a_builder_with_the_grouped_layout():
    model = torch.nn.Sequential(torch.nn.Linear(24, 12), torch.nn.ReLU(), torch.nn.Linear(12, 24))
    sb = sten.SparsityBuilder()
    for name in ("0.weight", "2.weight"):
        sb.set_weight(name=name, initial_sparsifier=sten.GroupedNMSparsifier(n=3, m=6, g=1), out_format=sten.GroupedNMTensor)
    sparse = sb.get_sparse_model(model)
    packed = sten.pack(sparse)
    assert type(packed[0].weight.wrapped_tensor) is sten.GroupedNMTensor
    x = torch.randn(3, 24)
    torch.testing.assert_close(packed(x), sparse(x))


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
