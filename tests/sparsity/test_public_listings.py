"""Programs in the interface of the paper on STen: two notebooks and the eager tests of its repository, written anew.

They differ from the published ones in the import only, so that a program for STen runs here.
"""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
import scipy.sparse
import torch

import fuseflow as ff
import fuseflow.sparsity as sten
from fuseflow.errors import FuseFlowError

DENSE = (sten.KeepAll(), torch.Tensor, sten.KeepAll(), torch.Tensor)


@pytest.fixture(autouse=True)
def _mode():
    """The programs set the mode of dispatch for all that follows."""
    with sten.set_dispatch_failure("warn"):
        yield


class MLP(torch.nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.layers = torch.nn.Sequential()
        for place, pair in enumerate(itertools.pairwise(sizes)):
            if place:
                self.layers.append(torch.nn.ReLU())
            self.layers.append(self.layer(*pair))

    def layer(self, inputs, outputs):
        return torch.nn.Linear(inputs, outputs)

    def forward(self, x):
        return self.layers(x)


class SparseLinear(torch.nn.Module):
    def __init__(self, inputs, outputs, sparsity):
        super().__init__()
        self.weight = sten.SparseParameterWrapper(
            sten.random_fraction_sparsifier_dense_csc(
                sten.RandomFractionSparsifier(sparsity),
                torch.randn(outputs, inputs),
                (sten.KeepAll(), torch.Tensor, sten.RandomFractionSparsifier(sparsity), sten.CscTensor),
            )
        )
        self.bias = torch.nn.Parameter(torch.rand(outputs))

    def forward(self, x):
        operator = sten.sparsified_op(orig_op=torch.nn.functional.linear, out_fmt=(DENSE,), grad_out_fmt=(DENSE,))
        return operator(x, self.weight, self.bias)


class SparseMLP(MLP):
    def __init__(self, sizes, sparsity):
        self.sparsity = sparsity
        super().__init__(sizes)

    def layer(self, inputs, outputs):
        return SparseLinear(inputs, outputs, self.sparsity)


def test_build_from_scratch():
    sten.set_dispatch_failure("raise")
    sizes, x = [50, 40, 30, 20, 30, 10], torch.randn(15, 50)
    model = MLP(sizes)
    assert SparseMLP(sizes, 0.8)(x).shape == (15, 10)
    sparse = SparseMLP(sizes, 0)
    sparse.load_state_dict(model.state_dict())
    first, second = x.clone().requires_grad_(), x.clone().requires_grad_()
    expected, got = model(first), sparse(second)
    torch.testing.assert_close(got, expected, atol=1e-4, rtol=1e-2)
    grad = torch.rand_like(got)
    expected.backward(grad)
    got.backward(grad)
    torch.testing.assert_close(second.grad, first.grad)
    sten.set_dispatch_failure("silent")
    for name, value in model.state_dict().items():
        assert torch.allclose(value, sparse.state_dict()[name])


def test_simple_graph():
    sten.set_dispatch_failure("raise")
    sparse_add = sten.sparsified_op(
        orig_op=torch.add,
        out_fmt=((sten.RandomFractionSparsifier(0.6), sten.CsrTensor, sten.KeepAll(), sten.CsrTensor),),
        grad_out_fmt=[(sten.KeepAll(), torch.Tensor, sten.KeepAll(), sten.DenseTensor)],
    )
    x = sten.torch_tensor_to_wrapped_dense(
        sten.KeepAll(),
        torch.randn(10, 20, requires_grad=True),
        (sten.RandomFractionSparsifier(0.7), sten.CooTensor, sten.RandomFractionSparsifier(0.9), sten.CsrTensor),
    )
    y = sten.torch_tensor_to_csr(
        sten.KeepAll(),
        torch.randn(10, 20, requires_grad=True),
        (sten.KeepAll(), sten.DenseTensor, sten.KeepAll(), sten.DenseTensor),
    )
    z = sparse_add(x, y)
    z.backward(sten.torch_tensor_to_wrapped_dense(sten.KeepAll(), torch.randn(10, 20)))
    assert isinstance(z.wrapped_tensor, sten.CsrTensor)
    assert isinstance(x.grad.wrapped_tensor, sten.CsrTensor)
    assert isinstance(y.grad.wrapped_tensor, sten.DenseTensor)


def test_gradient_autowrapping():
    sparse_abs = sten.sparsified_op(
        orig_op=torch.abs,
        out_fmt=[(sten.KeepAll(), torch.Tensor, sten.RandomFractionSparsifier(0.6), sten.CsrTensor)],
        grad_out_fmt=[DENSE],
    )
    x = torch.randn(10, 20, requires_grad=True)
    z = torch.abs(sparse_abs(x))
    z.backward(torch.randn_like(z))
    assert x.grad.shape == x.shape


def scipy_classes():
    """Return a sparsifier and a storage of a user, which are new in each call."""

    class MyRandomFractionSparsifier:
        def __init__(self, fraction):
            self.fraction = fraction

    class MyCscTensor:
        def __init__(self, data):
            self.data = data

        def to_dense(self):
            return torch.from_numpy(self.data.todense())

    return MyRandomFractionSparsifier, MyCscTensor


def test_custom_implementations():
    sparsifier_class, storage = scipy_classes()
    a, b, c = (torch.randn(shape, requires_grad=True) for shape in ((10, 20), (10, 20), (20, 30)))
    grad = torch.randn(10, 30)
    torch.mm(torch.add(a, b), c).backward(grad)
    expected = [t.grad for t in (a, b, c)]
    a.grad = b.grad = c.grad = None

    format = (sten.KeepAll(), torch.Tensor, sparsifier_class(0), storage)
    sparse_add = sten.sparsified_op(orig_op=torch.add, out_fmt=(format,), grad_out_fmt=(format,))
    with pytest.raises(sten.DispatchError, match="register_sparsifier_implementation"):
        sparse_add(a, b)

    @sten.register_sparsifier_implementation(sparsifier=sparsifier_class, inp=torch.Tensor, out=storage)
    def to_csc(sparsifier, tensor, grad_fmt=None):
        matrix = scipy.sparse.csc_matrix(sten.random_mask_sparsify(tensor, sparsifier.fraction))
        return sten.SparseTensorWrapper.wrapped_from_dense(storage(matrix), tensor, grad_fmt)

    with pytest.warns(sten.DispatchWarning, match=r"operator=torch\.mm"):
        torch.mm(sparse_add(a, b), c)

    @sten.register_fwd_op_impl(operator=torch.mm, inp=(storage, torch.Tensor), out=[(sten.KeepAll, torch.Tensor)])
    def forward(ctx, inputs, output_sparsifiers):
        input1, input2 = inputs
        ctx.save_for_backward(input1, input2)
        return torch.from_numpy(input1.wrapped_tensor.data @ input2.numpy())

    d = torch.mm(sparse_add(a, b), c)
    with pytest.raises(sten.DispatchError, match=r"(?s)the gradient of `torch\.mm` is not registered.*register_bwd_op_impl"):
        d.backward(grad)

    @sten.register_bwd_op_impl(
        operator=torch.mm,
        grad_out=[torch.Tensor],
        grad_inp=((sten.KeepAll, torch.Tensor), (sten.KeepAll, torch.Tensor)),
        inp=(storage, torch.Tensor),
    )
    def backward(ctx, grad_outputs, input_sparsifiers):
        input1, input2 = ctx.saved_tensors
        [grad_output] = grad_outputs
        return torch.mm(grad_output, input2.T), torch.from_numpy(input1.wrapped_tensor.data.transpose() @ grad_output)

    with pytest.warns(sten.DispatchWarning, match=r"the gradient of `torch\.add`"):
        torch.mm(sparse_add(a, b), c).backward(grad)
    for tensor, gradient in zip((a, b, c), expected, strict=True):
        torch.testing.assert_close(tensor.grad, gradient, rtol=1e-2, atol=1e-4)

    @sten.register_bwd_op_impl(
        operator=torch.add,
        grad_out=[storage],
        grad_inp=((sten.KeepAll, torch.Tensor), (sten.KeepAll, torch.Tensor)),
        inp=(torch.Tensor, torch.Tensor),
    )
    def add_backward(ctx, grad_outputs, input_sparsifiers):
        dense = grad_outputs[0].wrapped_tensor.to_dense()
        return dense.clone(), dense.clone()

    sten.set_dispatch_failure("raise")
    a.grad = None
    torch.mm(sparse_add(a, b), c).backward(grad)
    torch.testing.assert_close(a.grad, expected[0], rtol=1e-2, atol=1e-4)


def test_fallback_implementations():
    sparsifier_class, storage = scipy_classes()

    @sten.register_sparsifier_implementation(sparsifier=sparsifier_class, inp=torch.Tensor, out=storage)
    def to_csc(sparsifier, tensor):
        return storage(scipy.sparse.csc_matrix(tensor))

    format = (sten.KeepAll(), torch.Tensor, sparsifier_class(0), storage)
    sparse_add = sten.sparsified_op(torch.add, (format,), (format,))
    a, c = torch.randn(10, 20, requires_grad=True), torch.randn(20, 30, requires_grad=True)
    with pytest.warns(sten.DispatchWarning):
        d = torch.mm(sparse_add(a, a), c)
    torch.testing.assert_close(d, 2 * a @ c)
    d.sum().backward()
    torch.testing.assert_close(a.grad, 2 * c.sum(1).expand(10, 20))


def test_an_existing_model_becomes_sparse():
    """Its layer of BERT is one of PyTorch here, since weights cannot be downloaded."""
    model = EncoderLayer()
    input = torch.rand(2, 16, 24)
    weights_to_sparsify = []
    sb = sten.SparsityBuilder()
    for module_name, module in model.named_modules():
        if isinstance(module, torch.nn.modules.linear.Linear):
            weight = module_name + ".weight"
            weights_to_sparsify.append(weight)
            sb.set_weight(
                name=weight,
                initial_sparsifier=sten.ScalarFractionSparsifier(0.9),
                inline_sparsifier=sten.KeepAll(),
                tmp_format=torch.Tensor,
                external_sparsifier=sten.KeepAll(),
                out_format=sten.CsrTensor,
            )
    sb.set_interm(
        name="intermediate.gelu",
        inline_sparsifier=sten.RandomFractionSparsifier(0.9),
        tmp_format=sten.CooTensor,
        external_sparsifier=sten.KeepAll(),
        out_format=sten.CooTensor,
    )
    sparse_model = sb.get_sparse_model(model)
    assert sparse_model(input).shape == input.shape
    for weight in weights_to_sparsify:
        parameter = sparse_model.get_parameter(weight)
        assert int((parameter != 0).sum()) == parameter.numel() - int(0.9 * parameter.numel())


def test_a_sparse_encoder_of_fraction_0_is_the_dense_one():
    model = EncoderLayer()
    input = torch.rand(2, 16, 24, requires_grad=True)
    sb = sten.SparsityBuilder()
    for module_name, module in model.named_modules():
        if isinstance(module, torch.nn.modules.linear.Linear):
            sb.set_weight(
                module_name + ".weight",
                sten.ScalarFractionSparsifier(0),
                sten.KeepAll(),
                torch.Tensor,
                sten.KeepAll(),
                sten.CsrTensor,
            )
    sb.set_interm("intermediate.gelu", sten.RandomFractionSparsifier(0), sten.CooTensor, sten.KeepAll(), sten.CooTensor)
    sparse_model = sb.get_sparse_model(model)
    sparse_input = input.clone().detach()
    sparse_input.requires_grad = True
    output, sparse_output = model(input), sparse_model(sparse_input)
    assert torch.allclose(output, sparse_output, atol=1e-4, rtol=1e-2)
    grad_output = torch.randn_like(sparse_output)
    sparse_output.backward(grad_output)
    output.backward(grad_output)
    assert torch.allclose(input.grad, sparse_input.grad, atol=1e-4, rtol=1e-2)


class Intermediate(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.dense = torch.nn.Linear(24, 48)

    def forward(self, x):
        return torch.nn.functional.gelu(self.dense(x))


class EncoderLayer(torch.nn.Module):
    """A layer of an encoder whose modules have the names that BERT's have."""

    def __init__(self):
        super().__init__()
        self.attention = torch.nn.MultiheadAttention(24, 2, batch_first=True)
        self.intermediate = Intermediate()
        self.output = torch.nn.Linear(48, 24)

    def forward(self, x):
        x = x + self.attention(x, x, x, need_weights=False)[0]
        return x + self.output(self.intermediate(x))


def test_modify_transformer_encoder_layer():
    model = torch.nn.TransformerEncoderLayer(d_model=512, nhead=8)
    sb = sten.SparsityBuilder()
    sb.set_weight(
        name="linear1.weight",
        initial_sparsifier=sten.ScalarFractionSparsifier(0.5),
        out_format=sten.CooTensor,
    )
    sb.set_interm(
        name="relu",
        external_sparsifier=sten.ScalarFractionSparsifier(0.5),
        out_format=sten.CooTensor,
    )
    sparse_model = sb.get_sparse_model(model)
    sparse_model(torch.randn(2, 16, 512))
    packed = sten.pack(sparse_model)
    assert isinstance(packed.linear1.weight, sten.SparseParameterWrapper)
    assert isinstance(packed.linear1.weight.wrapped_tensor, sten.CooTensor)


def registered_classes():
    """Return the sparsifier and the storage of `scipy_classes` with the implementation of the listing."""
    sparsifier_class, storage = scipy_classes()

    @sten.register_sparsifier_implementation(sparsifier=sparsifier_class, inp=torch.Tensor, out=storage)
    def to_csc(sparsifier, tensor, grad_fmt=None):
        matrix = scipy.sparse.csc_matrix(sten.random_mask_sparsify(tensor, frac=sparsifier.fraction))
        return sten.SparseTensorWrapper.wrapped_from_dense(storage(matrix), tensor, grad_fmt)

    return sparsifier_class, storage


def test_a_builder_takes_classes_of_the_user():
    sparsifier_class, storage = registered_classes()
    sb = sten.SparsityBuilder()
    sb.set_weight(name="0.weight", initial_sparsifier=sparsifier_class(0.75), out_format=storage)
    sb.set_interm(name="1", external_sparsifier=sparsifier_class(0.5), out_format=storage)
    sb.set_weight_grad(name="0.weight", external_sparsifier=sparsifier_class(0.5), out_format=storage)
    model = torch.nn.Sequential(torch.nn.Linear(40, 60), torch.nn.ReLU())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    sparse_model, optimizer = sb.sparsify_model_and_optimizer_inplace(model, optimizer)
    output = sparse_model(torch.rand(30, 40))
    output.sum().backward()
    optimizer.step()
    share = (sparse_model[0].weight != 0).float().mean()
    assert 0.2 < share < 0.3
    assert 0.2 < (sparse_model[0].weight.grad != 0).float().mean() < 0.6
    assert (output != 0).float().mean() < 0.4


def test_classes_of_the_user_are_not_compiled_saved_or_packed_without_a_way():
    sparsifier_class, storage = registered_classes()
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU()).eval()
    weights, values = sten.SparsityBuilder(), sten.SparsityBuilder()
    weights.set_weight("0.weight", sparsifier_class(0.5), out_format=storage)
    values.set_interm("1", external_sparsifier=sparsifier_class(0.5), out_format=storage)
    sparse = weights.get_sparse_model(model)
    with pytest.raises(FuseFlowError, match="runs in PyTorch only"):
        ff.compile(sparse, (torch.randn(2, 8),))
    with pytest.raises(FuseFlowError, match="runs in eager PyTorch only"):
        ff.compile(values.get_sparse_model(model), (torch.randn(2, 8),))
    with pytest.raises(sten.DispatchError, match="register_sparsifier_implementation"):
        sten.pack(sparse)
    with pytest.raises(FuseFlowError, match="has no text"):
        sten.save_sparsity(sparse, Path("never"))
    assert not Path("never").exists()

    @sten.register_sparsifier_implementation(sparsifier=sten.KeepAll, inp=torch.Tensor, out=storage)
    def stored(sparsifier, tensor, grad_fmt=None):
        return storage(scipy.sparse.csc_matrix(tensor))

    x = torch.randn(3, 8)
    with pytest.warns(sten.DispatchWarning):
        torch.testing.assert_close(sten.pack(sparse)(x), sparse(x))


def test_an_object_without_an_implementation_is_no_sparsifier():
    with pytest.raises(FuseFlowError, match="is no sparsifier") as error:
        sten.SparsityBuilder().set_weight("w", initial_sparsifier=scipy_classes()[0](0.5), out_format=sten.CooTensor)
    assert "register_sparsifier_implementation" in error.value.hint
