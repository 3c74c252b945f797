"""After Figure 11 of SparTA: a layer of BERT, pruned, and what each step after that brings.

    python evaluation/figures.py sparta_figure11 --run    # complete the rows, a minute in all

The layer has the shapes of BERT (768 features, 12 heads, 3,072 inner features), random weights and 32 words. A fifth of the blocks of each
weight are kept, of 32x32, and 1 % of the elements beside. Of the weights behind the heads and behind the inner features a half of the
columns is pruned, as rows of the weights before them would be by hand. Statements run one after the other, as kernels do. The steps:

    full           all weights as they are
    sparse         entries that are not pruned, in CSR
    + propagation  without the rows before pruned columns
    + plan         blocks of 32x1 for the weights of queries, values and inner features, and for all that shares their indices
    + resident     all weights in the configuration, which is loaded before the run

The paper's bars are milliseconds on a GPU, and no number is printed beside them. What can be compared is that each step helps.
"""

from __future__ import annotations

import json
from typing import Any

from claims import Check, cell, markdown, ratio, rising
from frame import Data, Figure, Options
from sparta_products import complete_points
from store import ROOT, rows

STORE = "sparta_figure11"
STEPS = ("full", "sparse", "+ propagation", "+ plan", "+ resident")
PLANNED = ("query", "value", "intermediate")
CONFIG_BYTES = 1 << 25
"""What the configuration of a region may hold: 32 MiB."""


def run(options: Options) -> None:
    """Complete the rows, one line when each step is done."""
    complete_points(STORE, ((step,) for step in STEPS), measured, options)


def measured(step: str, small: bool = False) -> dict[str, int]:
    """The cycles of the layer on `rda`, which is compared with PyTorch. A `small` one has 16 features."""
    import fuseflow as ff
    import fuseflow.sparsity as sp

    module, inputs = _layer(small)
    weights = [name for name, weight in module.named_parameters() if weight.dim() == 2]
    done = STEPS.index(step)
    entry = {"sparsifier": "threshold:1e-12", "layout": "csr"}
    spec = sp.SparseSpec.from_yaml(json.dumps({"weights": {"*.weight": entry}})) if done >= 1 else None
    form = "8x1" if small else "32x1"
    plan = {name: [{"form": form}] for name in weights if any(part in name for part in PLANNED)}
    sections: dict[str, Any] = (
        {"fuse": "none"} | ({"plan": plan} if done >= 3 else {}) | ({"resident": weights} if done >= 4 else {})
    )
    machine = ff.load_machine("rda").model_copy(update={"config_bytes": CONFIG_BYTES})
    schedule = ff.Schedule.from_yaml(json.dumps(sections))
    result = ff.compile(module, inputs, schedule=schedule, machine=machine, sparsity=spec, propagate=done >= 2).run()
    assert result.check is not None and result.check.passed, step
    return {"cycles": result.cycles, "bytes": result.stats["bytes"]["read"], "config": result.config.bytes}


def _layer(small: bool) -> tuple[Any, Any]:
    """A layer of the encoder with pruned weights, and its input."""
    import numpy as np
    import torch

    from fuseflow.frontend import load_model

    model = load_model(ROOT / "models" / "bert.py", seed=0, options={"small": small, "layers": 1, "sequence": 8 if small else 32})
    rng, side = np.random.default_rng(0), 4 if small else 32
    for name, weight in model.module.named_parameters():
        if weight.dim() == 2:
            rows, columns = weight.shape
            kept = np.kron(rng.random((rows // side, columns // side)) < 0.2, np.ones((side, side), dtype=bool))
            mask = kept | (rng.random((rows, columns)) < 0.01)
            if name.endswith("output.dense.weight"):
                mask &= np.repeat(rng.random(columns // side) < 0.5, side)
            weight.data *= torch.from_numpy(mask)
    return model.module, model.inputs


def collect() -> Data:
    return {step: {k: row[k] for k in ("cycles", "bytes", "config")} for step, row in rows(STORE).items()}


def table(data: Data) -> str:
    full = data.get("full", {}).get("cycles")
    lines = []
    for step in STEPS:
        row = data.get(step, {})
        counts = (cell(row.get(key), ",") for key in ("cycles", "bytes", "config"))
        lines.append([step, *counts, cell(ratio(full, row.get("cycles")), ".1f")])
    return markdown(("", "cycles on `rda`", "bytes read", "bytes of the configuration", "full / cycles"), lines)


def checks(data: Data) -> list[Check]:
    cycles = [data.get(step, {}).get("cycles") for step in reversed(STEPS)]
    read = [data.get(step, {}).get("bytes") for step in reversed(STEPS)]
    return [
        rising("each step takes fewer cycles, from the last to the first", cycles, 0),
        rising("and reads fewer bytes", read, 0),
    ]


def draw(data: Data, figure: Any) -> None:
    plot = figure.subplots()
    steps = [step for step in STEPS if step in data]
    plot.barh(steps, [data[step]["cycles"] for step in steps])
    plot.invert_yaxis()
    plot.set(xlabel="cycles", xscale="log", xlim=(1e6, None))


FIGURE = Figure(STORE, "After Figure 11 of SparTA: a layer of BERT", (STORE,), collect, table, checks, draw, run, size=(9, 3))
