"""Figure 7 of STen: how much magnitude each way to choose 1 of 2 up to 1 of 10 entries keeps of a matrix.

    python evaluation/figures.py sten_figure7 --run    # compute the rows again, about 20 s

The paper shows weights of BERT, which are not in the repository. Here are Gaussian matrices of 192 x 768 and of 768 x 3072, the shape of
the first layer of a feed-forward block. So the values are others; their order is the paper's.
"""

from __future__ import annotations

from typing import Any

from claims import Check, cell, markdown, rising, together
from frame import Data, Figure, Options
from pictures import legend, look
from store import rows, write

PATTERNS = ((1, 2), (2, 4), (3, 6), (1, 4), (1, 8), (1, 10))
SHAPES = {"192 x 768": (192, 768), "768 x 3072": (768, 3072)}
GROUPS, BLOCKS = (1, 4, 16), (4, 8, 32)
WAYS = ("unstructured", "n:m", *(f"n:m:g, g = {g}" for g in reversed(GROUPS)), *(f"blocks {b} x {b}" for b in BLOCKS))
STORE = "sten_figure7"


def run(options: Options) -> None:
    """Compute every row."""
    import torch

    import fuseflow.sparsity as sp

    made = []
    for name, shape in SHAPES.items():
        weight = torch.randn(shape, generator=torch.Generator().manual_seed(0))
        for n, m in PATTERNS:
            share = 1 - n / m
            rules: dict[str, Any] = {"unstructured": sp.Magnitude(share), "n:m": sp.NM(n, m, dim=0)}
            rules |= {f"n:m:g, g = {g}": sp.NMG(n, m, g) for g in GROUPS}
            rules |= {f"blocks {b} x {b}": sp.BlockMagnitude(share, (b, b)) for b in BLOCKS}
            values = {way: round(sp.energy(weight.numpy(), rule.select(weight).numpy()), 5) for way, rule in rules.items()}
            made.append({"key": f"{name} {n}:{m}", "shape": name, "pattern": f"{n}:{m}", "energy": values})
    write(STORE, made)


def collect() -> Data:
    return {key: {k: row[k] for k in ("shape", "pattern", "energy")} for key, row in rows(STORE).items()}


def table(data: Data) -> str:
    lines = [[row["shape"], row["pattern"], *(cell(row["energy"].get(way), ".4f") for way in WAYS)] for row in data.values()]
    return markdown(("matrix", "kept", *WAYS), lines, 2)


def checks(data: Data) -> list[Check]:
    order = [rising(key, [row["energy"].get(way) for way in reversed(WAYS[:6])], 4) for key, row in data.items()]
    return [together("blocks of 4 x 4 < n:m:g, which rises with g, < n:m < unstructured, as in the paper", order)]


def draw(data: Data, figure: Any) -> None:
    axes = figure.subplots(1, len(SHAPES), sharey=True)
    for plot, shape in zip(axes, SHAPES, strict=True):
        of_shape = [row for row in data.values() if row["shape"] == shape]
        places = range(len(of_shape))
        for n, way in enumerate(WAYS):
            plot.plot(places, [row["energy"][way] for row in of_shape], label=way, **look(n, len(WAYS)))
        plot.set_xticks(places, [row["pattern"] for row in of_shape])
        plot.set(title=shape, xlabel="entries kept", ylabel="share of the energy that is kept", ylim=(0, 1))
    legend(figure)


FIGURE = Figure(STORE, "Figure 7 of STen: energies", (STORE,), collect, table, checks, draw, run)
