"""Attention whose mask is a function, a boolean matrix that is mostly false, or a choice by scores."""

from __future__ import annotations

from functools import partial

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.attention.experimental._paged_attention import PagedAttention
from torch.nn.attention.flex_attention import and_masks, create_block_mask, flex_attention, or_masks
from zoo_registry import Brought, zoo

HEADS, TOKENS, HEAD, BLOCK = 2, 32, 8, 8
model = partial(zoo.model, "dynamic")


def heads(tokens: int = TOKENS, count: int = HEADS) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    q, k, v = torch.randn(3, 1, count, tokens, HEAD)
    return q, k, v


def causal(b, h, q_idx, kv_idx):
    return q_idx >= kv_idx


def block_mask(mask_mod, tokens: int = TOKENS):
    return create_block_mask(mask_mod, None, None, tokens, tokens, device="cpu", BLOCK_SIZE=BLOCK)


class Flex(nn.Module):
    """FlexAttention with a mask of blocks, which is made once, and a change of the scores."""

    def __init__(self, mask, score_mod=None, **options) -> None:
        super().__init__()
        self.mask, self.score_mod, self.options = mask, score_mod, options

    def forward(self, q, k, v):
        return flex_attention(q, k, v, score_mod=self.score_mod, block_mask=self.mask, **self.options)


@model(fast=True)
def flex_sliding_window() -> Brought:
    def window(b, h, q_idx, kv_idx):
        return q_idx - kv_idx <= 6

    return Flex(block_mask(and_masks(causal, window))), heads()


@model()
def flex_documents() -> Brought:
    document = torch.repeat_interleave(torch.arange(4), torch.tensor([5, 11, 8, 8]))

    def same_document(b, h, q_idx, kv_idx):
        return document[q_idx] == document[kv_idx]

    return Flex(block_mask(and_masks(causal, same_document))), heads()


@model()
def flex_prefix() -> Brought:
    def prefix(b, h, q_idx, kv_idx):
        return kv_idx < 10

    return Flex(block_mask(or_masks(prefix, causal))), heads()


@model()
def flex_alibi() -> Brought:
    slopes = torch.exp2(-(torch.arange(HEADS) + 1) * 8.0 / HEADS)

    def alibi(score, b, h, q_idx, kv_idx):
        return score + slopes[h] * (kv_idx - q_idx)

    return Flex(block_mask(causal), alibi), heads()


@model()
def flex_soft_cap_grouped() -> Brought:
    def soft_cap(score, b, h, q_idx, kv_idx):
        return 20 * torch.tanh(score / 20)

    q, _, _ = heads(count=4)
    _, k, v = heads()
    return Flex(block_mask(causal), soft_cap, enable_gqa=True), (q, k, v)


@model()
def flex_paged() -> Brought:
    """A cache of keys and values in pages, two sequences of different lengths, in an order that the page table tells."""
    lengths = torch.tensor([32, 20])
    pages = PagedAttention(n_pages=8, page_size=BLOCK, max_batch_size=2, device="cpu")
    for length in (8, 20, 32):
        for sequence in (0, 1):
            pages.reserve(torch.tensor([sequence]), torch.minimum(torch.tensor([length]), lengths[sequence]))
    logical = create_block_mask(causal, 2, None, TOKENS, TOKENS, device="cpu", BLOCK_SIZE=BLOCK)
    mask = pages.convert_logical_block_mask(logical, kv_len=lengths)
    q, k, v = torch.randn(3, 2, HEADS, TOKENS, HEAD)
    caches = torch.zeros(2, 1, HEADS, 8 * BLOCK, HEAD)
    for sequence, length in enumerate(lengths.tolist()):
        rows, positions = slice(sequence, sequence + 1), torch.arange(length)[None]
        pages.assign(torch.tensor([sequence]), positions, k[rows, :, :length], v[rows, :, :length], *caches)

    class Paged(nn.Module):
        def forward(self, q, k_cache, v_cache):
            k_cache, v_cache = k_cache.expand(2, -1, -1, -1), v_cache.expand(2, -1, -1, -1)
            return flex_attention(q, k_cache, v_cache, block_mask=mask)

    return Paged(), (q, *caches)


@model()
def attention_sliding_window() -> Brought:
    class Window(nn.Module):
        def __init__(self, window: int = 8) -> None:
            super().__init__()
            i = torch.arange(TOKENS)
            distance = i[:, None] - i[None, :]
            self.register_buffer("mask", (distance >= 0) & (distance < window))

        def forward(self, q, k, v):
            return F.scaled_dot_product_attention(q, k, v, attn_mask=self.mask)

    return Window(), heads()


@model()
def attention_packed_documents() -> Brought:
    class Packed(nn.Module):
        """Several documents in one row. The mask follows from the positions, which begin again with each."""

        def __init__(self) -> None:
            super().__init__()
            self.qkv, self.out = nn.Linear(16, 48, bias=False), nn.Linear(16, 16, bias=False)

        def forward(self, x, position_ids):
            document = torch.cumsum((position_ids == 0).to(torch.int64), dim=-1)
            mask = (document[:, None, :, None] == document[:, None, None, :]).tril()
            q, k, v = self.qkv(x).view(1, TOKENS, 3, HEADS, HEAD).permute(2, 0, 3, 1, 4)
            out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
            return self.out(out.transpose(1, 2).reshape(1, TOKENS, 16))

    positions = torch.cat([torch.arange(n) for n in (6, 15, 11)])[None]
    return Packed(), (torch.randn(1, TOKENS, 16), positions)


@model()
def attention_indexed_keys() -> Brought:
    class Indexed(nn.Module):
        """A light indexer scores all keys, and each query attends to the best ones only, as in DeepSeek sparse attention."""

        def __init__(self, kept: int = 4, index_heads: int = 8) -> None:
            super().__init__()
            self.kept, self.index_heads = kept, index_heads
            self.qkv, self.out = nn.Linear(16, 48, bias=False), nn.Linear(16, 16, bias=False)
            self.index_q, self.index_k = nn.Linear(16, 4 * index_heads, bias=False), nn.Linear(16, 4, bias=False)
            self.index_weights = nn.Linear(16, index_heads, bias=False)

        def forward(self, x):
            q, k, v = self.qkv(x).view(1, TOKENS, 3, HEADS, HEAD).permute(2, 0, 3, 1, 4)
            index_q = self.index_q(x).view(1, TOKENS, self.index_heads, 4)
            agreement = F.relu(torch.einsum("bqhd,bkd->bqhk", index_q, self.index_k(x)))
            future = torch.full((TOKENS, TOKENS), float("-inf")).triu(1)
            scores = torch.einsum("bqh,bqhk->bqk", self.index_weights(x), agreement) + future
            chosen = scores.topk(self.kept, dim=-1).indices
            mask = torch.full_like(scores, float("-inf")).scatter_(-1, chosen, 0.0) + future
            out = F.softmax(q @ k.transpose(-1, -2) * HEAD**-0.5 + mask.unsqueeze(1), dim=-1) @ v
            return self.out(out.transpose(1, 2).reshape(1, TOKENS, 16))

    return Indexed(), (torch.randn(1, TOKENS, 16),)


@model()
def attention_best_blocks() -> Brought:
    class Blocks(nn.Module):
        """Each query attends to the blocks whose mean key fits it best, and to its own one, as in mixtures of block attention."""

        def __init__(self, kept: int = 2) -> None:
            super().__init__()
            self.kept = kept

        def forward(self, q, k, v):
            means = k.view(1, HEADS, TOKENS // BLOCK, BLOCK, HEAD).mean(dim=3)
            gate = torch.einsum("bhqd,bhnd->bhqn", q, means)
            own = torch.arange(TOKENS) // BLOCK
            number = torch.arange(TOKENS // BLOCK)
            gate = gate.masked_fill(number[None, :] > own[:, None], float("-inf"))
            gate = gate.masked_fill(number[None, :] == own[:, None], float("inf"))
            best, chosen = gate.topk(self.kept, dim=-1)
            blocks = torch.zeros_like(gate, dtype=torch.bool).scatter(-1, chosen, best > float("-inf"))
            mask = blocks.repeat_interleave(BLOCK, dim=-1) & torch.ones(TOKENS, TOKENS, dtype=torch.bool).tril()
            return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)

    return Blocks(), heads()


@model()
def attention_jagged() -> Brought:
    class Jagged(nn.Module):
        """Self attention over sequences of different lengths, in a nested tensor that has no padding."""

        def __init__(self) -> None:
            super().__init__()
            self.q_proj, self.k_proj, self.v_proj, self.out = (nn.Linear(16, 16) for _ in range(4))

        def forward(self, values, offsets):
            x = torch.nested.nested_tensor_from_jagged(values, offsets)
            projections = (self.q_proj, self.k_proj, self.v_proj)
            q, k, v = (projection(x).unflatten(-1, (HEADS, HEAD)).transpose(1, 2) for projection in projections)
            out = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(-2)
            return self.out(out).values()

    offsets = torch.tensor([0, 5, 14, 17])
    return Jagged(), (torch.randn(17, 16), offsets)
