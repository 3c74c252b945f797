"""After Figure 10 of STen: a product of a pruned 768 x 3072 weight with 64 columns, in cycles and bytes, dense, in CSR and n:m.

    python evaluation/figures.py sten_figure10 --run [--only 'csr/*']     # complete the rows, about a minute each

The paper shows milliseconds of a CPU with n:m:g kernels; ours are cycles of a dataflow graph on `rda`, so that no number can be compared.
What can be is the order: n:m moves fewer bytes than CSR at every share, in about as many cycles.
"""

from __future__ import annotations

from typing import Any

from claims import Check, markdown, together
from frame import Data, Figure, Options
from pictures import legend, look
from store import complete, rows

ROWS_OF_WEIGHT, COLUMNS_OF_WEIGHT, BATCH = 768, 3072, 64
SHARES = {0.5: "2:4", 0.75: "1:4", 0.875: "1:8", 0.9: "1:10", 0.95: "1:20"}
"""The shares of the weight that are left out, and the pattern n:m of each."""
STORE = "sten_figure10"
LAYOUTS = ("dense", "csr", "nm")


def points() -> dict[str, tuple[str, float]]:
    """The points by their keys: a layout and a share. A dense weight takes as long at any share."""
    sparse = {f"{layout}/{share}": (layout, share) for layout in LAYOUTS[1:] for share in SHARES}
    return {"dense/0.0": ("dense", 0.0), **sparse}


def run(options: Options) -> None:
    """Complete the rows, one line when each point is done."""
    complete(STORE, points(), lambda key: _measured(*points()[key]), options.only)


def _measured(layout: str, share: float) -> dict[str, Any]:
    import torch
    from torch import nn

    import fuseflow as ff
    import fuseflow.sparsity as sp

    torch.manual_seed(0)
    linear = nn.Linear(ROWS_OF_WEIGHT, COLUMNS_OF_WEIGHT, bias=False)
    n, m = map(int, SHARES.get(share, "1:1").split(":"))
    rule = {"dense": sp.KeepAll(), "csr": sp.Magnitude(share), "nm": sp.NM(n, m)}[layout]
    builder = sp.SparsityBuilder()
    builder.set_weight("weight", rule, out_format=rule.layout)
    compiled = ff.compile(builder.get_sparse_model(linear), (torch.randn(BATCH, ROWS_OF_WEIGHT),))
    result = compiled.run()
    assert result.check is not None and result.check.passed, key_of(layout, share)
    weight = compiled.source.tensors["weight"]
    return {
        "cycles": result.cycles,
        "bytes": sum(result.stats["bytes"][way] for way in ("read", "write")),
        "weight_bytes": weight.nbytes,
    }


def key_of(layout: str, share: float) -> str:
    return f"{layout}/{share}"


def collect() -> Data:
    kept = ("cycles", "bytes", "weight_bytes")
    return {key: {name: row[name] for name in kept} for key, row in sorted(rows(STORE).items())}


def table(data: Data) -> str:
    what = ("cycles", "bytes moved", "bytes of the weight")
    heads = ["left out", "n:m", *(f"{each}, {layout}" for each in what for layout in LAYOUTS)]
    dense, lines = data.get("dense/0.0"), []
    for share, pattern in SHARES.items():
        of_share = [dense, *(data.get(key_of(layout, share)) for layout in LAYOUTS[1:])]
        numbers = [row[name] if row else None for name in ("cycles", "bytes", "weight_bytes") for row in of_share]
        lines.append([f"{share:.1%}", pattern, *("" if number is None else f"{number:,}" for number in numbers)])
    return markdown(heads, lines, 2)


def checks(data: Data) -> list[Check]:
    return [
        together("n:m moves fewer bytes than CSR", [_fewer(data, share, "bytes", "csr") for share in SHARES]),
        together("n:m takes fewer cycles than dense", [_fewer(data, share, "cycles", "dense") for share in SHARES]),
    ]


def _fewer(data: Data, share: float, name: str, than: str) -> Check:
    ours, theirs = data.get(key_of("nm", share)), data.get("dense/0.0" if than == "dense" else key_of(than, share))
    if ours is None or theirs is None:
        return Check(f"{share:.1%}", "not run", None)
    return Check(f"{share:.1%}", f"{ours[name]:,} < {theirs[name]:,}", ours[name] < theirs[name])


def draw(data: Data, figure: Any) -> None:
    for plot, name in zip(figure.subplots(1, 2), ("cycles", "bytes"), strict=True):
        dense = data.get("dense/0.0")
        if dense:
            plot.axhline(dense[name], color="C0", label="dense")
        for n, layout in enumerate(LAYOUTS[1:], 1):
            there = [(share, data[key_of(layout, share)][name]) for share in SHARES if key_of(layout, share) in data]
            plot.plot(*zip(*there, strict=True), label=layout, **look(n, len(LAYOUTS)))
        plot.set(xlabel="share of the weight left out", ylabel=name, ylim=(0, None))
    legend(figure)


FIGURE = Figure(STORE, "After Figure 10 of STen: a product", (STORE,), collect, table, checks, draw, run)
