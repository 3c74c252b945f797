"""Slices, concatenations and other movements of data mean what they mean in PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given, settings
from sources import compiled_at
from torch import Tensor
from torch.nn import functional as F

from fuseflow.frontend import import_model

X = torch.randn(6, 4, generator=torch.Generator().manual_seed(2))


def ran(function: Callable[[Tensor], Tensor | tuple[Tensor, ...]], x: Tensor = X, fuse: Sequence[str] = ("full",)) -> None:
    """Compile a function at each granularity, run it, and compare its outputs with PyTorch."""
    for compiled in compiled_at(function, (x,), *fuse):
        result = compiled.run()
        assert result.check is not None and result.check.passed, compiled.schedule


FUNCTIONS: dict[str, Callable[[Tensor], Tensor | tuple[Tensor, ...]]] = {
    "select": lambda x: (x * 2)[3] + x[:, 1].sum(),
    "the last": lambda x: (x * 2)[-1],
    "slice": lambda x: x[1:5, :2] * 2,
    "slice with a step": lambda x: (x @ torch.ones(4, 7))[::2, 1::3],
    "rows and columns": lambda x: (x * 2)[torch.tensor([[4], [0]]), torch.tensor([3, 1, 1])],
    "columns and rows": lambda x: (x * 2)[torch.tensor([4, 0]), torch.tensor([[3], [1], [1]])],
    "narrow": lambda x: (x * 2).narrow(0, 2, 3),
    "split": lambda x: tuple(part * 2 for part in (x * 3).split(2)),
    "split in sizes": lambda x: tuple(part * 2 for part in (x * 3).split([1, 3], 1)),
    "chunk": lambda x: tuple(part * 2 for part in (x * 3).chunk(3, -1)),
    "unbind": lambda x: tuple(part * 2 for part in (x * 3).unbind(1)),
    "cat": lambda x: torch.cat([x * 2, x[:2], x * 3]),
    "cat of columns": lambda x: torch.cat([x, x @ torch.ones(4, 3)], dim=-1) * 2,
    "stack": lambda x: torch.stack([x, x * 2], 1).sum(0),
    "roll": lambda x: torch.roll(x * 2, (1, -2), (0, 1)),
    "flip": lambda x: (x * 2).flip(0, 1),
    "repeat": lambda x: (x * 2).repeat(2, 3),
    "repeat of a new dimension": lambda x: (x * 2).repeat(3, 1, 1),
    "tile": lambda x: torch.tile(x * 2, (2,)),
    "repeat_interleave": lambda x: (x * 2).repeat_interleave(2, 0),
    "repeat_interleave by counts": lambda x: (x * 2).repeat_interleave(torch.tensor([0, 1, 2, 0, 1, 3]), 0),
    "zeros around": lambda x: F.pad(x * 2, (1, 2, 0, 1)),
    "a mirror": lambda x: F.pad((x * 2)[None], (2, 1), mode="reflect")[0],
    "a circle": lambda x: F.pad((x * 2)[None], (2, 1), mode="circular")[0],
    "less than all": lambda x: F.pad(x * 2, (-1, 0)),
    "rotary": lambda x: torch.cat((-x[:, 2:], x[:, :2]), -1) * x,
}


@pytest.mark.parametrize("case", FUNCTIONS)
def test_what_pytorch_computes(case: str) -> None:
    ran(FUNCTIONS[case], fuse=("none", "full"))


def test_higher_ranks() -> None:
    def heads(x: Tensor) -> Tensor:
        y = (x @ torch.ones(4, 8)).view(1, 6, 2, 4).transpose(1, 2)
        return torch.cat((y[..., 2:], y[..., :2]), -1) * y

    ran(heads)


@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_random_slices_and_their_concatenation(data: st.DataObject) -> None:
    dim = data.draw(st.integers(0, 1))
    bounds = st.integers(-7, 7) | st.none()
    slices = [
        slice(data.draw(bounds), data.draw(bounds), data.draw(st.integers(1, 3))) for _ in range(data.draw(st.integers(1, 3)))
    ]
    parts = [len(range(X.shape[dim])[s]) for s in slices]
    if not all(parts):
        return

    def function(x: Tensor) -> Tensor:
        y = x * 2
        return torch.cat([y[s] if dim == 0 else y[:, s] for s in slices], dim) + 1

    ran(function)


def test_a_view_that_is_written_to() -> None:
    def write(x: Tensor) -> Tensor:
        y = x * 2
        y[:, 0].mul_(3)
        return y + 1

    ran(write)


def test_causal_attention_with_shared_heads() -> None:
    def attention(x: Tensor) -> Tensor:
        q = (x @ torch.ones(4, 8)).view(6, 4, 2).transpose(0, 1)
        k = (x * 0.5).view(6, 2, 2).transpose(0, 1)
        return F.scaled_dot_product_attention(q[None], k[None], k[None], is_causal=True, enable_gqa=True)[0]

    ran(attention, fuse=("none", "full"))
    mask = import_model(attention, (X,)).tensors["causal"]
    assert mask.format.short() == "csr" and mask.stored == 21  # of 36


Q = torch.randn(1, 2, 6, 4, generator=torch.Generator().manual_seed(3))
NEAR = (torch.arange(6)[:, None] - torch.arange(6)).abs() <= 1


def attended(mask: Tensor) -> Callable[[Tensor], Tensor]:
    return lambda q: F.scaled_dot_product_attention(q, q * 0.5, q + 1, attn_mask=mask)


@pytest.mark.parametrize(
    ("mask", "format", "stored"),
    [
        (NEAR, "csr", 16),
        (NEAR & (torch.arange(6) != 2)[:, None], "csr", 13),
        (~NEAR & (torch.arange(6) != 2)[:, None], "csr", 17),  # a row without a place is 0
        (NEAR[None, None].expand(1, 2, 6, 6) & torch.tensor([True, False])[:, None, None] | NEAR.logical_not().tril(), None, 36),
        (~NEAR, "dense", 36),
    ],
)
def test_a_known_mask_of_attention_is_stored_where_it_is_true(mask: Tensor, format: str | None, stored: int) -> None:
    ran(attended(mask), Q, ("none", "full"))
    (stored_mask,) = (t for name, t in import_model(attended(mask), (Q,)).tensors.items() if name != "q")
    assert stored_mask.stored == stored
    assert format is None or stored_mask.format.short() == format


def test_a_mask_that_follows_from_an_input_is_stored_where_it_is_true() -> None:
    def packed(q: Tensor, document: Tensor) -> Tensor:
        mask = (document[:, None] == document).tril()
        return F.scaled_dot_product_attention(q, q, q, attn_mask=mask)

    for document in ([0, 0, 1, 1, 1, 2], [0, 1, 1, 2, 2, 2]):
        inputs = (Q, torch.tensor(document))
        assert all(compiled.run().check.passed for compiled in compiled_at(packed, inputs, "none", "full"))
        (mask,) = (t for name, t in import_model(packed, inputs).tensors.items() if name != "q")
        assert mask.format.short() == "csr" and mask.stored == 10
