"""Nested tensors of values and offsets give what they give in PyTorch."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from eager import drawn, matches
from torch import Tensor, nn

from fuseflow.errors import FrontendError
from fuseflow.frontend import import_model


def nested(values: Tensor, offsets: Tensor) -> Tensor:
    return torch.nested.nested_tensor_from_jagged(values, offsets)


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v, self.out = (nn.Linear(16, 16) for _ in range(4))
        self.norm = nn.LayerNorm(16)

    def forward(self, values: Tensor, offsets: Tensor) -> Tensor:
        x = nested(values, offsets)
        q, k, v = (part(self.norm(x)).unflatten(-1, (2, 8)).transpose(1, 2) for part in (self.q, self.k, self.v))
        attended = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(-2)
        return (x + F.gelu(self.out(attended)) * 2).values()


@pytest.mark.parametrize("offsets", [(0, 5, 9, 12), (0, 1, 12), (0, 12), (0, 4, 4, 12)])
def test_attention_inside_of_sequences(offsets: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    matches(Attention(), (drawn(12, 16), torch.tensor(offsets)), cuts=("none", "full"))


def test_the_mask_of_the_sequences_is_stored_where_it_is_true() -> None:
    tensors = import_model(Attention(), (drawn(12, 16), torch.tensor([0, 5, 9, 12]))).tensors
    assert [tensor.stored for tensor in tensors.values() if tensor.shape == (12, 12)] == [25 + 16 + 9]


REFUSED: dict[str, tuple[Callable[..., object], tuple[int, ...], str]] = {
    "a nested output": (nested, (0, 5, 12), "returns a nested tensor"),
    "offsets that fall": (lambda x, o: nested(x, o).values(), (0, 7, 5, 12), "do not rise"),
    "offsets that end early": (lambda x, o: nested(x, o).values(), (0, 5, 11), "do not rise"),
    "another operator": (lambda x, o: torch.cumsum(nested(x, o), -1).values(), (0, 5, 12), "`cumsum`"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_form_is_refused_in_the_words_of_the_user(name: str) -> None:
    model, offsets, words = REFUSED[name]
    with pytest.raises(FrontendError, match=words):
        import_model(model, (drawn(12, 8), torch.tensor(offsets)))
