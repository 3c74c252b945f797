"""Layers whose result is cut into columns: one layer for each part, equal to PyTorch, without a slice."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from fuseflow.einsum.interpret import evaluate
from fuseflow.frontend import import_model
from fuseflow.frontend.imported_program import Source


def checked(module: nn.Module, *inputs: Tensor) -> Source:
    imported = import_model(module.eval(), inputs)
    results = evaluate(imported.program, {name: t.to_dense() for name, t in imported.tensors.items()})
    for name, expected in imported.expected.items():
        np.testing.assert_allclose(results[name], expected, rtol=2e-5, atol=2e-6, err_msg=name)
    return imported


class Cut(nn.Module):
    def __init__(self, cut: Callable[[Tensor], tuple[Tensor, ...]], bias: bool = True) -> None:
        super().__init__()
        self.cut, self.qkv = cut, nn.Linear(4, 9, bias=bias)

    def forward(self, x: Tensor) -> list[Tensor]:
        return [part * 2 for part in self.cut(self.qkv(x))]


CUTS: dict[str, Callable[[Tensor], tuple[Tensor, ...]]] = {
    "split": lambda y: y.split(3, dim=-1),
    "uneven split": lambda y: y.split([2, 3, 4], -1),
    "a last part that is smaller": lambda y: y.split(4, -1),
    "chunk": lambda y: y.chunk(3, dim=-1),
    "slices": lambda y: (y[..., :2], y[..., 2:-1], y[..., -1:]),
    "behind a reshape": lambda y: y.reshape(5, 2, 9).split(3, dim=-1),
    "some parts": lambda y: y.chunk(3, -1)[1:],
}


@pytest.mark.parametrize("case", CUTS)
def test_every_part_is_a_layer(case: str) -> None:
    for bias in (True, False):
        module = Cut(CUTS[case], bias)
        imported = checked(module, torch.randn(2, 5, 4))
        assert "x" in imported.tensors and not any("slice" in e.name for e in imported.program.einsums)
        part = imported.tensors["qkv.weight.part"]  # rows of the weight: not copied
        assert part.values.ctypes.data - module.qkv.weight.data_ptr() in range(9 * 4 * 4)
    assert "`slice` is evaluated by PyTorch before import" in imported.notices[0]


def test_products_of_parameters() -> None:
    class Conv1D(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight, self.bias = nn.Parameter(torch.randn(4, 6)), nn.Parameter(torch.randn(6))

        def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
            a, b = torch.addmm(self.bias, x, self.weight).view(5, 6).split(3, 1)
            c, d = torch.mm(x, self.weight).chunk(2, 1)
            return a * c, b * d

    checked(Conv1D(), torch.randn(5, 4))


@pytest.mark.parametrize(
    "cut",
    [
        lambda y: y.split(3, dim=0),  # rows, not columns
        lambda y: (y[..., ::2],),
        lambda y: torch.relu(y).split(3, -1),
        lambda y: y.reshape(2, 5, 3, 3).split(1, -1),
    ],
)
def test_other_cuts_are_slices_of_the_result(cut: Callable[[Tensor], tuple[Tensor, ...]]) -> None:
    assert not any("part" in name for name in checked(Cut(cut).eval(), torch.randn(2, 5, 4)).tensors)


def test_gpt2_of_a_library() -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.GPT2Config(
        vocab_size=50, n_positions=16, n_embd=8, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0, attn_implementation="eager"
    )

    class Logits(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(0)
            self.gpt = transformers.GPT2LMHeadModel(config)

        def forward(self, tokens: Tensor) -> Tensor:
            return self.gpt(tokens, use_cache=False).logits

    imported = checked(Logits(), torch.randint(0, 50, (1, 8), generator=torch.Generator().manual_seed(0)))
    said = "\n".join(imported.notices)
    assert "`embedding`" in said and "`gpt.transformer.wte`" in said and "c_attn.weight.part" in said
