"""FlexAttention gives at every cut what it gives in PyTorch, from a mask in the blocks of its BlockMask."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from eager import Function, drawn, matches
from sources import compiled_at
from torch import Tensor
from torch.nn.attention.flex_attention import AuxRequest, BlockMask, create_block_mask, create_mask, flex_attention
from torch.utils.flop_counter import FlopCounterMode

import fuseflow as ff
from fuseflow.errors import FrontendError
from fuseflow.frontend import import_model

TOKENS, BLOCK = 32, 8
Q, K, V = (drawn(1, 2, TOKENS, width) for width in (8, 8, 8))
K, V = K.roll(1, -1), V.roll(2, -1)
TABLE, SLOPES = drawn(TOKENS, TOKENS), drawn(2)
NAN = float("nan")


def causal(b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
    return i >= j


def blocks(mask: Callable[..., Tensor], queries: int = TOKENS, block: int = BLOCK, heads: int | None = None) -> Any:
    return create_block_mask(mask, None, heads, queries, TOKENS, device="cpu", BLOCK_SIZE=block)


def attention(score: Callable[..., Tensor] | None = None, mask: Callable[..., Tensor] | None = causal, **options: Any) -> Any:
    made = None if mask is None else blocks(mask)
    return lambda q, k, v: flex_attention(q, k, v, score_mod=score, block_mask=made, **options)


MODELS: dict[str, Callable[..., Any]] = {
    "no mask": attention(mask=None),
    "a window": attention(mask=lambda b, h, i, j: (i >= j) & (i - j < 6)),
    "rows without a place": attention(mask=lambda b, h, i, j: (i >= j) & (i != 5) & (i // BLOCK != 2)),
    "keys alone": attention(mask=lambda b, h, i, j: j < 7),
    "a table of places": attention(mask=lambda b, h, i, j: TABLE[i][j] > 0),
    "a score that is a mask": attention(lambda s, b, h, i, j: torch.where((i >= j) & (i != 3), s, -float("inf")), None),
    "a slope for each head": attention(lambda s, b, h, i, j: s + SLOPES[h] * (i - j)),
    "a bias of two places": attention(lambda s, b, h, i, j: s + TABLE[i, j]),
    "a bias of one place after the other": attention(lambda s, b, h, i, j: s + TABLE[j][i]),
    "a soft cap": attention(lambda s, b, h, i, j: 20 * torch.tanh(s / 20)),
    "a scale": attention(scale=0.5),
    "the logarithm of a sum": attention(return_lse=True),
    "the same by its new name": attention(return_aux=AuxRequest(lse=True)),
}


def listed(mask: Callable[..., Tensor] | None, full: bool) -> Any:
    """A mask that lists the blocks of the diagonal, and of the second row of blocks also the first."""
    counts = torch.tensor([[[1, 2, 1, 1]]], dtype=torch.int32)
    indices = torch.tensor([[[[0, 1, 2, 3], [1, 0, 2, 3], [2, 0, 1, 3], [3, 0, 1, 2]]]], dtype=torch.int32)
    lists = (torch.zeros_like(counts), indices, counts, indices) if full else (counts, indices)
    return BlockMask.from_kv_blocks(*lists, BLOCK_SIZE=BLOCK, mask_mod=mask)


@pytest.mark.parametrize(("mask", "full"), [(None, False), (causal, False), (None, True), (causal, True)])
def test_a_place_counts_in_a_block_that_the_mask_lists(mask: Callable[..., Tensor] | None, full: bool) -> None:
    """The compiled function computes the listed blocks alone. The eager one, which the result is compared with, ignores the lists."""
    made = listed(mask, full)
    places = torch.zeros(4, 4)
    places[[0, 1, 1, 2, 3], [0, 1, 0, 2, 3]] = 1
    stored = torch.kron(places, torch.ones(BLOCK, BLOCK)).bool()
    if mask is not None:
        stored &= torch.ones(TOKENS, TOKENS).tril().bool()
    expected = torch.nn.functional.scaled_dot_product_attention(Q, K, V, attn_mask=stored)
    run = ff.compile(lambda q, k, v: flex_attention(q, k, v, block_mask=made), (Q, K, V)).run()
    assert run.check is not None and run.check.passed
    torch.testing.assert_close(torch.from_numpy(next(iter(run.outputs.values()))).reshape(expected.shape), expected)


@pytest.mark.parametrize("name", MODELS)
def test_a_model_gives_what_pytorch_gives(name: str) -> None:
    matches(MODELS[name], (Q, K, V))


def test_the_mask_is_stored_in_its_blocks() -> None:
    source = import_model(MODELS["a window"], (Q, K, V))
    assert source.program.declared["mask"].block == (BLOCK, BLOCK)
    assert source.tensors["mask"].stored == 7 * BLOCK**2  # the blocks of the diagonal, and left of it


def test_work_is_done_in_the_blocks_alone() -> None:
    tokens, width, block = 256, 32, 16
    made = create_block_mask(
        lambda b, h, i, j: (i >= j) & (i - j < 32), None, None, tokens, tokens, device="cpu", BLOCK_SIZE=block
    )
    inputs = tuple(torch.randn(3, 1, 1, tokens, width, generator=torch.Generator().manual_seed(1)))
    blocks_with_a_place = int(made.to_dense().sum())
    assert blocks_with_a_place == 45  # three of a row of 16
    for compiled in compiled_at(lambda q, k, v: flex_attention(q, k, v, block_mask=made), inputs, "none", "best", "full"):
        result = compiled.run()
        assert result.check.passed
        assert result.stats["flops"] <= 1.1 * blocks_with_a_place * 4 * block * block * width


def test_blocks_that_do_not_divide_the_length_are_rows() -> None:
    made = blocks(causal, block=12)

    def model(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return flex_attention(q, k, v, block_mask=made)

    matches(model, (Q, K, V))
    source = import_model(model, (Q, K, V))
    assert (source.program.declared["mask"].block, source.tensors["mask"].stored) == ((), TOKENS * (TOKENS + 1) // 2)


def test_a_mask_of_each_head_is_stored_in_rows() -> None:
    made = blocks(lambda b, h, i, j: (i >= j) & (i - j <= 4 * h), heads=2)

    def model(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return flex_attention(q, k, v, block_mask=made)

    matches(model, (Q, K, V))
    assert import_model(model, (Q, K, V)).tensors["mask"].stored == int(
        create_mask(made.mask_mod, 1, 2, TOKENS, TOKENS, "cpu").sum()
    )


def test_one_query_and_shared_heads() -> None:
    made = blocks(lambda b, h, i, j: j < 9, queries=1)
    matches(lambda q, k, v: flex_attention(q, k, v, block_mask=made, enable_gqa=True), (Q[:, :, :1], K[:, :1], V[:, :1]))


@pytest.mark.parametrize("lengths", [(5, 11, 16), (20, 12)])
def test_a_mask_made_in_the_model_of_an_input(lengths: tuple[int, ...]) -> None:
    def model(q: Tensor, k: Tensor, v: Tensor, document: Tensor) -> Tensor:
        return flex_attention(q, k, v, block_mask=blocks(lambda b, h, i, j: (document[i] == document[j]) & (i >= j)))

    document = torch.arange(len(lengths)).repeat_interleave(torch.tensor(lengths))
    matches(model, (Q, K, V, document))
    assert import_model(model, (Q, K, V, document)).program.declared["mask"].block == (BLOCK, BLOCK)


def test_a_mask_of_data_and_a_bias_of_data_are_computed_in_the_program() -> None:
    def model(q: Tensor, k: Tensor, v: Tensor, kept: Tensor, table: Tensor) -> Tensor:
        made = blocks(lambda b, h, i, j: (kept[j] > 0) & (i >= j))
        return flex_attention(q, k, v, lambda s, b, h, i, j: s + table[i, j], made)

    for kept, table in ((drawn(TOKENS), TABLE), (-drawn(TOKENS), TABLE + 1)):
        matches(model, (Q, K, V, kept, table))
    source = import_model(model, (Q, K, V, drawn(TOKENS), TABLE))
    assert {"kept", "table"} <= source.tensors.keys()
    assert source.program == import_model(model, (Q, K, V, -drawn(TOKENS), TABLE)).program


def test_a_compiled_function_and_an_exported_program() -> None:
    made, fast = blocks(causal), torch.compile(flex_attention)
    inputs = (Q, K, V)
    exported = torch.export.export(Function(MODELS["a slope for each head"]), inputs)
    for model in (Function(lambda q, k, v: fast(q, k, v, block_mask=made)), exported):
        assert all(compiled.run().check.passed for compiled in compiled_at(model, inputs, "none", "full"))


def test_a_counter_that_fails_on_it_breaks_no_later_import() -> None:
    with pytest.raises(TypeError), FlopCounterMode(display=False):
        MODELS["a soft cap"](Q, K, V)
    try:
        assert import_model(MODELS["a soft cap"], (Q, K, V)).expected
    finally:
        torch._dynamo.reset()


def test_a_mask_of_another_length_is_the_error_of_pytorch() -> None:
    made = create_block_mask(causal, None, None, 48, 48, device="cpu", BLOCK_SIZE=BLOCK)
    with pytest.raises(FrontendError, match=r"block_mask was created for .*48, 48.* q_len=32") as caught:
        import_model(lambda q, k, v: flex_attention(q, k, v, block_mask=made), (Q, K, V))
    assert caught.value.span is not None and "test_flex_attention" in str(caught.value.span)


def test_a_nan_stays_one() -> None:
    q = Q.clone()
    q[0, 0, 4, 0] = NAN
    matches(MODELS["a window"], (q, K, V))
