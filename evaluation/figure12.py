"""Figure 12: how much faster the paper's models are partially and fully fused than unfused, by workload.

    python evaluation/figures.py figure12 --run [--data-dir DIR] [--only 'gcn/cora/*']

The rows on `comal` are those of `model_runs.py`, which has more ways to run them; `--run` completes them, the two full fusions of Collab
only by name. Those on `rda` are of `evaluation.py`, which samples large ones.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import model_runs
from claims import Check, as_published, cell, doubtful, markdown, published, ratio, rising, together, within
from frame import Data, Figure, Options
from model_runs_table import NAMES
from pictures import bars, legend
from store import ROWS, add, left, load, rows, work

from fuseflow.frontend.data import has_files, load_data

SHORT = {"gcn": "GCN", "graphsage": "SAGE", "sae": "SAE", "gpt": "GPT"}
FUSED = model_runs.GRANULARITIES[1:]
MACHINES = ("comal", "rda")
LEFT_OUT = ("gcn/mag", "graphsage/mag")
"""What is not run on `comal`, where the stored cycles of full fusion are 10^11 or more, and not judged there."""
NEAR = 0.05
"""How far closed forms may be off."""


def collect() -> Data:
    """Cycles of all workloads that the paper has, by machine; of graphs what closed forms want."""
    found = rows("models")
    theirs = published("figure12")
    cycles: Data = {machine: {workload: dict.fromkeys(model_runs.GRANULARITIES) for workload in theirs} for machine in MACHINES}
    seconds = dict.fromkeys(MACHINES, 0.0)
    parts: Data = {}
    for row in sorted(found.values(), key=lambda row: "synthetic:" not in row["point"]["data"]):  # files win over stand-ins
        point = row["point"]
        workload = f"{point['model']}/{point['workload']}"
        if workload not in theirs or point["machine"] != "comal" or point["options"]:
            continue
        cycles["comal"][workload][point["granularity"]] = row["cycles"]
        seconds["comal"] += row["seconds"]
        if point["model"] == "gpt" and point["granularity"] == "full":
            parts[workload] = next(iter(row["regions"].values()))
    for row in rows("evaluation").values():
        point = row["point"]
        ran = row["exact_cycles"] or row["sampled_cycles"]["estimate"]
        cycles["rda"][f"{point['model']}/{point['workload']}"][point["granularity"]] = ran
        seconds["rda"] += row["seconds"]
    graphs = {key: row["graph"] for key, row in rows("graphs").items()}
    return {"cycles": cycles, "before_attention": parts, "graphs": graphs, "published": theirs, "seconds": seconds}


def speed(data: Data, machine: str, workload: str, granularity: str) -> float | None:
    cycles = data["cycles"][machine][workload]
    return ratio(cycles["unfused"], cycles[granularity])


def published_speed(data: Data, workload: str, granularity: str) -> float:
    theirs = data["published"][workload]
    return float(theirs[0] / theirs[model_runs.GRANULARITIES.index(granularity)])


def table(data: Data) -> str:
    heads = ["model", "data", *model_runs.GRANULARITIES, *(f"{of}, {g}" for of in ("speed", "published", "rda") for g in FUSED)]
    lines = []
    for workload in data["published"]:
        model, of = workload.split("/")
        cycles = data["cycles"]["comal"][workload]
        marks = " ?" if workload in doubtful("figure12") else ""
        lines.append(
            [
                NAMES[model],
                of,
                *(cell(cycles[g], ",") for g in model_runs.GRANULARITIES),
                *(cell(speed(data, "comal", workload, g)) for g in FUSED),
                *(f"{published_speed(data, workload, g):.2f}{marks}" for g in FUSED),
                *(cell(speed(data, "rda", workload, g)) for g in FUSED),
            ]
        )
    return markdown(heads, lines, 2)


ORDERS = {"gcn": ("full", "unfused", "partial"), "graphsage": ("full", "unfused", "partial"), "gpt": model_runs.GRANULARITIES}
"""The slowest first, as published. The stored cycles of the SAE are of other images."""


def checks(data: Data) -> list[Check]:
    return [*speeds(data), *closed_forms(data), saved(data)]


def speeds(data: Data) -> list[Check]:
    """For each model and machine the order of its granularities, and how much faster than unfused each is."""
    found = []
    for model, machine in product(SHORT, MACHINES):
        of = [w for w in data["published"] if w.startswith(f"{model}/") and not (machine == "comal" and w in LEFT_OUT)]
        names = {w: f"`{w.partition('/')[2]}`" for w in of}
        if model in ORDERS:
            order = ORDERS[model]
            ours = (
                rising(names[w], [speed(data, machine, w, g) for g in order], 2, [published_speed(data, w, g) for g in order])
                for w in of
            )
            found.append(together(f"{NAMES[model]}, {machine}: {' < '.join(order)}", ours))
        for g in FUSED:
            same = (as_published(names[w], speed(data, machine, w, g), published_speed(data, w, g)) for w in of)
            found.append(together(f"{NAMES[model]}, {machine}: {g} over unfused", same))
    return found


def closed_forms(data: Data) -> list[Check]:
    """What recomputation costs, from the degrees: row i of layer 1 again for every edge (n, i)."""
    parts = []
    for of, graph in data["graphs"].items():
        cycles = data["cycles"]["comal"][f"gcn/{of}"]
        expected = graph["squares"] / graph["entries"] / (1 + 7.4 * graph["nodes"] / graph["entries"])
        measured = ratio(cycles["full"], cycles["unfused"])
        parts.append(within(f"`{of}`, {expected:.1f} expected:", measured, expected * (1 - 2 * NEAR), expected * (1 + 2 * NEAR)))
    found = [
        together("GCN: full over unfused cycles within 10 % of d / (1 + 7.4 N / nnz), d the mean degree of neighbours", parts)
    ]
    if "cora" in data["graphs"]:
        form = data["graphs"]["cora"]["features"] * data["graphs"]["cora"]["squares"]
        over = ratio(data["cycles"]["comal"]["gcn/cora"]["full"], form)
        found.append(within(f"GCN `cora`, full: 0.95 to 1.05 of F sum(deg²) = {form:,} cycles", over, 1 - NEAR, 1 + NEAR, 3))
    return found


def saved(data: Data) -> Check:
    """GPT-3 in full runs all regions before attention but one beside those of the decoder before."""
    parts = []
    for workload, part in data["before_attention"].items():
        cycles = data["cycles"]["comal"][workload]
        less = cycles["partial"] - cycles["full"] if cycles["partial"] and cycles["full"] else None
        parts.append(within(f"`{workload.partition('/')[2]}`", ratio(less, 11 * part), 1 - NEAR, 1 + NEAR, 3))
    return together("GPT-3: what full saves over partial is 0.95 to 1.05 of 11 regions before attention", parts)


def draw(data: Data, figure: Any) -> None:
    workloads = list(data["published"])
    names = [f"{SHORT[model]} {of}" for model, of in (w.split("/") for w in workloads)]
    theirs = {g: [published_speed(data, w, g) for w in workloads] for g in FUSED}
    for axes, machine in zip(figure.subplots(2, 1, sharex=True), MACHINES, strict=True):
        ours = {g: [speed(data, machine, w, g) for w in workloads] for g in FUSED}
        bars(axes, names, ours, theirs if machine == "comal" else None, base=1)
        axes.axhline(1, color="black", linewidth=0.6)
        axes.set(yscale="log", ylim=(0.008, 6), ylabel="speed over unfused", title=machine)
        axes.set_yticks([0.01, 0.1, 1, 2, 4], ["0.01", "0.1", "1", "2", "4"])
    legend(figure, title="what is fused")


def run(options: Options) -> None:
    for graph in model_runs.GRAPHS:
        measure(graph, options)
    store = ROWS / "models.jsonl"
    known = load(store, model_runs.Row)
    asked = [p for p in model_runs.points("comal", options.data_dir, 12) if model_runs.wanted(p, options.only)]
    work(left(asked, known), lambda point: model_runs.run(point, options.data_dir, options.limit), store, known)


def measure(name: str, options: Options) -> None:
    """What closed forms want of a graph of the paper: one row."""
    if name in rows("graphs") or f"gcn/{name}" not in published("figure12"):
        return
    real = options.data_dir is not None and has_files(name, options.data_dir)
    data = load_data(name if real else f"synthetic:{name}", options.data_dir if real else None)
    into, out = data.edges.sum(axis=0), data.edges.sum(axis=1)
    squares = int((into.astype("int64") * out.astype("int64")).sum())
    graph = {"nodes": data.nodes, "entries": int(data.edges.nnz), "squares": squares, "features": int(data.inputs.shape[1])}
    add("graphs", {"key": name, "data": name if real else f"synthetic:{name}", "graph": graph})


ABOUT = ("figure12", "Figure 12, models unfused, partially and fully fused", ("models", "graphs"))
FIGURE = Figure(*ABOUT, collect, table, checks, draw, run, size=(11, 7.5))
