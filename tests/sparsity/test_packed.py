"""Packed tensors as tensors: copying, saving, training, tracing, and falling back."""

from __future__ import annotations

import copy
import io
import subprocess
import sys

import pytest
import torch
from packed_layouts import IDS, LAYOUTS, mask_for, packed, places

import fuseflow.sparsity as sp
from fuseflow.errors import DispatchError, SparsityError

SHAPE = (4, 6)


@pytest.fixture
def csr() -> sp.PackedTensor:
    torch.manual_seed(0)
    return packed(sp.CSR(), torch.randn(SHAPE), mask_for(sp.CSR(), SHAPE), requires_grad=True)


FALLBACKS = {
    "bmm": lambda a, o: torch.bmm(torch.unsqueeze(a, 0), torch.unsqueeze(o.T, 0)),
    "cat": lambda a, o: torch.cat([a, o], dim=1),
    "stack": lambda a, o: torch.stack([a, o, a]),
    "sub": lambda a, o: a - o,
    "rsub": lambda a, o: 1 - a,
    "a / tensor": lambda a, o: a / o,
    "2 / a": lambda a, o: 2 / (a + 1),
    "cos": lambda a, o: torch.cos(a),
    "std": lambda a, o: torch.std(a, dim=1),
    "std_mean": lambda a, o: torch.add(*torch.std_mean(a, dim=1)),
    "sum": lambda a, o: a.sum(),
    "transposed": lambda a, o: a.T @ o,
    "entries": lambda a, o: a[1:3, ::2],
    "einsum": lambda a, o: torch.einsum("ij,kj->ik", a, o),
    "where": lambda a, o: torch.where(o > 0, a, o),
    "softmax": lambda a, o: torch.softmax(a, dim=-1),
}


@pytest.mark.parametrize("name", FALLBACKS)
@pytest.mark.parametrize("layout", [sp.CSR(), sp.NMLayout(2, 4)], ids=str)
def test_what_has_no_implementation_is_computed_on_dense_tensors(name, layout):
    dense, mask, other = torch.rand(SHAPE) + 0.1, mask_for(layout, SHAPE), torch.rand(SHAPE) + 0.1
    ours, theirs = packed(layout, dense, mask, requires_grad=True), (dense * mask).requires_grad_()
    with pytest.warns(sp.DispatchWarning, match=r"(?s)has no implementation for .*@sp\.register_fwd_op_impl"):
        got = FALLBACKS[name](ours, other)
    expected = FALLBACKS[name](theirs, other)
    torch.testing.assert_close(got, expected)
    grad = torch.randn(expected.shape)
    with sp.set_dispatch_failure("silent"):
        got.backward(grad)
        expected.backward(grad)
        gradient = ours.grad.stored_dense() if isinstance(ours.grad, sp.PackedTensor) else ours.grad
        torch.testing.assert_close(gradient * places(ours), theirs.grad * places(ours))


def test_questions_about_entries_are_answered(csr):
    dense = csr.stored_dense()
    with sp.set_dispatch_failure("silent"):
        assert torch.allclose(csr, dense) and torch.equal(csr, dense) and (csr == dense).all() and (dense == csr).all()
        assert csr.tolist() == dense.tolist() and csr[0, 0].item() == dense[0, 0].item()
        assert (csr.detach().numpy() == dense.numpy()).all()
    assert len({csr, csr, csr.detach()}) == 2
    assert csr.shape == SHAPE and csr.size(1) == 6 and csr.ndim == 2 and csr.numel() == 24 and len(csr) == 4
    assert repr(csr).startswith("PackedTensor(CsrTensor, shape=[4, 6], dtype=torch.float32, ")


def test_a_warning_is_shown_once_at_a_place_and_again_for_other_formats():
    program = """
import torch, fuseflow.sparsity as sp
csr, coo = sp.torch_tensor_to_csr(sp.KeepAll(), torch.eye(3)), sp.torch_tensor_to_coo(sp.KeepAll(), torch.eye(3))
for tensor in (csr, csr, coo, csr):
    torch.cos(tensor)
torch.cos(csr)
"""
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stderr.count("DispatchWarning") == 3
    assert "<string>:5: DispatchWarning: `torch.cos` has no implementation for (sp.CsrTensor)" in result.stderr


@pytest.mark.parametrize("layout", LAYOUTS, ids=IDS)
@pytest.mark.parametrize(
    "optimizer",
    [lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, weight_decay=0.1, nesterov=True), lambda p: torch.optim.AdamW(p, 0.1)],
    ids=["SGD", "AdamW"],
)
def test_training_changes_values_and_not_places(layout, optimizer):
    torch.manual_seed(0)
    model, mask, x, y = torch.nn.Linear(6, 4), mask_for(layout, SHAPE), torch.randn(16, 6), torch.randn(16, 4)
    model = sp.pack(model, {"weight": (layout, mask)})
    kept, before = places(model.weight), model.weight.stored_dense().clone()
    dense = torch.nn.Linear(6, 4)
    dense.weight.data, dense.bias.data = before.clone(), model.bias.detach().clone()
    ours, theirs = optimizer(model.parameters()), optimizer(dense.parameters())
    with sp.set_dispatch_failure("raise"):
        for _ in range(3):
            ours.zero_grad()
            torch.nn.functional.mse_loss(model(x), y).backward()
            ours.step()
    for _ in range(3):
        theirs.zero_grad()
        torch.nn.functional.mse_loss(dense(x), y).backward()
        dense.weight.grad *= kept
        theirs.step()
        dense.weight.data *= kept
    after = model.weight.stored_dense()
    assert not after[~kept].any() and (places(model.weight) == kept).all() and not torch.equal(after, before)
    torch.testing.assert_close(after, dense.weight.detach(), atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("layout", LAYOUTS, ids=IDS)
def test_updates_in_place_are_read_back_at_the_places(layout):
    dense, mask, other = torch.randn(SHAPE), mask_for(layout, SHAPE), torch.randn(SHAPE)
    x = packed(layout, dense, mask)
    kept = places(x)
    alias = x.detach()
    assert x.add_(other) is x
    torch.testing.assert_close(alias.stored_dense(), (dense * mask + other) * kept)
    x.copy_(other)
    torch.testing.assert_close(x.stored_dense(), other * kept)
    x += 1
    x.mul_(other[0]).addcmul_(other, other, value=2)
    torch.testing.assert_close(x.stored_dense(), ((other + 1) * other[0] + 2 * other * other) * kept)
    torch.nn.init.constant_(x, 3.0)
    torch.testing.assert_close(x.stored_dense(), 3.0 * kept)
    torch.nn.init.xavier_uniform_(x)
    assert ((x.stored_dense() != 0) == kept).all()
    x.data = other
    torch.testing.assert_close(x.stored_dense(), other * kept)
    with sp.set_dispatch_failure("silent"):
        x.cumsum_(1)
    torch.testing.assert_close(x.stored_dense(), (other * kept).cumsum(1) * kept)


@pytest.mark.parametrize("layout", LAYOUTS, ids=IDS)
def test_entries_that_are_set_are_read_back_at_the_places(layout):
    dense, mask, other = torch.randn(SHAPE), mask_for(layout, SHAPE), torch.randn(SHAPE)
    x = packed(layout, dense, mask)
    kept, expected = places(x), dense * mask
    with pytest.warns(sp.DispatchWarning, match=r"`torch\.Tensor\.__setitem__` has no implementation"):
        x[1:3, ::2] = 5
    expected[1:3, ::2] = 5
    torch.testing.assert_close(x.stored_dense(), expected * kept)
    with sp.set_dispatch_failure("silent"):
        x[0] = other[0]
        x[other > 0.5] = 0.25
        x.fill_diagonal_(7.0)
    expected[0] = other[0]
    expected[other > 0.5] = 0.25
    torch.testing.assert_close(x.stored_dense(), expected.fill_diagonal_(7.0) * kept)
    with sp.set_dispatch_failure("silent"):
        torch.manual_seed(0)
        torch.nn.init.orthogonal_(x)
    torch.manual_seed(0)
    torch.testing.assert_close(x.stored_dense(), torch.nn.init.orthogonal_(torch.empty(SHAPE)) * kept)


@pytest.mark.parametrize("layout", LAYOUTS, ids=IDS)
def test_results_are_written_where_a_call_says(layout):
    dense, mask, other = torch.randn(SHAPE), mask_for(layout, SHAPE), torch.randn(SHAPE)
    x, out, square = packed(layout, dense, mask), torch.empty(SHAPE), torch.empty(4, 4)
    kept, before = places(x), x.stored_dense().clone()
    with sp.set_dispatch_failure("silent"):
        assert torch.add(x, other, out=out) is out and torch.mm(x, other.T, out=square) is square
        values, positions = torch.max(x, 1, out=(torch.empty(4), torch.empty(4, dtype=torch.int64)))
    torch.testing.assert_close(out, before + other)
    torch.testing.assert_close(square, before @ other.T)
    assert torch.equal(values, before.max(1).values) and torch.equal(before.gather(1, positions[:, None])[:, 0], values)
    assert torch.equal(x.stored_dense(), before)  # It was only read.
    with sp.set_dispatch_failure("silent"):
        assert torch.mul(other, 2, out=x) is x
    torch.testing.assert_close(x.stored_dense(), 2 * other * kept)


def test_no_shape_is_changed_in_place(csr):
    square = packed(sp.CSR(), torch.randn(4, 4), mask_for(sp.CSR(), (4, 4)))
    before = square.stored_dense().clone()
    for change in (lambda x: x.t_(), lambda x: x.transpose_(0, 1), lambda x: x.unsqueeze_(0), lambda x: x.squeeze_()):
        with pytest.raises(
            SparsityError, match=r"`torch\.Tensor\.\w+_` cannot change the shape of a packed tensor in place"
        ) as error:
            change(square)
        assert "without `_`" in error.value.hint
    assert torch.equal(square.stored_dense(), before)


def test_what_is_put_into_a_packed_tensor_gets_its_gradient():
    """PyTorch writes zeros to a view of the gradient where entries were overwritten, which is lost on a packed gradient."""
    dense, mask = torch.randn(SHAPE), mask_for(sp.CSR(), SHAPE)
    for change in ("set", "add", "copy"):
        x, first = packed(sp.CSR(), dense, mask, requires_grad=True), torch.ones(SHAPE, requires_grad=True)
        y, second = x * 2, first.clone()
        second[0] = 3
        with sp.set_dispatch_failure("silent"):
            if change == "set":
                y[0] = second[0] * 5
            else:
                y.add_(second) if change == "add" else y.copy_(second)
            y.sum().backward()
        row = torch.arange(4).view(-1, 1) > 0
        wanted = {"set": (2 * mask * row, None), "add": (2 * mask, mask * row), "copy": (0 * mask, mask * row)}[change]
        gradient = x.grad.stored_dense() if isinstance(x.grad, sp.PackedTensor) else x.grad
        torch.testing.assert_close(gradient, wanted[0].float())
        assert change == "set" or torch.equal(first.grad, wanted[1].float())


def test_methods_with_another_order_than_their_functions(csr):
    mask, other, dense = torch.rand(SHAPE) > 0.5, torch.randn(SHAPE), csr.stored_dense()
    with sp.set_dispatch_failure("silent"):
        assert torch.equal(csr.where(mask, other), dense.where(mask, other))
        assert torch.equal(torch.where(mask, csr, other), torch.where(mask, dense, other))
        assert torch.equal((csr + 1).polygamma(1), (dense + 1).polygamma(1))


def test_a_clone_has_its_own_values_and_passes_gradients(csr):
    other = csr.clone()
    other.detach().zero_()
    assert csr.stored_dense().any() and not other.stored_dense().any()
    grad = torch.randn(SHAPE)
    other.backward(grad)
    assert torch.equal(csr.grad, grad)
    assert csr.detach().wrapped_tensor is csr.wrapped_tensor and not csr.detach().requires_grad


@pytest.mark.parametrize("layout", LAYOUTS, ids=IDS)
def test_types_and_copies(layout):
    x = packed(layout, torch.randn(SHAPE), mask_for(layout, SHAPE))
    for dtype in (torch.float64, torch.float16):
        other = x.to(dtype)
        assert other.dtype == dtype and type(other.wrapped_tensor) is layout.storage
        assert other.wrapped_tensor.values.dtype == dtype and x.dtype == torch.float32
        torch.testing.assert_close(other.stored_dense(), x.stored_dense().to(dtype))
    assert x.to(torch.float32) is x
    parameter = sp.SparseParameterWrapper(x)
    twin = copy.deepcopy(parameter)
    twin.detach().zero_()
    assert parameter.stored_dense().any() and isinstance(twin, sp.SparseParameterWrapper) and twin.requires_grad
    module = torch.nn.Module()
    module.weight = parameter
    assert [name for name, _ in module.named_parameters()] == ["weight"]
    module.double()
    assert module.weight.dtype == torch.float64 and isinstance(module.weight, sp.SparseParameterWrapper)
    assert torch.ones_like(x.to(torch.float16)).dtype == torch.float16 and not isinstance(torch.ones_like(x), sp.PackedTensor)


@pytest.mark.parametrize("layout", LAYOUTS, ids=IDS)
def test_a_saved_tensor_is_loaded_safely(layout):
    parameter = sp.PackedParameter(packed(layout, torch.randn(SHAPE), mask_for(layout, SHAPE)))
    file = io.BytesIO()
    torch.save(parameter, file)
    file.seek(0)
    loaded = torch.load(file, weights_only=True)
    assert isinstance(loaded, sp.PackedParameter) and type(loaded.wrapped_tensor) is layout.storage
    assert torch.equal(loaded.stored_dense(), parameter.stored_dense())


@pytest.mark.parametrize("layout", LAYOUTS, ids=IDS)
def test_a_packed_model_is_exported_and_compiled(layout):
    model = sp.pack(torch.nn.Linear(6, 4), {"weight": (layout, mask_for(layout, SHAPE))})
    x = torch.randn(3, 6)
    with sp.set_dispatch_failure("raise"):
        program = torch.export.export(model, (x,), strict=False)
        assert [spec.target for spec in program.graph_signature.input_specs] == ["weight", "bias", None]
        torch.testing.assert_close(program.module()(x), model(x))
        torch._dynamo.reset()
        torch.testing.assert_close(torch.compile(model, backend="eager")(x), model(x))
    dense = torch.export.export(model.requires_grad_(False), (x,), strict=False).run_decompositions()
    torch.testing.assert_close(dense.module()(x), model(x))


def test_what_is_no_storage_is_refused():
    with pytest.raises(SparsityError, match="`int` is no format: it has no method `to_dense`") as error:
        sp.PackedTensor.wrapped_from_dense(3, torch.ones(2))
    assert "to_dense(self)" in error.value.hint
    with pytest.raises(SparsityError, match="a Tensor is no packed tensor"):
        sp.PackedParameter(torch.ones(2))


class Halves:
    """A storage of a user, which holds half of each entry."""

    def __init__(self, half):
        self.half = half

    def to_dense(self):
        return self.half * 2


def test_a_storage_of_a_user_needs_only_to_dense():
    dense = torch.randn(SHAPE)
    x = sp.PackedTensor.wrapped_from_dense(Halves(dense / 2), dense).requires_grad_()
    with pytest.warns(sp.DispatchWarning, match=r"\(Halves\)"):
        x.cos().sum().backward()
    assert type(x.grad) is torch.Tensor
    with pytest.raises(DispatchError, match=r"`sp\.SameFormatSparsifier` has no implementation from `torch\.Tensor` to `Halves`"):
        x.detach().add_(1)
    sp.register_sparsifier_implementation(sp.SameFormatSparsifier, torch.Tensor, Halves)(
        lambda sparsifier, tensor: Halves(tensor / 2)
    )
    y = x.detach()
    y.add_(1)
    torch.testing.assert_close(x.stored_dense(), dense + 1)
    with pytest.raises(SparsityError, match="stored as `Halves` cannot be traced"):
        x.__tensor_flatten__()
