"""The operator that marks where a computed tensor becomes sparse: its text, its numbers, and what PyTorch asks of an operator."""

import pytest
import torch

import fuseflow.sparsity as sp
from fuseflow.errors import SparsityError
from fuseflow.sparsity.keep_operator import format_text, keep, keep_gradient, masked, parse_format
from fuseflow.sparsity.spec import OutputFormat

THRESHOLD = "keepall|dense|threshold:0.5|dense"
FORMATS = [
    OutputFormat(),
    OutputFormat(sp.Magnitude(0.9), sp.COO(), sp.Threshold(0.05), sp.CSR()),
    OutputFormat(sp.NM(2, 4, dim=0), sp.NMLayout(2, 4, dim=0), sp.RandomFraction(0.5, seed=3), sp.BCSR((4, 2))),
    OutputFormat(layout=sp.Masked()),
]


@pytest.mark.parametrize("format", FORMATS, ids=format_text)
def test_a_format_is_read_from_its_text(format):
    assert parse_format(format_text(format)) == format


@pytest.mark.parametrize("text", ["", "dense", "keepall|dense|keepall", "keepall|dense|keepall|dense|dense"])
def test_another_text_is_no_format(text):
    with pytest.raises(SparsityError, match="is no output format") as error:
        parse_format(text)
    assert error.value.hint == "it is INLINE|TMP|EXTERNAL|LAYOUT"


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("kepall|dense|keepall|dense", "no sparsifier `kepall`", "did you mean `keepall`?"),
        ("keepall|dens|keepall|dense", "no layout `dens`", "did you mean `dense`?"),
    ],
)
def test_a_part_that_is_unknown_is_named(text, message, hint):
    with pytest.raises(SparsityError) as error:
        keep(torch.ones(2), text, "")
    assert message in error.value.message and error.value.hint == hint


def test_what_a_rule_does_not_keep_is_zero_whatever_it_was():
    x = torch.tensor([0.1, -0.5, 2.0, -0.0, float("inf")])
    assert keep(x, THRESHOLD, "").tolist() == [0, -0.5, 2, 0, float("inf")]
    nothing = keep(torch.tensor([float("nan"), float("inf")]), "magnitude:1.0|dense|keepall|dense", "")
    assert nothing.tolist() == [0, 0]


def test_a_tensor_itself_stays():
    x = torch.tensor([0.1, 0.5])
    result = keep(x, "keepall|dense|keepall|dense", "")
    result += 1
    assert x.tolist() == pytest.approx([0.1, 0.5])


def test_a_gradient_that_is_not_finite_ends_where_nothing_is_kept():
    x = torch.tensor([0.1, 2.0], requires_grad=True)
    keep(x, THRESHOLD, "").backward(torch.tensor([float("nan"), 3.0]))
    assert x.grad.tolist() == [0, 3]


def test_a_gradient_has_a_gradient():
    x, outer = torch.tensor([0.1, 2.0], requires_grad=True), torch.tensor([3.0, 4.0], requires_grad=True)
    (gradient,) = torch.autograd.grad(keep(x, THRESHOLD, ""), x, outer, create_graph=True)
    gradient.backward(torch.tensor([5.0, 6.0]))
    assert gradient.tolist() == [0, 4] and outer.grad.tolist() == [0, 6]


INPUTS = {
    "matrix": torch.randn(4, 6),
    "transposed": torch.randn(4, 6).T,
    "steps": torch.randn(4, 6)[:, ::2],
    "single": torch.tensor(0.7),
    "empty": torch.zeros(0, 3),
    "double": torch.randn(3, 2, 2, dtype=torch.float64),
}


@pytest.mark.parametrize("x", INPUTS.values(), ids=INPUTS)
@pytest.mark.parametrize("grad_rule", ["", "magnitude:0.5|dense|keepall|dense"])
def test_pytorch_finds_no_fault_in_the_operator(x, grad_rule):
    torch.library.opcheck(keep, (x.clone().requires_grad_(), THRESHOLD, grad_rule))


@pytest.mark.parametrize("x", INPUTS.values(), ids=INPUTS)
def test_pytorch_finds_no_fault_in_the_operator_of_the_gradient(x):
    torch.library.opcheck(keep_gradient, (x.clone().requires_grad_(), torch.rand(x.shape, dtype=x.dtype), THRESHOLD))


@pytest.mark.parametrize("x", INPUTS.values(), ids=INPUTS)
def test_pytorch_finds_no_fault_in_the_product_with_a_mask(x):
    torch.library.opcheck(masked, (x.clone().requires_grad_(), (x > 0).to(x.dtype).contiguous()))


def test_a_product_with_a_mask_has_the_mask_in_its_gradient():
    x, mask = torch.tensor([1.0, 2.0, 3.0], requires_grad=True), torch.tensor([1.0, 0.0, 1.0])
    result = masked(x, mask)
    result.backward(torch.tensor([5.0, 6.0, 7.0]))
    assert result.tolist() == [1, 0, 3] and x.grad.tolist() == [5, 0, 7]
