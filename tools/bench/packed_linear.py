"""How long linear layers with packed weights take on this processor, beside dense ones.

    python tools/bench/packed_linear.py [--rows 3072] [--columns 768] [--batch 4096] [--threads 1] [--rounds 9] [--bert] [--json FILE|-]

A weight is packed in several layouts, and the same entries in PyTorch's CSR; a tenth of its blocks of 16 x 16 are in PyTorch's BSR.
`times columns` is the product of the weight and a matrix, whose columns are the vectors, as STen's kernels take it.
Products take turns with the dense one, and each round gives a ratio: how many times as fast as PyTorch's dense product. `--bert` adds a
BERT of two layers whose linear weights in the layers are all packed, on 8 sequences of 512. Times are of the processor, so that a busy
machine slows both; with several threads they are of the clock. Exits with 1 if a layout does not reach its bar.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median
from typing import Any

import click
import torch
from host import JSON, finish, seconds

import fuseflow.sparsity as sp

BARS = {
    "nmg:2:4:16": 1.0,
    "nmg:1:4:16": 1.8,
    "nmg:1:10:4": 4.0,
    "nm:2:4": 0.9,
    "nm:2:4 along columns": 0.9,
    "bert nmg:1:4:16": 1.0,
}
"""How many times as fast as dense: the forward pass of a layout, on one thread."""
RULES = {name: name for name in ("nmg:2:4:16", "nmg:1:4:16", "nmg:1:10:4", "nm:2:4")} | {
    "nm:2:4 along columns": "nm:2:4:dim=0",
    "nmg:1:4:16 in bf16": "nmg:1:4:16",
}
BLOCK = 16


def packed_weight(rule: str, weight: torch.Tensor) -> sp.PackedTensor:
    """Return a weight that a rule prunes, as its layout stores it. The greedy method selects n:m:g, since it is fast."""
    sparsifier = sp.parse_sparsifier(f"{rule}:method=greedy" if rule.startswith("nmg") else rule)
    return sp.PackedTensor.wrapped_from_dense(sparsifier.layout.pack(weight, sparsifier.select(weight)), weight)


def layer_cases(rows: int, columns: int, batch: int) -> dict[str, tuple[Callable[[], Any], Callable[[], Any]]]:
    """Return pairs of steps by name: one with a packed weight, and the same with a dense one."""
    weight, x, grad = torch.randn(rows, columns) / columns**0.5, torch.randn(batch, columns), torch.randn(batch, rows)
    upright = x.T.contiguous()
    dense = lambda: torch.nn.functional.linear(x, weight)  # noqa: E731
    cases: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {}
    for name, rule in RULES.items():
        narrow = torch.bfloat16 if name.endswith("bf16") else torch.float32
        stored, a, w = packed_weight(rule, weight).to(narrow), x.to(narrow), weight.to(narrow)
        cases[name] = (lambda s=stored, a=a: torch.nn.functional.linear(a, s), lambda a=a, w=w: torch.nn.functional.linear(a, w))
        if narrow == torch.float32:
            cases[f"{name}, with gradients"] = (gradients(stored, x, grad), gradients(weight, x, grad))
            cases[f"{name}, times columns"] = (lambda s=stored: s @ upright, lambda: weight @ upright)
            csr = stored.stored_dense().to_sparse_csr()
            cases[f"{name}, PyTorch's CSR"] = (lambda m=csr: (m @ x.T).T, dense)
    kept = torch.rand(rows // BLOCK, columns // BLOCK) < 0.1
    blocks = weight * kept.repeat_interleave(BLOCK, 0).repeat_interleave(BLOCK, 1)
    bsr = blocks.to_sparse_bsr((BLOCK, BLOCK))
    cases["a tenth of blocks, PyTorch's BSR"] = (lambda: (bsr @ x.T).T, dense)
    return cases


def gradients(weight: torch.Tensor, x: torch.Tensor, grad: torch.Tensor) -> Callable[[], Any]:
    """Return a step forward and backward, to both operands."""
    ours, weight = x.clone().requires_grad_(), weight.detach().clone().requires_grad_()

    def step() -> None:
        ours.grad = weight.grad = None
        torch.nn.functional.linear(ours, weight).backward(grad)

    return step


def bert_case(rule: str) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """Return a step of a packed encoder, and one of the dense encoder."""
    from transformers import BertConfig, BertModel

    dense = BertModel(BertConfig(num_hidden_layers=2)).eval()
    packed = sp.pack(sp.sparse_copy(dense, sp.parse_sparsify(f"encoder.*.dense.weight={rule}:method=greedy")))
    words = torch.randint(0, 30_000, (8, 512))
    return (lambda: packed(words), lambda: dense(words))


def measured(steps: tuple[Callable[[], Any], Callable[[], Any]], rounds: int, threads: int) -> dict[str, float]:
    """Return the median milliseconds of two steps that take turns, and the median of their ratios."""
    clock = time.process_time if threads == 1 else time.perf_counter
    for step in steps:
        step()
    pairs = [[seconds(step, clock) for step in steps] for _ in range(rounds)]
    ours, theirs = (1000 * median(pair[k] for pair in pairs) for k in (0, 1))
    return {"ms": round(ours, 1), "dense ms": round(theirs, 1), "times as fast": round(median(b / a for a, b in pairs), 2)}


@click.command(help=__doc__.partition("\n")[0])
@click.option("--rows", default=3072, show_default=True)
@click.option("--columns", default=768, show_default=True)
@click.option("--batch", default=4096, show_default=True)
@click.option("--threads", default=1, show_default=True)
@click.option("--rounds", default=9, show_default=True)
@click.option("--bert", is_flag=True, help="add a BERT of two layers")
@JSON
def main(rows: int, columns: int, batch: int, threads: int, rounds: int, bert: bool, output: str | None) -> None:
    torch.manual_seed(0)
    torch.set_num_threads(threads)
    figures = {name: measured(steps, rounds, threads) for name, steps in layer_cases(rows, columns, batch).items()}
    if bert:
        with torch.no_grad():
            figures["bert nmg:1:4:16"] = measured(bert_case("nmg:1:4:16"), rounds, threads)
    lines = (
        f"{name:40} {f['ms']:9.1f} ms  dense {f['dense ms']:9.1f} ms  {f['times as fast']:6.2f}" for name, f in figures.items()
    )
    slow = [
        f"{name}: {figures[name]['times as fast']} times as fast as dense, not {bar}"
        for name, bar in BARS.items()
        if name in figures and figures[name]["times as fast"] < bar
    ]
    finish("packed_linear", output, lines, {"threads": threads, "shape": [rows, columns, batch], "figures": figures}, slow)


if __name__ == "__main__":
    main()
