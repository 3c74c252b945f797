"""How long a step of training takes with masks that hold, beside a dense one, in processor time.

    python tools/bench/sparse_step.py [--layers 4] [--width 256] [--rounds 15] [--json FILE|-]

The model is `nn.TransformerEncoder` with AdamW on a batch of 8 sequences of 128; its linear weights are sparse. A step is forward, backward
and the step of the optimizer. The cases take turns, so that a busy machine slows all of them, and each round gives a ratio to its own dense
step. Times and ratios are medians. Exits with 1 if a step with fixed masks takes more than 1.3 times a dense one.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from typing import Any, Literal

import click
import torch
from host import JSON, finish, seconds
from torch import nn

import fuseflow.sparsity as sp

BAR = 1.3
CASES: dict[str, tuple[str, Literal["fixed", "new"]]] = {
    "fixed, magnitude:0.9": ("magnitude:0.9", "fixed"),
    "fixed, nm:2:4": ("nm:2:4", "fixed"),
    "fixed, nmg:2:4:4": ("nmg:2:4:4", "fixed"),
    "new, magnitude:0.9": ("magnitude:0.9", "new"),
    "new, nm:2:4": ("nm:2:4", "new"),
    "new, nmg:2:4:4 greedy": ("nmg:2:4:4:method=greedy", "new"),
    "new, nmg:2:4:4 exact": ("nmg:2:4:4", "new"),
}
PATTERNS = ("*in_proj_weight", "*linear*.weight", "*out_proj.weight")


def step_of(layers: int, width: int, case: str) -> Callable[[], None]:
    """Return a function that trains a model for one step."""
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.0, batch_first=True)
    model = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    x, y = torch.randn(8, 128, width), torch.randn(8, 128, width)
    if case in CASES:
        rule, when = CASES[case]
        spec = sum((sp.parse_sparsify(f"{pattern}={rule}") for pattern in PATTERNS), sp.SparseSpec())
        sp.attach(model, spec, optimizer, when=when)

    def step() -> None:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()

    return step


def measured(layers: int, width: int, rounds: int) -> list[dict[str, Any]]:
    """Return a row for each case: the median time of a step, and the median of its ratios to the dense steps beside it."""
    steps = {case: step_of(layers, width, case) for case in ("dense", *CASES)}
    for step in steps.values():
        step()
    times: dict[str, list[float]] = {case: [] for case in steps}
    for _ in range(rounds):
        for case, step in steps.items():
            times[case].append(seconds(step))
    ratios = {case: median(a / b for a, b in zip(of_case, times["dense"], strict=True)) for case, of_case in times.items()}
    return [
        {"key": case, "ms": round(1000 * median(of_case), 1), "ratio": round(ratios[case], 2)} for case, of_case in times.items()
    ]


@click.command(help=__doc__.partition("\n")[0])
@click.option("--layers", default=4, show_default=True)
@click.option("--width", default=256, show_default=True)
@click.option("--rounds", default=15, show_default=True)
@JSON
def main(layers: int, width: int, rounds: int, output: str | None) -> None:
    torch.set_num_threads(1)
    cases = measured(layers, width, rounds)
    lines = (f"{row['key']:24} {row['ms']:8.1f} ms  {row['ratio']:6.2f} x dense" for row in cases)
    slow = [f"{row['key']}: {row['ratio']} > {BAR}" for row in cases if row["key"].startswith("fixed") and row["ratio"] > BAR]
    finish("sparse step", output, lines, {"layers": layers, "width": width, "rounds": rounds, "cases": cases}, slow)


if __name__ == "__main__":
    main()
