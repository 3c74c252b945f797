"""Sparse autoencoders and layers that keep the largest activations, as interpretability libraries and pruning papers write them."""

from __future__ import annotations

from functools import partial

import torch
import torch.nn.functional as F
from torch import nn
from zoo_registry import Brought, zoo

BATCH, WIDTH, LATENTS, KEPT = 4, 16, 64, 4
model = partial(zoo.model, "dynamic")


class Autoencoder(nn.Module):
    """Encoder, an activation that leaves few latents, and decoder. The bias of the decoder is subtracted from the input."""

    def __init__(self) -> None:
        super().__init__()
        self.W_enc = nn.Parameter(torch.randn(WIDTH, LATENTS) / WIDTH**0.5)
        self.W_dec = nn.Parameter(self.W_enc.detach().T.clone())
        self.b_enc, self.b_dec = nn.Parameter(0.1 * torch.randn(LATENTS)), nn.Parameter(0.1 * torch.randn(WIDTH))

    def pre_activations(self, x):
        return (x - self.b_dec) @ self.W_enc + self.b_enc

    def encode(self, x):
        raise NotImplementedError

    def forward(self, x):
        acts = self.encode(x)
        return acts @ self.W_dec + self.b_dec, acts


def activations() -> torch.Tensor:
    return torch.randn(BATCH, WIDTH)


@model(fast=True)
def top_k_autoencoder() -> Brought:
    class TopK(Autoencoder):
        def encode(self, x):
            top_acts, top_indices = F.relu(self.pre_activations(x)).topk(KEPT, dim=-1, sorted=False)
            buffer = top_acts.new_zeros((*top_acts.shape[:-1], LATENTS))
            return buffer.scatter_(dim=-1, index=top_indices, src=top_acts)

    return TopK(), (activations(),)


@model()
def top_k_autoencoder_embedding_bag() -> Brought:
    class TopK(Autoencoder):
        def forward(self, x):
            top_acts, top_indices = self.pre_activations(x).relu().topk(KEPT, dim=-1)
            decoded = F.embedding_bag(top_indices, self.W_dec, per_sample_weights=top_acts, mode="sum")
            return decoded + self.b_dec

    return TopK(), (activations(),)


@model()
def batch_top_k_autoencoder() -> Brought:
    class BatchTopK(Autoencoder):
        def encode(self, x):
            acts = F.relu(self.pre_activations(x))
            flat = acts.flatten()
            top = torch.topk(flat, KEPT * x.shape[0], dim=-1)
            return torch.zeros_like(flat).scatter(-1, top.indices, top.values).reshape(acts.shape)

    return BatchTopK(), (activations(),)


@model()
def jump_relu_autoencoder() -> Brought:
    class JumpRelu(Autoencoder):
        def __init__(self) -> None:
            super().__init__()
            self.threshold = nn.Parameter(torch.rand(LATENTS) + 0.5)

        def encode(self, x):
            pre_acts = self.pre_activations(x)
            return (pre_acts > self.threshold) * F.relu(pre_acts)

    return JumpRelu(), (activations(),)


@model()
def sorted_autoencoder() -> Brought:
    class Sorted(Autoencoder):
        def encode(self, x):
            acts = F.relu(self.pre_activations(x))
            values, _ = acts.sort(dim=-1, descending=True)
            return torch.where(acts >= values[:, KEPT - 1 : KEPT], acts, torch.zeros_like(acts))

    return Sorted(), (activations(),)


@model()
def winners_take_all() -> Brought:
    class Winners(nn.Module):
        """The k winners of each row, of boosted activations, as networks of sparse distributed representations take them."""

        def __init__(self) -> None:
            super().__init__()
            self.linear, self.classes = nn.Linear(WIDTH, LATENTS), nn.Linear(LATENTS, 5)
            self.register_buffer("duty_cycle", torch.rand(LATENTS) * 0.2)

        def forward(self, x):
            y = self.linear(x)
            boosted = y * torch.exp(KEPT / LATENTS - self.duty_cycle)
            threshold = boosted.kthvalue(LATENTS - KEPT + 1, dim=1, keepdim=True).values
            return self.classes(torch.where(boosted < threshold, torch.zeros_like(y), y))

    return Winners(), (activations(),)


@model()
def quantile_activation() -> Brought:
    class Pruned(nn.Module):
        """A feed-forward layer whose inputs below a quantile of their magnitudes are left out."""

        def __init__(self) -> None:
            super().__init__()
            self.up, self.gate, self.down = nn.Linear(WIDTH, LATENTS), nn.Linear(WIDTH, LATENTS), nn.Linear(LATENTS, WIDTH)

        def forward(self, x):
            h = F.silu(self.gate(x)) * self.up(x)
            threshold = torch.quantile(h.abs(), 0.9, dim=-1, keepdim=True)
            return self.down(h * (h.abs() > threshold))

    return Pruned(), (activations(),)


@model()
def contextual_neurons() -> Brought:
    class Contextual(nn.Module):
        """A feed-forward layer of which a small predictor chooses the neurons of each token."""

        def __init__(self) -> None:
            super().__init__()
            self.predictor = nn.Sequential(nn.Linear(WIDTH, 4, bias=False), nn.Linear(4, LATENTS, bias=False))
            self.fc1, self.fc2 = nn.Parameter(torch.randn(LATENTS, WIDTH)), nn.Parameter(torch.randn(LATENTS, WIDTH))

        def forward(self, x):
            neurons = self.predictor(x).topk(KEPT, dim=-1).indices
            hidden = F.relu(torch.einsum("bd,bkd->bk", x, self.fc1[neurons]))
            return torch.einsum("bk,bkd->bd", hidden, self.fc2[neurons])

    return Contextual(), (activations(),)
