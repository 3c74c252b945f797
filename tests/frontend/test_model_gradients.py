"""Gradients of models of libraries, beside those of PyTorch. `tools/zoo.py --gradients` compares those of the zoo."""

from __future__ import annotations

import pytest
import torch
from gradient_checks import difference, verdict
from torch import nn

TOKENS = torch.randn(2, 5, 8, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("norm_first", [False, True])
def test_a_layer_of_a_transformer(norm_first: bool) -> None:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 12, dropout=0.0, batch_first=True, norm_first=norm_first)
    assert verdict(layer, (TOKENS,), target=TOKENS.flip(0)) == ("right", "")


def test_heads_of_embedded_tokens() -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.GPT2Config(vocab_size=20, n_positions=8, n_embd=8, n_layer=1, n_head=2, bos_token_id=0, eos_token_id=0)
    torch.manual_seed(0)
    model = transformers.GPT2Model(config).eval()
    assert verdict(model, (torch.tensor([[3, 1, 4, 1, 5]]),)) == ("right", "")


def test_a_wrong_and_a_missing_gradient_are_found() -> None:
    expected = {"weight": torch.tensor([1.0, 2.0])}
    assert not difference({"weight": expected["weight"].numpy()}, expected)
    assert "is off by 1" in difference({"weight": torch.tensor([1.0, 3.0]).numpy()}, expected)
    assert difference({}, expected).startswith("gradients of []")
