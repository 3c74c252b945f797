"""Products of n:m:g matrices of real sizes against masked dense ones. The public kernel is off by 168 on 768 x 768."""

import dataclasses

import pytest
import torch
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode

import fuseflow.sparsity as sp

SMALL = [(50, 37, "nmg:2:4:2"), (96, 200, "nmg:3:6:1"), (64, 90, "nmg:1:10:4")]
CASES = [(768, 768, "nmg:2:4:4"), (768, 3072, "nmg:2:4:4"), *SMALL]
BATCHES = [(1,), (7,), (64,), (2, 3), (0,)]


def masked(rows: int, columns: int, rule: str) -> tuple[torch.Tensor, sp.PackedTensor]:
    """Return a masked dense matrix, and the same one packed."""
    generator = torch.Generator().manual_seed(0)
    weight = torch.randn(rows, columns, generator=generator) / columns**0.5
    sparsifier = sp.parse_sparsifier(f"{rule}:method=greedy")
    mask = sparsifier.select(weight)
    storage = sparsifier.layout.pack(weight, mask)
    return weight * mask, sp.PackedTensor.wrapped_from_dense(storage, weight)


@pytest.mark.parametrize(
    ("case", "strided", "bias"),
    [
        (case, strided, bias)
        for case in CASES
        for strided in (False, True)
        for bias in (False, True)
        if case in SMALL or strided == bias
    ],
    ids=str,
)
def test_linear_and_its_gradients_are_those_of_the_masked_matrix(case, strided, bias):
    pair = masked(*case)
    dense, weight = pair[0].clone().requires_grad_(), pair[1].detach().requires_grad_()
    torch.manual_seed(0)
    with sp.set_dispatch_failure("raise"):
        for batch in BATCHES:
            x = torch.randn(*batch, 2 * dense.shape[1])[..., ::2] if strided else torch.randn(*batch, dense.shape[1])
            b = torch.randn(dense.shape[0]) if bias else None
            ours, theirs = ([t.detach().clone().requires_grad_() for t in (x, b) if t is not None] for _ in range(2))
            got, expected = functional.linear(ours[0], weight, *ours[1:]), functional.linear(theirs[0], dense, *theirs[1:])
            grad = torch.randn_like(expected) / dense.shape[0] ** 0.5
            torch.testing.assert_close(got, expected, atol=1e-4, rtol=1e-4)
            weight.grad = dense.grad = None
            got.backward(grad)
            expected.backward(grad)
            for mine, other in zip(ours, theirs, strict=True):
                torch.testing.assert_close(mine.grad, other.grad, atol=1e-4, rtol=1e-4)
            kept = pair[0] != 0
            torch.testing.assert_close(weight.grad.stored_dense()[kept], dense.grad[kept], atol=1e-4, rtol=1e-4)


def test_a_weight_needs_its_values_and_sixteen_bits_a_column():
    storage = masked(768, 3072, "nmg:2:4:4")[1].wrapped_tensor
    tensors = [t for f in dataclasses.fields(storage) if isinstance(t := getattr(storage, f.name), torch.Tensor)]
    held = sum(t.numel() * t.element_size() for t in tensors)
    stored = 768 * 3072 // 2 * 4 + 768 // 4 * 3072 * 2
    assert stored == 5_898_240
    assert stored <= held <= 1.1 * stored


def test_a_product_never_makes_the_matrix_dense():
    dense, weight = masked(768, 768, "nmg:1:10:4")
    created = []

    class Sizes(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            result = func(*args, **(kwargs or {}))
            leaves = torch.utils._pytree.tree_leaves(result)
            created.extend(t.numel() for t in leaves if type(t) is torch.Tensor and t.layout is torch.strided)
            return result

    x = torch.randn(16, 768)
    with Sizes():
        functional.linear(x, weight)
    assert max(created) < dense.numel() // 4
    with Sizes(), sp.set_dispatch_failure("silent"):
        torch.cos(weight)
    assert max(created) >= dense.numel()  # The check can fail.


def test_coordinates_say_where_values_stand():
    dense, weight = masked(50, 37, "nmg:2:4:2")
    storage = weight.wrapped_tensor
    rows, columns = (c.expand(storage.values.shape) for c in storage.coordinates())
    inside = (rows < 50) & (columns < 37)
    assert torch.equal(dense[rows[inside], columns[inside]], storage.values[inside])
    assert (storage.values[~inside] == 0).all()
    assert int(inside.sum()) == len({*zip(rows[inside].tolist(), columns[inside].tolist(), strict=True)})
