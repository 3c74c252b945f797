"""Mixtures of experts: blocks of Hugging Face, unmodified, and routing as training libraries and papers write it."""

from __future__ import annotations

from functools import partial

import torch
import torch.nn.functional as F
from torch import nn
from transformers.models.deepseek_v3 import modeling_deepseek_v3 as deepseek_v3
from transformers.models.gpt_oss import modeling_gpt_oss as gpt_oss
from transformers.models.mixtral import modeling_mixtral as mixtral
from transformers.models.olmoe import modeling_olmoe as olmoe
from transformers.models.qwen3_moe import modeling_qwen3_moe as qwen3_moe
from zoo_registry import Brought, zoo

TOKENS, WIDTH, INNER, EXPERTS, CHOSEN = 12, 16, 24, 8, 2
model = partial(zoo.model, "dynamic")


def tokens() -> torch.Tensor:
    return torch.randn(1, TOKENS, WIDTH)


def drawn(module: nn.Module) -> nn.Module:
    """A module whose weights, which its class leaves empty, are drawn."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.normal_(std=0.3)
    return module


def swiglu_weights() -> nn.ParameterList:
    shapes = (EXPERTS, WIDTH, INNER), (EXPERTS, WIDTH, INNER), (EXPERTS, INNER, WIDTH)
    return nn.ParameterList(0.3 * torch.randn(shape) for shape in shapes)


@model()
def mixtral_block() -> Brought:
    config = mixtral.MixtralConfig(
        hidden_size=WIDTH, intermediate_size=INNER, num_local_experts=EXPERTS, num_experts_per_tok=CHOSEN
    )
    return drawn(mixtral.MixtralSparseMoeBlock(config)), (tokens(),)


@model()
def olmoe_block_batched() -> Brought:
    config = olmoe.OlmoeConfig(hidden_size=WIDTH, intermediate_size=INNER, num_experts=16, num_experts_per_tok=4)
    config._experts_implementation = "batched_mm"
    return drawn(olmoe.OlmoeSparseMoeBlock(config)), (tokens(),)


@model()
def qwen3_moe_block_grouped() -> Brought:
    config = qwen3_moe.Qwen3MoeConfig(
        hidden_size=WIDTH, moe_intermediate_size=INNER, num_experts=16, num_experts_per_tok=4, norm_topk_prob=True
    )
    config._experts_implementation = "grouped_mm"
    return drawn(qwen3_moe.Qwen3MoeSparseMoeBlock(config)), (tokens(),)


@model()
def deepseek_v3_block() -> Brought:
    config = deepseek_v3.DeepseekV3Config(
        hidden_size=WIDTH,
        moe_intermediate_size=INNER,
        n_routed_experts=16,
        n_shared_experts=1,
        n_group=4,
        topk_group=2,
        num_experts_per_tok=4,
    )
    config._experts_implementation = "grouped_mm"
    return drawn(deepseek_v3.DeepseekV3MoE(config)), (tokens(),)


@model()
def gpt_oss_block() -> Brought:
    config = gpt_oss.GptOssConfig(
        hidden_size=WIDTH, intermediate_size=INNER, num_local_experts=EXPERTS, num_experts_per_tok=CHOSEN
    )
    config._experts_implementation = "grouped_mm"
    return drawn(gpt_oss.GptOssMLP(config)), (tokens(),)


@model()
def grouped_mm_experts() -> Brought:
    class Experts(nn.Module):
        """Tokens sorted by expert, a grouped product for each matrix, and a scatter back, as torchtitan has it."""

        def __init__(self) -> None:
            super().__init__()
            self.router, self.w = nn.Linear(WIDTH, EXPERTS, bias=False), swiglu_weights()

        def forward(self, x):
            x = x.view(-1, WIDTH)
            scores = torch.sigmoid(self.router(x))
            top_scores, selected = scores.topk(CHOSEN, dim=1)
            top_scores = top_scores / (top_scores.sum(dim=-1, keepdim=True) + 1e-20)
            counts = torch.histc(selected.view(-1).float(), bins=EXPERTS, min=0, max=EXPERTS)
            by_expert = torch.argsort(selected.view(-1), stable=True)
            weights, rows = top_scores.view(-1)[by_expert], by_expert // CHOSEN
            routed = x.gather(0, rows.reshape(-1, 1).expand(-1, WIDTH))
            offsets = torch.cumsum(counts, 0, dtype=torch.int32)
            w1, w3, w2 = self.w
            h = F.silu(F.grouped_mm(routed, w1, offs=offsets)) * F.grouped_mm(routed, w3, offs=offsets)
            out = F.grouped_mm(h, w2, offs=offsets) * weights.reshape(-1, 1)
            return torch.zeros_like(x).scatter_add(0, rows.reshape(-1, 1).expand(-1, WIDTH), out)

    return Experts(), (tokens(),)


@model()
def experts_in_a_loop() -> Brought:
    class Experts(nn.Module):
        """Each expert takes the tokens that chose it, as mistral-inference writes it."""

        def __init__(self) -> None:
            super().__init__()
            self.gate = nn.Linear(WIDTH, EXPERTS, bias=False)
            self.experts = nn.ModuleList(
                nn.Sequential(nn.Linear(WIDTH, INNER), nn.SiLU(), nn.Linear(INNER, WIDTH)) for _ in range(EXPERTS)
            )

        def forward(self, inputs):
            inputs = inputs.view(-1, WIDTH)
            weights, selected = torch.topk(self.gate(inputs), CHOSEN)
            weights = F.softmax(weights, dim=1)
            results = torch.zeros_like(inputs)
            for i, expert in enumerate(self.experts):
                batch_idx, nth_expert = torch.where(selected == i)
                results[batch_idx] += weights[batch_idx, nth_expert, None] * expert(inputs[batch_idx])
            return results

    return Experts(), (tokens(),)


@model()
def experts_with_capacity() -> Brought:
    class Experts(nn.Module):
        """The two best experts of each token, as long as they have room: dispatch and combine are masks, as GShard has them."""

        def __init__(self, capacity: int = 3) -> None:
            super().__init__()
            self.capacity = capacity
            self.gate = nn.Linear(WIDTH, EXPERTS, bias=False)
            self.w1, self.w2 = nn.Parameter(torch.randn(EXPERTS, WIDTH, INNER)), nn.Parameter(torch.randn(EXPERTS, INNER, WIDTH))

        def forward(self, x):
            x = x.view(-1, WIDTH)
            gates = F.softmax(self.gate(x), dim=1)
            first = F.one_hot(gates.argmax(dim=1), EXPERTS).float()
            second = F.one_hot(gates.masked_fill(first.bool(), float("-inf")).argmax(dim=1), EXPERTS).float()
            place1 = torch.cumsum(first, 0) - first
            place2 = torch.cumsum(second, 0) - second + first.sum(0, keepdim=True)
            first, second = first * (place1 < self.capacity), second * (place2 < self.capacity)
            g1, g2 = (gates * first).sum(1), (gates * second).sum(1)
            total = (g1 + g2).clamp(min=torch.finfo(x.dtype).eps)
            slot1 = F.one_hot((place1 * first).sum(1).long(), self.capacity).float()
            slot2 = F.one_hot((place2 * second).sum(1).long(), self.capacity).float()
            combine = (g1 / total)[:, None, None] * first[:, :, None] * slot1[:, None, :] + (g2 / total)[:, None, None] * second[
                :, :, None
            ] * slot2[:, None, :]
            dispatched = torch.einsum("sec,sm->ecm", combine.bool().to(x.dtype), x)
            hidden = F.relu(torch.einsum("ecm,emi->eci", dispatched, self.w1))
            return torch.einsum("sec,ecm->sm", combine, torch.einsum("eci,eim->ecm", hidden, self.w2))

    return Experts(), (tokens(),)


@model(fast=True)
def switch_layer() -> Brought:
    class Switch(nn.Module):
        """One expert for each token. A token that finds no room in its expert passes unchanged."""

        def __init__(self, factor: float = 1.0) -> None:
            super().__init__()
            self.router = nn.Linear(WIDTH, EXPERTS)
            self.w1, self.w2 = nn.Parameter(torch.randn(EXPERTS, WIDTH, INNER)), nn.Parameter(torch.randn(EXPERTS, INNER, WIDTH))
            self.capacity = int(factor * TOKENS / EXPERTS) + 1

        def forward(self, x):
            x = x.view(-1, WIDTH)
            probability, expert = F.softmax(self.router(x), dim=-1).max(dim=-1)
            place = (torch.cumsum(F.one_hot(expert, EXPERTS), 0) - 1).gather(1, expert[:, None]).squeeze(1)
            kept = place < self.capacity
            slots = torch.where(kept, expert * self.capacity + place, EXPERTS * self.capacity)
            buffer = x.new_zeros(EXPERTS * self.capacity + 1, WIDTH).index_copy(0, slots, x)
            rows = buffer[:-1].view(EXPERTS, self.capacity, WIDTH)
            out = torch.bmm(F.relu(torch.bmm(rows, self.w1)), self.w2).view(-1, WIDTH)
            out = F.pad(out, (0, 0, 0, 1))[slots]
            return torch.where(kept[:, None], probability[:, None] * out, x)

    return Switch(), (tokens(),)


@model()
def experts_choose_tokens() -> Brought:
    class Choice(nn.Module):
        """Each expert chooses the tokens with the best scores, so that all have the same load."""

        def __init__(self, capacity: int = 3) -> None:
            super().__init__()
            self.capacity = capacity
            self.gate = nn.Linear(WIDTH, EXPERTS, bias=False)
            self.w1, self.w2 = nn.Parameter(torch.randn(EXPERTS, WIDTH, INNER)), nn.Parameter(torch.randn(EXPERTS, INNER, WIDTH))

        def forward(self, x):
            x = x.view(-1, WIDTH)
            scores = self.gate(x).softmax(dim=-1)
            gates, chosen = scores.t().topk(self.capacity, dim=-1)
            out = torch.bmm(F.gelu(torch.bmm(x[chosen], self.w1)), self.w2) * gates.unsqueeze(-1)
            return torch.zeros_like(x).index_add(0, chosen.reshape(-1), out.reshape(-1, WIDTH))

    return Choice(), (tokens(),)


@model()
def mixture_of_depths() -> Brought:
    class Depths(nn.Module):
        """A block that half of the tokens of a sequence go through, in their order; the others skip it."""

        def __init__(self) -> None:
            super().__init__()
            self.router, self.block = (
                nn.Linear(WIDTH, 1, bias=False),
                nn.TransformerEncoderLayer(WIDTH, 2, INNER, batch_first=True),
            )

        def forward(self, x):
            weights = self.router(x).squeeze(-1)
            chosen = weights.topk(x.shape[1] // 2, dim=1, sorted=False).indices.sort(dim=1).values
            index = chosen.unsqueeze(-1).expand(-1, -1, WIDTH)
            out = self.block(x.gather(1, index)) * weights.gather(1, chosen).sigmoid().unsqueeze(-1)
            return x.scatter_add(1, index, out)

    return Depths(), (tokens(),)


@model()
def product_key_memory() -> Brought:
    class Memory(nn.Module):
        """Values are looked up by the best pairs of two halves of a query."""

        def __init__(self, keys: int = 8, kept: int = 3) -> None:
            super().__init__()
            self.keys, self.kept = keys, kept
            self.query = nn.Linear(WIDTH, 16)
            self.subkeys = nn.Parameter(torch.randn(2, keys, 8))
            self.values = nn.EmbeddingBag(keys * keys, WIDTH, mode="sum")

        def forward(self, x):
            x = x.view(-1, WIDTH)
            q1, q2 = self.query(x).chunk(2, dim=-1)
            scores1, indices1 = (q1 @ self.subkeys[0].t()).topk(self.kept, dim=1)
            scores2, indices2 = (q2 @ self.subkeys[1].t()).topk(self.kept, dim=1)
            all_scores = (scores1[:, :, None] + scores2[:, None, :]).view(len(x), -1)
            all_indices = (indices1[:, :, None] * self.keys + indices2[:, None, :]).view(len(x), -1)
            scores, best = all_scores.topk(self.kept, dim=1)
            return self.values(all_indices.gather(1, best), per_sample_weights=scores.softmax(dim=-1))

    return Memory(), (tokens(),)
