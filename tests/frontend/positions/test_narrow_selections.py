"""Gathers, scatters and grouped products of 16-bit floats: PyTorch computes the same at every cut, within their rounding."""

from collections.abc import Callable

import pytest
import torch
from eager import drawn, matches
from torch import Tensor, nn
from torch.nn import functional as F

ROWS, TO = torch.tensor([3, 1, 0, 2]), torch.tensor([0, 2, 2, 1])
X = drawn(4, 8)

CASES: dict[str, tuple[Callable[..., Tensor], Tensor]] = {
    "rows": (lambda h: h[ROWS] * 2, X),
    "columns": (lambda h: torch.relu(h.index_select(1, torch.tensor([5, 2, 2]))), X),
    "gather": (lambda h: torch.gather(h, 0, ROWS[:, None].expand(4, 8)) + 1, X),
    "embedding": (lambda w: F.embedding(torch.tensor([[0, 3], [3, 1]]), w) * 2, drawn(5, 4)),
    "index_add": (lambda h: torch.zeros(3, 8, dtype=h.dtype).index_add(0, TO, h), X),
    "messages": (lambda h: torch.zeros(3, 8, dtype=h.dtype).index_add(0, TO, h[ROWS] * 0.5), X),
    "index_put": (lambda h: torch.zeros(6, 8, dtype=h.dtype).index_put((ROWS,), h), X),
    "largest": (
        lambda h: torch.zeros(3, 8, dtype=h.dtype).scatter_reduce(0, TO[:, None].expand(4, 8), h, "amax", include_self=False),
        X,
    ),
    "products of pairs": (lambda h: (h[ROWS] * h[TO]).sum(-1), X),
    "cumsum": (lambda h: h.cumsum(1), drawn(2, 3)),
    "repeated": (lambda h: h.repeat_interleave(2, 0) * 2, X),
    "reflected": (lambda h: F.pad(h, (1, 1), mode="reflect") * 2, drawn(1, 4, 8)),
    "enlarged": (lambda h: F.interpolate(h, scale_factor=2, mode="nearest"), drawn(1, 2, 3, 3)),
    "pooled": (lambda h: F.adaptive_avg_pool2d(h, 2), drawn(1, 2, 3, 3)),
}


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", CASES)
def test_elements_at_known_positions(name: str, dtype: torch.dtype) -> None:
    function, x = CASES[name]
    matches(function, (x.to(dtype),), tolerance=2e-2)


class Experts(nn.Module):
    """A product of each group with its own matrix. `ends` says where groups end."""

    def __init__(self, ends: list[int]) -> None:
        super().__init__()
        self.register_buffer("ends", torch.tensor(ends, dtype=torch.int32))

    def forward(self, x: Tensor, weights: Tensor) -> Tensor:
        return torch._grouped_mm(x, weights, offs=self.ends)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
@pytest.mark.parametrize("ends", [[8, 16, 24], [3, 16, 24], [0, 16, 24]])
def test_rows_of_groups(ends: list[int], dtype: torch.dtype) -> None:
    matches(Experts(ends), (drawn(24, 16).to(dtype), drawn(3, 16, 8).to(dtype)), ("none", "full"), 2e-2)


@pytest.mark.parametrize(("left", "right"), [((8, 24), (24, 16)), ((3, 8, 16), (16, 24))])
def test_columns_of_groups(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    matches(Experts([8, 16, 24]), (drawn(*left).bfloat16(), drawn(*right).bfloat16()), ("none", "full"), 2e-2)


def test_a_group_for_each_matrix() -> None:
    matches(torch._grouped_mm, (drawn(3, 8, 16).bfloat16(), drawn(3, 16, 8).bfloat16()), ("none", "full"), 2e-2)


def test_groups_that_are_data() -> None:
    def routed(x: Tensor, weights: Tensor, sizes: Tensor) -> Tensor:
        return torch._grouped_mm(x, weights, offs=(sizes * 1.0).cumsum(0).int())

    matches(routed, (drawn(24, 16).bfloat16(), drawn(3, 16, 8).bfloat16(), torch.tensor([8, 0, 16])), ("none", "full"), 2e-2)


def test_a_grouped_convolution() -> None:
    matches(nn.Conv2d(4, 4, 3, groups=2, padding=1).bfloat16(), (drawn(1, 4, 4, 4).bfloat16(),), ("none", "full"), 2e-2)
