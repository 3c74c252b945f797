"""Figure 14: FLOPs, accesses and bytes of the GCN in five configurations, over unfused, and how many FLOPs there are for an access.

    python evaluation/figures.py figure14 --run [--only '*/cora_ml/*']

Everything is counted by the estimate, from the tensors and exactly; points that were executed say the same, or it is an error. Accesses
are what the paper's simulator prints: value reads, coordinate writes and value writes, where a value counts as often as it is used
(`repeat: reference`). Bytes are all that the memory is asked for, under the default (`repeat: value`).
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import product
from typing import Any

import model_runs
from claims import Check, as_published, cell, markdown, published, together
from frame import Data, Figure, Options
from pictures import bars, legend
from store import ROOT, ROWS, add, left, like, load, rows, work

from fuseflow.estimate.program import Estimator
from fuseflow.estimate.region_conversion import estimator_regions
from fuseflow.frontend.model_spec import ModelSpec
from fuseflow.frontend.sources import load as load_model
from fuseflow.lower.program import lower
from fuseflow.schedule import Schedule
from fuseflow.sim import load_machine

GRAPHS = ("cora_ml", "dblp", "collab")
CONFIGURATIONS = ("full", "layer1", "layer2", "both", "unfused")
GRANULARITY = {"unfused": "unfused", "both": "partial", "full": "full"}
"""What `model_runs.py` calls them; its rows have the bytes."""
LONG = ("collab", "full")
"""What is counted only: 56 billion cycles."""
TITLES = {"flops": "FLOPs", "accesses": "accesses", "bytes": "bytes", "intensity": "intensity: FLOPs an access"}
WORD = 4
"""Bytes of a value, and of a coordinate."""
MACHINE = "comal"


def collect() -> Data:
    """By graph and configuration: FLOPs, accesses and bytes; of those that were executed, whether they took the same."""
    counted, ran, models_ran = rows("gcn_counts"), rows("gcn"), rows("models")
    found: Data = {graph: {} for graph in GRAPHS}
    executed: Data = {graph: {} for graph in GRAPHS}
    seconds = 0.0
    for graph in GRAPHS:
        for configuration in CONFIGURATIONS:
            row = counted.get(key_of(data_of(graph), configuration))
            if row is None:
                continue
            found[graph][configuration] = {name: row[name] for name in ("flops", "accesses", "bytes", "exact")}
            same = []
            if run := ran.get(point(graph, configuration).key):
                same.append((run["flops"], run["arrays"]) == (row["flops"], row["arrays"]))
                seconds += run["seconds"]
            if run := models_ran.get(f"gcn/{data_of(graph)}/{GRANULARITY.get(configuration)}/{MACHINE}"):
                same.append((run["flops"], run["bytes_read"] + run["bytes_written"]) == (row["flops"], row["bytes"]))
            if same:
                executed[graph][configuration] = all(same)
            seconds += row["seconds"]
    return {"work": found, "executed": executed, "published": published("figure14"), "seconds": {MACHINE: seconds}}


def over_unfused(data: Data, graph: str, configuration: str, what: str) -> float | None:
    of = data["work"][graph]
    if configuration not in of or "unfused" not in of:
        return None
    return float(of[configuration][what] / of["unfused"][what])


def intensity(data: Data, graph: str, configuration: str) -> float | None:
    """FLOPs for an access, over unfused."""
    flops, accesses = (over_unfused(data, graph, configuration, what) for what in ("flops", "accesses"))
    return flops / accesses if flops and accesses else None


def theirs(data: Data, graph: str, configuration: str, what: str) -> float:
    at = CONFIGURATIONS.index(configuration)
    if what == "intensity":
        return theirs(data, graph, configuration, "flops") / theirs(data, graph, configuration, "accesses")
    numbers = data["published"][what][graph]
    return float(numbers[at] / numbers[CONFIGURATIONS.index("unfused")])


def table(data: Data) -> str:
    heads = (
        "data | fused | FLOPs | accesses | bytes | FLOPs over unfused | published | accesses over unfused | published | "
        "bytes over unfused | intensity | published | executed"
    )
    lines = []
    for graph in GRAPHS:
        for configuration in CONFIGURATIONS:
            of = data["work"][graph].get(configuration, {})
            same = data["executed"][graph].get(configuration)
            lines.append(
                [
                    graph,
                    configuration,
                    *(cell(of.get(what), ",") for what in ("flops", "accesses", "bytes")),
                    cell(over_unfused(data, graph, configuration, "flops"), ".3f"),
                    f"{theirs(data, graph, configuration, 'flops'):.3f}",
                    cell(over_unfused(data, graph, configuration, "accesses"), ".3f"),
                    f"{theirs(data, graph, configuration, 'accesses'):.3f}",
                    cell(over_unfused(data, graph, configuration, "bytes"), ".3f"),
                    cell(intensity(data, graph, configuration)),
                    f"{theirs(data, graph, configuration, 'intensity'):.2f}",
                    {True: "the same", False: "**others**", None: ""}[same],
                ]
            )
    return markdown(heads, lines, 2)


def checks(data: Data) -> list[Check]:
    found = []
    for configuration, what in product(CONFIGURATIONS[:-1], ("flops", "accesses", "intensity")):
        ours = [
            intensity(data, g, configuration) if what == "intensity" else over_unfused(data, g, configuration, what)
            for g in GRAPHS
        ]
        parts = [as_published(f"`{g}`", n, theirs(data, g, configuration, what)) for g, n in zip(GRAPHS, ours, strict=True)]
        found.append(together(f"{configuration}: {what} over unfused", parts))
    points = [(g, c, same) for g, of in data["executed"].items() for c, same in of.items()]
    others = [f"{g} {c}" for g, c, same in points if not same]
    said = f"{len(points) - len(others)} of {len(points)} points"
    return [*found, Check("what was executed counts the same", said, not others if points else None)]


def draw(data: Data, figure: Any) -> None:
    shown = CONFIGURATIONS[:-1]
    for axes, (what, title) in zip(figure.subplots(1, 4), TITLES.items(), strict=True):
        ours: dict[str, list[float | None]] = {}
        for c in shown:
            ours[c] = [intensity(data, g, c) if what == "intensity" else over_unfused(data, g, c, what) for g in GRAPHS]
        known = {c: [theirs(data, g, c, what) for g in GRAPHS] for c in shown} if what != "bytes" else None
        bars(axes, GRAPHS, ours, known, base=1)
        axes.axhline(1, color="black", linewidth=0.6)
        if what != "intensity":
            axes.set(yscale="log", ylim=(0.5, 200))
        axes.set(title=title, ylabel="over unfused (1: the same)")
    legend(figure, title="what is fused")


# Rows ------------------------------------------------------------------------------------------------------------------------


def data_of(graph: str) -> str:
    return f"synthetic:{graph}"


def key_of(data: str, configuration: str) -> str:
    return f"gcn/{data}/figure14/{configuration}"


def point(graph: str, configuration: str) -> model_runs.Point:
    return model_runs.Point("gcn", graph, data_of(graph), f"figure14/{configuration}", MACHINE)


def run(options: Options) -> None:
    """Count all that has no row, then execute."""
    known = rows("gcn_counts")
    for graph in GRAPHS:
        keys = {c: key_of(data_of(graph), c) for c in CONFIGURATIONS}
        missing = [c for c, key in keys.items() if key not in known and like(key, options.only)]
        for row in count(data_of(graph), missing) if missing else ():
            add("gcn_counts", row)
    executed = load(ROWS / "gcn.jsonl", model_runs.Row)
    points = [point(g, c) for c in reversed(CONFIGURATIONS) for g in GRAPHS if (g, c) != LONG]
    todo = left([p for p in points if like(p.key, options.only)], executed)
    work(todo, lambda p: model_runs.run(p, None, options.limit), ROWS / "gcn.jsonl", executed)


def count(data: str, configurations: list[str]) -> Iterator[dict[str, Any]]:
    """Rows: what the data take in each configuration. `once`: with values read once and then repeated."""
    source = load_model(ModelSpec(ROOT / "models" / "paper" / "gcn.py", data=data))
    estimator, machine = Estimator(), load_machine(MACHINE)
    for configuration in configurations:
        start = time.perf_counter()
        schedule = Schedule.load(ROOT / "schedules" / "paper" / "figure14" / f"{configuration}.yaml")
        moved = []
        for way in (schedule, schedule.lower(repeat="value")):
            program, regions = lower(source.program, way, source.tensors)
            found = estimator.estimate(estimator_regions(regions), program, source.tensors, machine)
            moved.append(model_runs.by_array(found.stats["bytes"]["by_tensor"]))
        arrays, once = moved
        yield {
            "key": key_of(data, configuration),
            "exact": found.exact,
            "flops": round(found.flops),
            "accesses": (arrays["val"]["read"] + arrays["val"]["write"] + arrays["crd"]["write"]) // WORD,
            "arrays": arrays,
            "bytes": sum(sum(both.values()) for both in once.values()),
            "seconds": round(time.perf_counter() - start, 2),
        }


ABOUT = ("figure14", "Figure 14, work of the GCN in five configurations", ("gcn_counts", "gcn", "models"))
FIGURE = Figure(*ABOUT, collect, table, checks, draw, run, size=(13, 4))
