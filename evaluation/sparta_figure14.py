"""After figure 14 of SparTA: what share of the weights of MobileNetV1 is superfluous once pruning has been propagated.

    python evaluation/figures.py sparta_figure14 --run    # compute the rows again, about a minute

Weights are random, so that only which filters are pruned together matters, and not which ones. The paper's 89.7 % at one half of the
filters comes from pruning depthwise and pointwise filters *without coordination*: a depthwise filter is of use only if the pointwise
filter before it stays, which one in two does. If a depthwise layer is pruned like the layer before it (`aligned`), 73.7 % is superfluous.
"""

from __future__ import annotations

from statistics import mean
from typing import Any

from claims import Check, cell, markdown, published, within
from frame import Data, Figure, Options
from store import ROOT, rows, write

STORE = "sparta_figure14"
CASES = {
    "filters 50 %": ("filter", 0.5, 64, range(20)),
    "filters 50 %, aligned": ("aligned", 0.5, 64, range(3)),
    "filters 70 %": ("filter", 0.7, 64, range(2)),
    "filters 90 %": ("filter", 0.9, 64, range(6)),
    "elements 50 %": ("level", 0.5, 64, range(2)),
    "elements 90 %": ("level", 0.9, 64, range(3)),
    "elements 90 %, 224 x 224": ("level", 0.9, 224, range(2)),
}
"""How weights are pruned, the share, the side of the image, and the seeds."""
NOTES = {
    "filters 50 %": "depthwise and pointwise filters are pruned without coordination",
    "filters 50 %, aligned": "a depthwise layer is pruned like the layer before it",
}


def network(seed: int, side: int) -> tuple[Any, Any]:
    """The network with the weights of a seed, and one image."""
    from fuseflow.frontend import load_model

    model = load_model(ROOT / "models" / "mobilenet.py", seed=seed, options={"side": side})
    return model.module, model.inputs


def masks(model: Any, how: str, share: float) -> dict[str, Any]:
    """Masks of the weights. `level` prunes elements of every layer, and the others filters of convolutions: `filter` those of each by
    itself, and `aligned` those of a depthwise one as those before it."""
    import fuseflow.sparsity as sp

    found: dict[str, Any] = {}
    kept = None
    for name, weight in model.named_parameters():
        if how == "level":
            found[name] = sp.Magnitude(share).select(weight.detach())
        elif weight.dim() == 4:
            if how == "filter" or kept is None or ".dw." not in name:
                kept = sp.Filter(share).select(weight.detach())[:, :1, :1, :1]
            found[name] = kept.expand_as(weight)
    return found


def superfluous(how: str, share: float, side: int, seed: int) -> float:
    """The share of the weights that is dead."""
    from fuseflow.frontend.model_propagation import analyse_module

    model, inputs = network(seed, side)
    return analyse_module(model, inputs, masks(model, how, share)).total().dead_share


def run(options: Options) -> None:
    """Compute every row."""
    write(STORE, (measured(key) for key in CASES))


def measured(key: str) -> Data:
    how, share, side, seeds = CASES[key]
    shares = [round(superfluous(how, share, side, seed), 6) for seed in seeds]
    return {"key": key, "pruned": share, "side": side, "superfluous": shares}


def collect() -> Data:
    found = {key: {k: row[k] for k in ("pruned", "side", "superfluous")} for key, row in rows(STORE).items()}
    return {"ours": found, "published": published(STORE)}


def table(data: Data) -> str:
    lines = []
    for key, row in data["ours"].items():
        shares, theirs = row["superfluous"], data["published"].get(key)
        counts = (f"{min(shares):.4f} to {max(shares):.4f}", f"{len(shares)}", cell(mean(shares), ".4f"), cell(theirs, ".3f"))
        lines.append([key, NOTES.get(key, ""), *counts])
    return markdown(("pruned", "", "superfluous", "seeds", "mean", "published"), lines, 2)


def checks(data: Data) -> list[Check]:
    ours = {key: row["superfluous"] for key, row in data["ours"].items()}
    means = {key: mean(ours[key]) if key in ours else None for key in CASES}
    dead = [seed for seed, share in enumerate(ours.get("filters 90 %", ())) if share == 1]
    theirs = data["published"]
    return [
        within("filters 50 %, pruned without coordination", means["filters 50 %"], 0.894, 0.903, 4, theirs["filters 50 %"]),
        within("filters 50 %, aligned: 0.737, not 0.897", means["filters 50 %, aligned"], 0.7368, 0.7378, 4),
        Check("filters 90 %: 4 of 6 networks wholly dead", f"seeds {dead}", len(dead) == 4 if ours else None, "1.0"),
        within("elements 90 %", means["elements 90 %"], 0.9522, 0.9532, 4, theirs["elements 90 %"]),
        within(
            "elements 90 %, 224 x 224", means["elements 90 %, 224 x 224"], 0.951, 0.954, 4, theirs["elements 90 %, 224 x 224"]
        ),
    ]


def draw(data: Data, figure: Any) -> None:
    plot = figure.subplots()
    keys = list(data["ours"])
    plot.barh(keys, [mean(data["ours"][key]["superfluous"]) for key in keys], label="ours")
    there = [(data["published"][key], key) for key in keys if key in data["published"]]
    hollow = {"marker": "D", "facecolors": "none", "edgecolors": "black", "zorder": 3}
    plot.scatter([x for x, _ in there], [key for _, key in there], label="published", **hollow)
    for key, note in NOTES.items():
        if key in keys:
            plot.text(0.01, keys.index(key), note, va="center", color="white", fontsize="small")
    plot.invert_yaxis()
    plot.set(xlabel="share of the weights that is superfluous", xlim=(0, 1.02))
    plot.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, fontsize="small")


FIGURE = Figure(STORE, "After figure 14 of SparTA: MobileNetV1", (STORE,), collect, table, checks, draw, run)
