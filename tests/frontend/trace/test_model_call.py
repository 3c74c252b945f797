"""Calls of a model: all of them take the same way through it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import fuseflow as ff

PADDING = torch.tensor([[False] * 4, [False] * 2 + [True] * 2])
MASK = torch.ones(4, 4, dtype=torch.bool).triu(1)


class Encoder(nn.Module):
    """The case `padded_encoder`: without gradients, PyTorch's fast path writes 0 at padded rows."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 4, batch_first=True), 1)

    def forward(self, h: torch.Tensor, padding: torch.Tensor) -> torch.Tensor:
        return self.encoder(h, src_key_padding_mask=padding)


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(4, 1, 4, batch_first=True, norm_first=True)

    def forward(self, h: torch.Tensor, padding: torch.Tensor) -> torch.Tensor:
        return self.layer(h, src_key_padding_mask=padding)


class CausalEncoder(Encoder):
    def forward(self, h: torch.Tensor, padding: torch.Tensor) -> torch.Tensor:
        return self.encoder(h, mask=MASK, src_key_padding_mask=padding)


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(4, 2, batch_first=True)

    def forward(self, h: torch.Tensor, padding: torch.Tensor) -> torch.Tensor:
        return self.attention(h, h, h, key_padding_mask=padding, need_weights=False)[0]


def in_eval(kind: type[nn.Module]) -> nn.Module:
    torch.manual_seed(0)
    return kind().eval()


@pytest.mark.parametrize("kind", [Encoder, Layer, CausalEncoder, Attention])
def test_the_reference_of_a_transformer_takes_the_way_that_is_compiled(kind: type[nn.Module]):
    model, h = in_eval(kind), torch.randn(2, 4, 4)
    compiled = ff.compile(model, inputs=(h, PADDING), machine="ideal")
    with torch.enable_grad():  # which the fast path is not for
        want = model(h, PADDING).detach().numpy()
    assert compiled.source.expected is not None
    (found,) = compiled.source.expected.values()
    np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-6)
    assert torch.backends.mha.get_fastpath_enabled()
    assert compiled.run().check.passed


def test_the_fast_path_is_what_it_was_where_a_model_fails():
    def broken(x: torch.Tensor) -> torch.Tensor:
        raise ValueError

    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with pytest.raises(ff.FuseFlowError):
            ff.compile(broken, inputs=(torch.ones(2),))
        assert not torch.backends.mha.get_fastpath_enabled()
    finally:
        torch.backends.mha.set_fastpath_enabled(True)
