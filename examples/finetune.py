"""A small BERT becomes sparse layer by layer: all its linear layers end with 2:4:4, and it learns on after each.

    python examples/finetune.py          # two and a half minutes on two cores; needs `transformers`

The model has random weights, and the text is synthetic: a token is mostly one of three successors of the token before it. One token in
seven is hidden, and the model learns to say which it was.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator

import torch
from torch import nn
from transformers import BertConfig, BertForMaskedLM

import fuseflow.sparsity as sp

VOCABULARY, LENGTH, BATCH, MASK = 96, 32, 32, 0
PRETRAINING, TUNING = 3000, 100


def text(seed: int) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Yield batches of hidden text: what the model sees, and what it should say (-100 where nothing is hidden)."""
    successors = torch.randint(1, VOCABULARY, (VOCABULARY, 3), generator=torch.Generator().manual_seed(0))
    draw = torch.Generator().manual_seed(seed)
    while True:
        tokens = [torch.randint(1, VOCABULARY, (BATCH,), generator=draw)]
        for _ in range(LENGTH - 1):
            follow = successors[tokens[-1], torch.randint(3, (BATCH,), generator=draw)]
            noise = torch.randint(1, VOCABULARY, (BATCH,), generator=draw)
            tokens.append(torch.where(torch.rand(BATCH, generator=draw) < 0.9, follow, noise))
        sentence = torch.stack(tokens, dim=1)
        hidden = torch.rand(sentence.shape, generator=draw) < 1 / 7
        yield sentence.masked_fill(hidden, MASK), sentence.masked_fill(~hidden, -100)


def train(
    model: nn.Module, optimizer: torch.optim.Optimizer, batches: Iterator[tuple[torch.Tensor, torch.Tensor]], steps: int
) -> None:
    model.train()
    for _ in range(steps):
        seen, hidden = next(batches)
        optimizer.zero_grad()
        model(input_ids=seen, labels=hidden).loss.backward()
        optimizer.step()


@torch.no_grad()
def loss(model: nn.Module) -> float:
    """Return the mean loss of 30 batches that no training sees, in nats."""
    model.eval()
    held_out = text(seed=1_000_000)
    losses = [model(input_ids=seen, labels=hidden).loss.item() for seen, hidden in (next(held_out) for _ in range(30))]
    return sum(losses) / len(losses)


def main() -> None:
    torch.manual_seed(0)
    size = {"hidden_size": 96, "intermediate_size": 384, "num_hidden_layers": 2, "num_attention_heads": 4}
    model = BertForMaskedLM(BertConfig(vocab_size=VOCABULARY, max_position_embeddings=LENGTH, hidden_dropout_prob=0.0, **size))
    train(model, torch.optim.AdamW(model.parameters(), 1e-3), text(seed=0), PRETRAINING)
    print(f"dense: {loss(model):.4f} nats")

    layers = [name for name, module in model.named_modules() if isinstance(module, nn.Linear)]
    dense = copy.deepcopy(model)
    train(dense, torch.optim.AdamW(dense.parameters(), 5e-4), text(seed=1), TUNING * len(layers))

    builder = sp.SparsityBuilder()
    for name in layers:
        builder.set_weight(f"{name}.weight", initial_sparsifier=sp.NMG(2, 4, 4), out_format=sp.NMGLayout(2, 4, 4))
    optimizer, batches = torch.optim.AdamW(model.parameters(), 5e-4), text(seed=1)
    handle = sp.layer_wise(model, builder.spec(), optimizer, lambda: train(model, optimizer, batches, TUNING))
    for row in handle.report():
        print(f"{row.name}: {row.layout}, {row.kept:,} of {math.prod(row.shape):,} entries")
    print(f"dense after {TUNING * len(layers)} more steps: {loss(dense):.4f} nats")
    print(f"sparse after as many: {loss(model):.4f} nats")


if __name__ == "__main__":
    main()
