"""Attention and transformer layers of plain PyTorch, as `torch.nn` ships them and as users write them."""

from __future__ import annotations

import math
from functools import partial

import torch
import torch.nn.functional as F
from plain_layers import TOKENS, WIDTH, Call, tokens
from torch import nn
from zoo_registry import Brought, zoo

HEADS = 4
model = partial(zoo.model, "plain")


def heads() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Queries, keys and values of one sequence, with the heads apart."""
    q, k, v = torch.randn(3, 1, HEADS, TOKENS, 4)
    return q, k, v


class SelfAttention(nn.Module):
    """Self attention as nanoGPT writes it: one projection for all three, split, heads apart, a causal mask."""

    def __init__(self) -> None:
        super().__init__()
        self.c_attn = nn.Linear(WIDTH, 3 * WIDTH)
        self.c_proj = nn.Linear(WIDTH, WIDTH)
        self.register_buffer("bias", torch.tril(torch.ones(TOKENS, TOKENS)).view(1, 1, TOKENS, TOKENS))

    def forward(self, x):
        B, T, C = x.size()
        q, k, v = self.c_attn(x).split(WIDTH, dim=2)
        k = k.view(B, T, HEADS, C // HEADS).transpose(1, 2)
        q = q.view(B, T, HEADS, C // HEADS).transpose(1, 2)
        v = v.view(B, T, HEADS, C // HEADS).transpose(1, 2)
        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        att = att.masked_fill(self.bias[:, :, :T, :T] == 0, float("-inf"))
        y = F.softmax(att, dim=-1) @ v
        return self.c_proj(y.transpose(1, 2).contiguous().view(B, T, C))


@model(fast=True)
def transformer_encoder_layer() -> Brought:
    return nn.TransformerEncoderLayer(WIDTH, HEADS, 32, batch_first=True), (tokens(),)


@model()
def transformer_encoder_layer_norm_first() -> Brought:
    return nn.TransformerEncoderLayer(WIDTH, HEADS, 32, activation="gelu", batch_first=True, norm_first=True), (tokens(),)


@model()
def transformer_encoder_masked() -> Brought:
    layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 32, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    return encoder, (tokens(),), {"mask": nn.Transformer.generate_square_subsequent_mask(TOKENS)}


@model()
def transformer_decoder_layer() -> Brought:
    return nn.TransformerDecoderLayer(WIDTH, HEADS, 32, batch_first=True), (tokens(), tokens())


@model()
def transformer() -> Brought:
    return nn.Transformer(WIDTH, HEADS, 1, 1, 32, batch_first=True), (tokens(), tokens())


@model()
def multihead_attention() -> Brought:
    x = tokens()
    return nn.MultiheadAttention(WIDTH, HEADS, batch_first=True), (x, x, x)


@model()
def multihead_attention_without_weights() -> Brought:
    x = tokens()
    return nn.MultiheadAttention(WIDTH, HEADS, batch_first=True), (x, x, x), {"need_weights": False}


@model(fast=True)
def nano_gpt_attention() -> Brought:
    return SelfAttention(), (tokens(),)


@model()
def attention() -> Brought:
    return Call(F.scaled_dot_product_attention), heads()


@model()
def attention_with_mask() -> Brought:
    mask = torch.ones(TOKENS, TOKENS, dtype=torch.bool).tril()
    return Call(F.scaled_dot_product_attention), (*heads(), mask)


@model()
def attention_causal() -> Brought:
    return Call(F.scaled_dot_product_attention, is_causal=True), heads()


@model()
def attention_grouped() -> Brought:
    q, k, v = heads()
    return Call(F.scaled_dot_product_attention, enable_gqa=True), (q, k[:, :2].clone(), v[:, :2].clone())


@model()
def attention_local_window() -> Brought:
    class Window(nn.Module):
        def forward(self, q, k, v):
            i = torch.arange(q.shape[-2])
            mask = (i[:, None] - i[None, :]).abs() <= 1
            scores = (q @ k.transpose(-1, -2)).masked_fill(~mask, float("-inf"))
            return scores.softmax(-1) @ v

    return Window(), heads()


@model()
def attention_linear() -> Brought:
    class Linear(nn.Module):
        def forward(self, q, k, v):
            q, k = F.elu(q) + 1, F.elu(k) + 1
            kv = torch.einsum("bhtd,bhte->bhde", k, v)
            return torch.einsum("bhtd,bhde->bhte", q, kv) / torch.einsum("bhtd,bhd->bht", q, k.sum(2)).unsqueeze(-1)

    return Linear(), heads()


@model()
def attention_top_k() -> Brought:
    class TopK(nn.Module):
        def forward(self, q, k, v):
            scores = q @ k.transpose(-1, -2)
            least = scores.topk(3, dim=-1).values[..., -1:]
            return scores.masked_fill(scores < least, float("-inf")).softmax(-1) @ v

    return TopK(), heads()


@model()
def rotary_embedding() -> Brought:
    class Rotary(nn.Module):
        def forward(self, x):
            half = x.shape[-1] // 2
            angles = torch.arange(x.shape[-2])[:, None] * 10000 ** (-torch.arange(half) / half)
            cos, sin = torch.cat([angles, angles], -1).cos(), torch.cat([angles, angles], -1).sin()
            rotated = torch.cat([-x[..., half:], x[..., :half]], dim=-1)
            return x * cos + rotated * sin

    return Rotary(), (tokens(),)
