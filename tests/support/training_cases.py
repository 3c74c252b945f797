"""Training steps for golden data: models of a few lines, their inputs, losses and optimizers, and what PyTorch recorded of them.

`CASES[name]()` gives a `Case`, and `recorded(name)` its numbers (`tests/data/training/README.md`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclass
class Case:
    """A model, its inputs by name, what the loss reads besides, and the optimizer. `masks` are the patterns of pruned weights, which stay
    fixed: gradients, weights and states are 0 outside of them. `draws` are the random tensors of each step, by name."""

    model: nn.Module
    inputs: dict[str, Tensor]
    target: Tensor
    loss: Callable[[Tensor, Tensor], Tensor]
    optimizer: Callable[[Any], torch.optim.Optimizer]
    masks: dict[str, Tensor] = field(default_factory=dict)
    formats: dict[str, str] = field(default_factory=dict)


def graph(nodes: int, degree: int, seed: int) -> Tensor:
    """Return a symmetric normalized adjacency with self loops, dense."""
    g = torch.Generator().manual_seed(seed)
    a = (torch.rand(nodes, nodes, generator=g) < degree / nodes).float()
    a = ((a + a.T) > 0).float()
    a.fill_diagonal_(1)
    d = a.sum(1).rsqrt()
    return a * d[:, None] * d[None, :]


def edges(nodes: int, degree: int, seed: int) -> Tensor:
    """Return the edges of a directed graph, in which every node has one."""
    g = torch.Generator().manual_seed(seed)
    a = torch.rand(nodes, nodes, generator=g) < degree / nodes
    a |= torch.eye(nodes).bool().roll(1, 0)
    return a.nonzero().t().contiguous()


def normal(*shape: int, seed: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def classes(count: int, kinds: int, seed: int) -> Tensor:
    return torch.randint(0, kinds, (count,), generator=torch.Generator().manual_seed(seed))


class GCN(nn.Module):
    def __init__(self, f: int, h: int, c: int) -> None:
        super().__init__()
        self.l1, self.l2 = nn.Linear(f, h), nn.Linear(h, c)

    def forward(self, adj: Tensor, x: Tensor) -> Tensor:
        x = F.relu(adj @ self.l1(x))
        return adj @ self.l2(x)


def gcn_csr_sgd() -> Case:
    torch.manual_seed(1)
    a = graph(24, 4, 11).to_sparse_csr()
    return Case(
        GCN(12, 8, 4), {"adj": a, "x": normal(24, 12, seed=12)}, classes(24, 4, 13), F.cross_entropy,
        lambda p: torch.optim.SGD(p, lr=0.1),
    )  # fmt: skip


def gcn_few_labels_momentum() -> Case:
    torch.manual_seed(2)
    a = graph(32, 3, 21).to_sparse_csr()
    x = normal(32, 20, seed=22)
    x = (x * (x.abs() > 1.2)).to_sparse_csr()

    class Sparse(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w1, self.w2 = nn.Parameter(normal(20, 8, seed=23) * 0.3), nn.Parameter(normal(8, 3, seed=24) * 0.3)

        def forward(self, adj: Tensor, x: Tensor) -> Tensor:
            h = F.relu(torch.sparse.mm(adj, torch.sparse.mm(x, self.w1)))
            return torch.sparse.mm(adj, h @ self.w2)

    y = classes(32, 3, 25)
    y[6:] = -100  # what has no label
    return Case(
        Sparse(), {"adj": a, "x": x}, y, F.cross_entropy, lambda p: torch.optim.SGD(p, lr=0.2, momentum=0.9, weight_decay=5e-4)
    )


def mlp_mse_sgd() -> Case:
    torch.manual_seed(3)
    return Case(
        nn.Sequential(nn.Linear(10, 24), nn.Tanh(), nn.Linear(24, 5)), {"input": normal(16, 10, seed=31)}, normal(16, 5, seed=32),
        F.mse_loss, lambda p: torch.optim.SGD(p, lr=0.05),
    )  # fmt: skip


def mlp_pruned_momentum() -> Case:
    torch.manual_seed(4)
    model = nn.Sequential(nn.Linear(32, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 6))
    masks = {}
    for name in ("0.weight", "2.weight"):
        weight = model.get_parameter(name)
        kept = weight.detach().abs().flatten().topk(weight.numel() // 10).values.min()
        masks[name] = weight.detach().abs() >= kept
        weight.data *= masks[name]
    return Case(
        model, {"input": normal(20, 32, seed=41)}, classes(20, 6, 42), F.cross_entropy,
        lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9), masks, dict.fromkeys(masks, "csr"),
    )  # fmt: skip


def mlp_norm_gelu_adamw() -> Case:
    torch.manual_seed(5)
    model = nn.Sequential(nn.Linear(12, 20), nn.LayerNorm(20), nn.GELU(), nn.Linear(20, 4))
    return Case(
        model, {"input": normal(18, 12, seed=51)}, classes(18, 4, 52), F.cross_entropy,
        lambda p: torch.optim.AdamW(p, lr=1e-2, weight_decay=0.1),
    )  # fmt: skip


class Block(nn.Module):
    def __init__(self, d: int, heads: int, hidden: int, c: int) -> None:
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.o = (nn.Linear(d, d) for _ in range(4))
        self.n1, self.n2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.up, self.down, self.head = nn.Linear(d, hidden), nn.Linear(hidden, d), nn.Linear(d, c)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        h = self.n1(x)
        q, k, v = (part(h).view(len(x), self.heads, -1).transpose(0, 1) for part in (self.q, self.k, self.v))
        s = (q @ k.transpose(1, 2)) * (q.shape[-1] ** -0.5)
        a = torch.softmax(s.masked_fill(mask == 0, float("-inf")), -1) @ v
        x = x + self.o(a.transpose(0, 1).reshape(len(x), -1))
        return self.head(x + self.down(F.gelu(self.up(self.n2(x)))))


def band(n: int, width: int) -> Tensor:
    i = torch.arange(n)
    return ((i[:, None] - i[None, :]).abs() <= width).float()


def block_mask_adam() -> Case:
    torch.manual_seed(6)
    return Case(
        Block(16, 2, 32, 5), {"x": normal(14, 16, seed=61), "mask": band(14, 2)}, classes(14, 5, 62), F.cross_entropy,
        lambda p: torch.optim.Adam(p, lr=1e-3), formats={"mask": "csr"},
    )  # fmt: skip


class Tied(nn.Module):
    def __init__(self, words: int, d: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, d)
        self.mix, self.out = nn.Linear(d, d), nn.Linear(d, words, bias=False)
        self.out.weight = self.embedding.weight

    def forward(self, ids: Tensor) -> Tensor:
        return self.out(torch.tanh(self.mix(self.embedding(ids))))


def embedding_tied_sgd() -> Case:
    torch.manual_seed(7)
    return Case(
        Tied(30, 8), {"ids": classes(16, 30, 71)}, classes(16, 30, 72), F.cross_entropy,
        lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.5),
    )  # fmt: skip


def batch_norm_sgd() -> Case:
    torch.manual_seed(8)
    model = nn.Sequential(nn.Linear(10, 12, bias=False), nn.BatchNorm1d(12), nn.ReLU(), nn.Linear(12, 3))
    return Case(
        model, {"input": normal(24, 10, seed=81)}, classes(24, 3, 82), F.cross_entropy, lambda p: torch.optim.SGD(p, lr=0.1)
    )


def dropout_adam() -> Case:
    """Dropout draws from the default generator, which is set to the number of the step before each step."""
    torch.manual_seed(9)
    model = nn.Sequential(nn.Linear(10, 20), nn.ReLU(), nn.Dropout(0.4), nn.Linear(20, 3))
    return Case(
        model, {"input": normal(12, 10, seed=91)}, classes(12, 3, 92), F.cross_entropy, lambda p: torch.optim.Adam(p, lr=1e-2)
    )


class Sage(nn.Module):
    """Neighbours are gathered by edges, and their mean is scattered."""

    def __init__(self, f: int, h: int, c: int) -> None:
        super().__init__()
        self.own1, self.near1 = nn.Linear(f, h), nn.Linear(f, h, bias=False)
        self.own2, self.near2 = nn.Linear(h, c), nn.Linear(h, c, bias=False)

    def mean(self, x: Tensor, edge: Tensor) -> Tensor:
        total = torch.zeros_like(x).index_add(0, edge[1], x[edge[0]])
        count = torch.zeros(len(x), dtype=x.dtype).index_add(0, edge[1], torch.ones(edge.shape[1], dtype=x.dtype))
        return total / count.clamp(min=1)[:, None]

    def forward(self, x: Tensor, edge: Tensor) -> Tensor:
        x = F.relu(self.own1(x) + self.near1(self.mean(x, edge)))
        return self.own2(x) + self.near2(self.mean(x, edge))


def sage_edges_adamw() -> Case:
    torch.manual_seed(10)
    return Case(
        Sage(8, 10, 4), {"x": normal(26, 8, seed=101), "edge": edges(26, 3, 102)}, classes(26, 4, 103), F.cross_entropy,
        lambda p: torch.optim.AdamW(p, lr=5e-3),
    )  # fmt: skip


class Gat(nn.Module):
    """Attention over edges: scores are exponentiated and divided by their sum at each target."""

    def __init__(self, f: int, h: int, c: int) -> None:
        super().__init__()
        self.w, self.out = nn.Linear(f, h, bias=False), nn.Linear(h, c)
        self.a, self.b = nn.Parameter(normal(h, seed=111) * 0.3), nn.Parameter(normal(h, seed=112) * 0.3)

    def forward(self, x: Tensor, edge: Tensor) -> Tensor:
        h = self.w(x)
        e = torch.exp(F.leaky_relu((h @ self.a)[edge[0]] + (h @ self.b)[edge[1]], 0.2))
        total = torch.zeros(len(x), dtype=x.dtype).index_add(0, edge[1], e)
        h = torch.zeros_like(h).index_add(0, edge[1], h[edge[0]] * (e / total[edge[1]])[:, None])
        return self.out(F.elu(h))


def gat_edges_adam() -> Case:
    torch.manual_seed(11)
    return Case(
        Gat(7, 9, 3), {"x": normal(22, 7, seed=113), "edge": edges(22, 3, 114)}, classes(22, 3, 115), F.cross_entropy,
        lambda p: torch.optim.Adam(p, lr=5e-3),
    )  # fmt: skip


def autoencoder_bce_adamw() -> Case:
    """A sparse input, a penalty on the code, and a bias of the decoder that is frozen."""
    torch.manual_seed(12)

    class Autoencoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encoder, self.decoder = nn.Linear(24, 40), nn.Linear(40, 24)
            self.decoder.bias.requires_grad_(False)

        def forward(self, x: Tensor) -> Tensor:
            code = F.relu(self.encoder(x))
            return torch.cat([self.decoder(code), 1e-3 * code], 1)

    def loss(z: Tensor, y: Tensor) -> Tensor:
        return F.binary_cross_entropy_with_logits(z[:, :24], y) + z[:, 24:].abs().sum(1).mean()

    x = (normal(16, 24, seed=121) > 1.0).float()
    return Case(Autoencoder(), {"x": x}, x, loss, lambda p: torch.optim.AdamW(p, lr=1e-2), formats={"x": "csr"})


CASES = {
    case.__name__: case
    for case in (
        gcn_csr_sgd, gcn_few_labels_momentum, mlp_mse_sgd, mlp_pruned_momentum, mlp_norm_gelu_adamw, block_mask_adam,
        embedding_tied_sgd, batch_norm_sgd, dropout_adam, sage_edges_adamw, gat_edges_adam, autoencoder_bce_adamw,
    )
}  # fmt: skip


GOLDEN = Path(__file__).parents[1] / "data" / "training" / "golden.npz"


@cache
def _golden() -> dict[str, Tensor]:
    with np.load(GOLDEN) as file:
        return {key: torch.from_numpy(value) for key, value in file.items()}


def recorded(case: str) -> dict[str, Tensor]:
    """Return what PyTorch recorded of a case: keys such as `init/l1.weight`, `grad/l1.weight`, `step1/state/l1.weight/exp_avg`."""
    return {key.removeprefix(f"{case}/"): value.clone() for key, value in _golden().items() if key.startswith(f"{case}/")}


def prepared(name: str) -> Case:
    """Return a case whose parameters, buffers, inputs and target are the recorded ones."""
    case, values = CASES[name](), recorded(name)
    case.model.load_state_dict({key.removeprefix("init/"): value for key, value in values.items() if key.startswith("init/")})
    for key, drawn in case.inputs.items():
        value = values[f"input/{key}"]
        case.inputs[key] = value if drawn.layout == torch.strided else value.to_sparse_csr()
    case.target = values["target"]
    return case
