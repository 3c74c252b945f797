"""Look-ups and calls: what is registered is found by the formats of each call, and what it does wrong is said."""

from __future__ import annotations

import threading

import pytest
import torch
import torch.nn.functional as F
from packed_layouts import mask_for, packed
from registrations import forgotten

import fuseflow.sparsity as sp
from fuseflow.errors import DispatchError, SparsityError

SHAPE = (4, 6)


class Own:
    """A storage of a user."""

    def __init__(self, data):
        self.data = data

    def to_dense(self):
        return self.data


class OwnSparsifier:
    """A sparsifier of a user, which says nothing of how it selects."""


@pytest.fixture(autouse=True)
def registry():
    """What tests register is forgotten."""
    with forgotten():
        yield


def own(dense: torch.Tensor, requires_grad: bool = False) -> sp.PackedTensor:
    return sp.PackedTensor.wrapped_from_dense(Own(dense), dense).requires_grad_(requires_grad)


def test_one_operator_is_dispatched_anew_at_each_call():
    calls = []

    @sp.register_fwd_op_impl(torch.cos, [sp.CsrTensor], [(sp.KeepAll, torch.Tensor)])
    def _(ctx, inputs, output_sparsifiers):
        calls.append("csr")
        return inputs[0].wrapped_tensor.to_dense().cos()

    operator = sp.sparsified_op(torch.cos, None, None)
    dense, mask = torch.randn(SHAPE), mask_for(sp.CSR(), SHAPE)
    csr, coo = packed(sp.CSR(), dense, mask), packed(sp.COO(), dense, mask)
    expected = (dense * mask).cos()
    for tensor in (csr, dense * mask, csr, coo, dense * mask):
        with sp.set_dispatch_failure("silent"):
            torch.testing.assert_close(operator(tensor), expected)
    assert calls == ["csr", "csr"]


def test_methods_functions_and_signs_are_one_operator():
    names = []

    @sp.register_fwd_op_impl(torch.sub, [Own, torch.Tensor])
    def _(ctx, inputs, output_sparsifiers):
        names.append(ctx.call.arguments["alpha"])
        return inputs[0].wrapped_tensor.data - ctx.call.arguments["alpha"] * inputs[1]

    x, y = own(torch.ones(2)), torch.ones(2)
    for result in (x - y, x.sub(y), torch.sub(x, y), torch.sub(input=x, other=y), torch.sub(other=y, input=x)):
        assert not result.any()
    assert torch.equal(torch.sub(x, y, alpha=3), torch.full((2,), -2.0))
    assert names == [1, 1, 1, 1, 1, 3]


def test_an_implementation_that_ignores_an_argument_is_an_error():
    sp.register_fwd_op_impl(torch.sub, [Own, torch.Tensor])(lambda ctx, inputs, s: inputs[0].wrapped_tensor.data - inputs[1])
    x, y = own(torch.ones(2)), torch.ones(2)
    assert not (x - y).any()
    with pytest.raises(DispatchError, match=r"the implementation of `torch\.sub` does not read `alpha`, which is 2") as error:
        torch.sub(x, y, alpha=2)
    assert 'ctx.call.arguments["alpha"]' in error.value.hint


def test_tensors_come_in_the_order_of_the_signature_and_lists_are_written_out():
    @sp.register_fwd_op_impl(F.linear, [torch.Tensor, Own, torch.Tensor, None])
    def _(ctx, inputs, output_sparsifiers):
        x, weight, bias = inputs
        return F.linear(x, weight.wrapped_tensor.data, bias)

    @sp.register_fwd_op_impl(torch.cat, [Own, torch.Tensor, Own])
    def _(ctx, inputs, output_sparsifiers):
        first, second, third = inputs
        return torch.cat([first.wrapped_tensor.data, second, third.wrapped_tensor.data], ctx.call.arguments["dim"])

    x, w, b = torch.randn(2, 3), torch.randn(4, 3), torch.randn(4)
    with sp.set_dispatch_failure("raise"):
        torch.testing.assert_close(F.linear(bias=b, weight=own(w), input=x), F.linear(x, w, b))
        torch.testing.assert_close(torch.cat([own(w), w, own(w)], dim=1), torch.cat([w, w, w], dim=1))


def test_the_shortest_row_of_conversions_is_taken():
    trace = []

    def convert(source, target, name):
        @sp.register_conversion(source, target)
        def _(storage):
            trace.append(name)
            return target(storage.data)

    class Near(Own):
        pass

    class Far(Own):
        pass

    class Rare(Own):
        pass

    convert(Rare, Near, "rare to near")
    convert(Near, Far, "near to far")

    def implement(cls):
        @sp.register_fwd_op_impl(torch.exp, [cls])
        def _(ctx, inputs, output_sparsifiers):
            trace.append(cls.__name__)
            return inputs[0].stored_dense().exp()

    implement(Far)
    implement(Near)
    x = sp.PackedTensor.wrapped_from_dense(Rare(torch.ones(2)), torch.ones(2))
    with sp.set_dispatch_failure("raise"):
        torch.testing.assert_close(torch.exp(x), torch.ones(2).exp())
        assert trace == ["rare to near", "Near"]
        implement(Rare)
        torch.exp(x)
        assert trace[2:] == ["Rare"]


def test_what_declines_leaves_the_call_to_the_next():
    sp.register_fwd_op_impl(torch.exp, [Own])(lambda ctx, inputs, s: NotImplemented)
    with pytest.warns(sp.DispatchWarning):
        assert torch.equal(torch.exp(own(torch.zeros(2))), torch.ones(2))


def test_a_registration_replaces_another():
    for value in (1.0, 2.0):
        sp.register_fwd_op_impl(torch.exp, [Own])(lambda ctx, inputs, s, value=value: torch.full((2,), value))
    assert torch.exp(own(torch.zeros(2)))[0] == 2


def test_a_missing_gradient_is_named_with_a_stub_that_is_a_program():
    sp.register_fwd_op_impl(torch.exp, [Own])(lambda ctx, inputs, s: inputs[0].stored_dense().exp())
    result = torch.exp(own(torch.zeros(2), requires_grad=True))
    with pytest.raises(DispatchError, match=r"the gradient of `torch\.exp` is not registered for \(Own\)") as error:
        result.sum().backward()
    stub = error.value.message.partition("To add one:")[2]
    exec(stub, {"sp": sp, "torch": torch, "Own": Own})
    result = torch.exp(own(torch.zeros(2), requires_grad=True))
    with pytest.raises(NotImplementedError):
        result.sum().backward()


def test_the_stub_of_a_warning_is_a_program_that_takes_the_call():
    with pytest.warns(sp.DispatchWarning) as warnings:
        torch.addmm(own(torch.ones(2, 2)), torch.ones(2, 2), packed(sp.CSR(), torch.eye(2), torch.eye(2, dtype=torch.bool)))
    stub = str(warnings[0].message).partition("To add one:")[2]
    exec(stub, {"sp": sp, "torch": torch, "Own": Own})
    with pytest.raises(NotImplementedError):
        torch.addmm(own(torch.ones(2, 2)), torch.ones(2, 2), packed(sp.CSR(), torch.eye(2), torch.eye(2, dtype=torch.bool)))


def test_wrong_results_are_named():
    three = [(sp.KeepAll, torch.Tensor), (sp.KeepAll, torch.Tensor), (sp.KeepAll, sp.CsrTensor)]
    sp.register_fwd_op_impl(torch.exp, [Own], three)(lambda ctx, inputs, sparsifiers: torch.ones(2))
    with pytest.raises(DispatchError, match=r"the implementation of `torch\.exp` returned 1 result, and not 3"):
        torch.exp(own(torch.zeros(2)))
    sp.register_fwd_op_impl(torch.cos, [Own], [(sp.KeepAll, sp.CsrTensor)])(lambda ctx, i, s: torch.ones(2))
    with pytest.raises(DispatchError, match=r"returned a `torch\.Tensor`, and not a `sp\.CsrTensor`"):
        torch.cos(own(torch.zeros(2)))
    sp.register_fwd_op_impl(torch.sin, [Own])(lambda ctx, i, s: i[0].stored_dense().sin())
    sp.register_bwd_op_impl(torch.sin, [torch.Tensor], [(sp.KeepAll, torch.Tensor)], [Own])(lambda ctx, g, s: (g[0], g[0]))
    with pytest.raises(DispatchError, match=r"the gradient of `torch\.sin` returned 2 values for 1 tensor"):
        torch.sin(own(torch.zeros(2), requires_grad=True)).sum().backward()
    operator = sp.sparsified_op(torch.std_mean, [(sp.KeepAll(), torch.Tensor, sp.KeepAll(), sp.CooTensor)], None)
    with pytest.raises(DispatchError, match=r"`torch\.std_mean` returned 2 results, and not 1"):
        operator(torch.randn(3))


def test_the_mode_holds_for_a_block_and_a_thread():
    x, modes = own(torch.zeros(2)), []
    with sp.set_dispatch_failure("raise"):
        with sp.set_dispatch_failure("silent"):
            torch.exp(x)
        with pytest.raises(DispatchError):
            torch.exp(x)

        def other():
            with pytest.warns(sp.DispatchWarning):
                torch.exp(x)
            modes.append("warn")

        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert modes == ["warn"]
    with pytest.warns(sp.DispatchWarning):
        torch.exp(x)


def test_what_makes_no_sense_is_refused():
    with pytest.raises(SparsityError, match="there is no mode `rase` of dispatch") as error:
        sp.set_dispatch_failure("rase")
    assert "did you mean `raise`?" in error.value.hint
    with pytest.raises(SparsityError, match="`int` is no format: it has no method `to_dense`"):
        sp.register_fwd_op_impl(torch.exp, [int])
    with pytest.raises(SparsityError, match="has 4 parts, and not 2"):
        sp.sparsified_op(torch.exp, [(sp.KeepAll(), torch.Tensor)], None)
    dense = (sp.KeepAll(), torch.Tensor, sp.KeepAll(), torch.Tensor)
    with pytest.raises(SparsityError, match="`out_fmt` is for 1 results, and `grad_out_fmt` for 2"):
        sp.sparsified_op(torch.exp, [dense], [dense, dense])


SPARSIFIERS = {
    "keepall": sp.KeepAll(),
    "random": sp.RandomFraction(0.5, seed=1),
    "magnitude": sp.Magnitude(0.5),
    "threshold": sp.Threshold(0.5),
}
FORMATS = [
    sp.CsrTensor,
    sp.CSR,
    sp.CSR(),
    sp.CSC,
    sp.COO,
    sp.ELL,
    sp.BCSR((2, 3)),
    sp.DenseTensor,
    sp.MaskedSparseTensor,
    torch.Tensor,
]


@pytest.mark.parametrize("sparsifier", SPARSIFIERS)
@pytest.mark.parametrize("format", FORMATS, ids=str)
def test_every_sparsifier_stores_in_every_layout(sparsifier, format):
    rule, dense = SPARSIFIERS[sparsifier], torch.randn(SHAPE, requires_grad=True)
    dense_format = (sp.KeepAll(), torch.Tensor, sp.KeepAll(), torch.Tensor)
    for place in (0, 2):
        parts = [sp.KeepAll(), torch.Tensor, sp.KeepAll(), format]
        parts[place] = rule
        if place == 0:
            parts[1] = format
        with sp.set_dispatch_failure("raise"):
            result = sp.sparsified_op(torch.add, [tuple(parts)], [dense_format])(dense, dense)
        expected = 2 * dense.detach() * rule.select(2 * dense.detach())
        got = result.stored_dense() if isinstance(result, sp.PackedTensor) else result.detach()
        torch.testing.assert_close(got, expected)
        dense.grad = None
        result.backward(torch.ones(SHAPE))
        torch.testing.assert_close(dense.grad, torch.full(SHAPE, 2.0))


def test_n_of_m_takes_the_layout_of_its_sparsifier_and_others_must_say_theirs():
    dense = torch.randn(SHAPE)
    operator = sp.sparsified_op(torch.abs, [(sp.KeepAll(), torch.Tensor, sp.NM(2, 4), sp.NMTensor)], None)
    torch.testing.assert_close(operator(dense).stored_dense(), dense.abs() * sp.NM(2, 4).select(dense))
    operator = sp.sparsified_op(torch.abs, [(sp.KeepAll(), torch.Tensor, sp.Magnitude(0.5), sp.BCSR)], None)
    with pytest.raises(
        DispatchError, match=r"cannot store a tensor as `sp\.BcsrTensor`, which has parameters \(block\)"
    ) as error:
        operator(dense)
    assert "sp.BCSR(...)" in error.value.hint


def test_a_sparsifier_of_a_user_says_what_it_lacks():
    operator = sp.sparsified_op(torch.abs, [(sp.KeepAll(), torch.Tensor, OwnSparsifier(), Own)], None)
    with pytest.raises(
        DispatchError, match=r"(?s)no implementation from `torch\.Tensor` to `Own`.*register_sparsifier_implementation"
    ):
        operator(torch.randn(2))
    sp.register_sparsifier_implementation(OwnSparsifier, torch.Tensor, Own)(lambda sparsifier, tensor, grad_fmt=None: Own(tensor))
    assert isinstance(operator(torch.randn(2)).wrapped_tensor, Own)


def test_a_gradient_of_another_format_than_was_said_is_treated():
    formats = (
        [(sp.KeepAll(), torch.Tensor, sp.Magnitude(0.5), sp.CsrTensor)],
        [(sp.KeepAll(), torch.Tensor, sp.KeepAll(), torch.Tensor)],
    )
    x = torch.randn(SHAPE, requires_grad=True)
    result = torch.abs(sp.sparsified_op(torch.abs, *formats)(x))
    result.backward(torch.randn(SHAPE))
    assert x.grad.shape == SHAPE


def test_a_gradient_through_two_packed_operators_keeps_float16():
    weight = packed(sp.CSR(), torch.randn(SHAPE).half(), mask_for(sp.CSR(), SHAPE), requires_grad=True)
    with sp.set_dispatch_failure("raise"):
        result = F.linear(torch.randn(2, 6).half(), torch.relu(weight))
        result.sum().backward()
    assert result.dtype == torch.float16 and weight.grad.dtype == torch.float16 and isinstance(weight.grad, sp.PackedTensor)


def exp_forward(ctx, inputs, output_sparsifiers):
    ctx.save_for_backward(inputs[0])
    return inputs[0].stored_dense().exp()


def test_a_gradient_without_formats_is_for_all_that_have_none_of_their_own():
    seen = []

    def gradient(name):
        def backward(ctx, grad_outputs, input_sparsifiers):
            seen.append(name)
            return grad_outputs[0] * ctx.saved_tensors[0].stored_dense().exp()

        return backward

    sp.register_fwd_op_impl(torch.exp, [Own])(exp_forward)
    sp.register_bwd_op_impl(torch.exp, grad_out=[torch.Tensor], grad_inp=[(sp.KeepAll, torch.Tensor)])(gradient("any"))
    x = own(torch.zeros(2), requires_grad=True)
    torch.exp(x).backward(torch.tensor([2.0, 3.0]))
    assert seen == ["any"] and torch.equal(x.grad, torch.tensor([2.0, 3.0]))
    sp.register_bwd_op_impl(torch.exp, [torch.Tensor], [(sp.KeepAll, torch.Tensor)], inp=[Own])(gradient("own"))
    torch.exp(x).sum().backward()
    assert seen == ["any", "own"]


@pytest.mark.parametrize("given", [{}, {"grad_out": None, "grad_inp": None, "inp": None}, {"grad_out": [torch.Tensor]}], ids=str)
def test_formats_that_are_not_said_are_dense(given):
    sp.register_fwd_op_impl(operator=torch.exp, inp=(Own,), out=None)(exp_forward)
    sp.register_bwd_op_impl(operator=torch.exp, **given)(
        lambda ctx, grads, s: grads[0] * ctx.saved_tensors[0].stored_dense().exp()
    )
    x = own(torch.zeros(2), requires_grad=True)
    torch.exp(x).sum().backward()
    assert torch.equal(x.grad, torch.ones(2))


def test_a_function_of_the_user_has_no_built_in_gradient():
    """That would read what the built-in function saves."""
    matrix = sp.torch_tensor_to_csr(sp.KeepAll(), torch.eye(3)).requires_grad_()

    @sp.register_fwd_op_impl(torch.nn.functional.linear, [torch.Tensor, sp.CsrTensor, torch.Tensor])
    def linear(ctx, inputs, output_sparsifiers):
        ctx.save_for_backward(*inputs)
        return torch.nn.functional.linear(inputs[0], inputs[1].stored_dense(), inputs[2])

    x, bias = torch.randn(2, 3), torch.zeros(3, requires_grad=True)
    with pytest.raises(DispatchError, match=r"the gradient of `torch\.nn\.functional\.linear` is not registered"):
        torch.nn.functional.linear(x, matrix, bias).sum().backward()

    @sp.register_bwd_op_impl(torch.nn.functional.linear, [torch.Tensor], [(sp.KeepAll, torch.Tensor)] * 3)
    def linear_backward(ctx, grad_outputs, input_sparsifiers):
        inputs, weight, _ = ctx.saved_tensors
        return grad_outputs[0] @ weight.stored_dense(), grad_outputs[0].T @ inputs, grad_outputs[0].sum(0)

    torch.nn.functional.linear(x, matrix, bias).sum().backward()
    assert torch.equal(bias.grad, torch.full((3,), 2.0))
    torch.testing.assert_close(matrix.grad.stored_dense(), torch.diag(x.sum(0)))  # at the places of the matrix


def test_numbers_one_by_one_have_the_name_of_the_list():
    seen = []
    sp.register_fwd_op_impl(torch.permute, [Own])(
        lambda ctx, inputs, s: seen.append(ctx.call.arguments["dims"]) or inputs[0].stored_dense().T
    )
    x = own(torch.randn(2, 3))
    x.permute(1, 0), x.permute((1, 0)), torch.permute(x, (1, 0))
    assert seen == [(1, 0)] * 3
