"""Figure 13: cycles of circuits over those of the simulator, for the kernels of three models.

    python evaluation/figures.py figure13 --run [--only 'gcn/*']

The kernels are the regions of a GCN (unfused, partially and fully fused), of GraphSAGE (unfused, partially fused), and of the attention
block of a decoder of GPT-3 (unfused, sequence length 64). Each runs as a circuit on what it really reads, on the machine `rtl`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import log10
from typing import Any

from claims import Check, markdown, published, within
from frame import Data, Figure, Options
from store import ROOT, add, like, rows

import fuseflow as ff
from fuseflow.hardware.cosimulate import Cosimulation, cosimulate
from fuseflow.hardware.rtl_simulators import PYTHON
from fuseflow.schedule import Schedule
from fuseflow.sim import Simulation

MACHINE = "rtl"


@dataclass(frozen=True, slots=True)
class Kernels:
    """The regions of a model with a schedule. `last` names the last region of those that count, all if it is ""."""

    name: str
    model: str
    schedule: str
    data: str
    part: str = ""
    last: str = ""


SEQUENCE = "bigbird:block=8,length=64,features=8"
MODELS = (
    Kernels("gcn/unfused", "gcn", "gcn_unfused", "karate"),
    Kernels("gcn/partial", "gcn", "gcn_partial", "karate"),
    Kernels("gcn/full", "gcn", "gcn_full", "karate"),
    Kernels("graphsage/unfused", "graphsage", "graphsage_unfused", "karate"),
    Kernels("graphsage/partial", "graphsage", "graphsage_partial", "karate"),
    Kernels("gpt/unfused", "gpt_bigbird", "gpt_unfused", SEQUENCE, "decoder", last="h.0.add"),
)
NAMES = {"gcn": "GCN", "graphsage": "GraphSAGE", "gpt": "GPT-3"}
COUNTS = {"gcn": 11, "graphsage": 13, "gpt": 17}
"""The kernels of each model."""


def collect() -> Data:
    kernels = {
        key: {name: row[name] for name in ("cycles", "simulator_cycles", "firings", "tokens", "equal")}
        for key, row in rows("cosimulated").items()
    }
    seconds = sum(row["seconds"] for row in rows("cosimulated").values())
    return {"kernels": kernels, "published": published("figure13"), "seconds": {MACHINE: seconds}}


def of_model(data: Data, model: str) -> dict[str, Any]:
    return {key: row for key, row in data["kernels"].items() if key.partition("/")[0] == model}


def table(data: Data) -> str:
    lines = []
    for model, name in NAMES.items():
        found = of_model(data, model).values()
        cycles = [row["simulator_cycles"] for row in found]
        sums = [sum(row[what] for row in found) for what in ("firings", "tokens", "cycles", "simulator_cycles")]
        span = f"{min(cycles):,} to {max(cycles):,}" if cycles else ""
        lines.append([name, str(len(cycles)), span, *(f"{number:,}" for number in sums)])
    return markdown(
        ("model", "kernels", "cycles of one", "firings", "tokens compared", "cycles of the circuits", "of the simulator"),
        lines,
        1,
    )


def checks(data: Data) -> list[Check]:
    found = [within(f"{NAMES[m]}: kernels", len(of_model(data, m)) or None, count, count, 0) for m, count in COUNTS.items()]
    kernels = data["kernels"].values()
    wrong = sum(not row["equal"] or row["cycles"] != row["simulator_cycles"] for row in kernels) if kernels else None
    found.append(within("kernels in which a token or a cycle differs", wrong, 0, 0, 0))
    return [*found, within("R² of cycles is 1", correlation(data), 1, 1, 6, data["published"]["r2"])]


def correlation(data: Data) -> float | None:
    """R² of the cycles of circuits by those of the simulator, as the share of their variance that these say."""
    pairs = [(row["cycles"], row["simulator_cycles"]) for row in data["kernels"].values()]
    if not pairs:
        return None
    mean = sum(cycles for cycles, _ in pairs) / len(pairs)
    unexplained = sum((cycles - simulated) ** 2 for cycles, simulated in pairs)
    return 1 - unexplained / sum((cycles - mean) ** 2 for cycles, _ in pairs)


def draw(data: Data, figure: Any) -> None:
    axes = figure.subplots(1, 1)
    for model, name in NAMES.items():
        found = of_model(data, model).values()
        axes.scatter([row["simulator_cycles"] for row in found], [row["cycles"] for row in found], s=22, label=name)
    most = 10 ** (int(log10(max([1000, *(row["cycles"] for row in data["kernels"].values())]))) + 1)
    axes.plot([100, most], [100, most], color="black", linewidth=0.6, label="equal")
    axes.set(xscale="log", yscale="log", xlabel="cycles of the simulator", ylabel="cycles of the circuit")
    axes.legend(fontsize="small")


def run(options: Options) -> None:
    known = rows("cosimulated")
    for kernels in MODELS:
        if like(kernels.name, options.only) and not any(key.startswith(f"{kernels.name}/") for key in known):
            compare(kernels, keep)


def compare(
    kernels: Kernels,
    report: Callable[[Kernels, str, Cosimulation, float], None],
    tool: str = PYTHON,
    machine: str | ff.sim.Machine = MACHINE,
) -> None:
    """Run the regions of a model as circuits beside the simulator, and report each with the processor seconds that it took."""
    schedule = Schedule.load(ROOT / "schedules" / f"{kernels.schedule}.yaml")
    given = {"small": True, "part": kernels.part} if kernels.part else {}
    model = ROOT / "models" / f"{kernels.model}.py"
    compiled = ff.compile(model, data=kernels.data, options=given, schedule=schedule, machine=machine)
    names = [region.name for region in compiled.regions]
    left = names[: names.index(kernels.last) + 1] if kernels.last else names

    def execute(graph: Any, tensors: Mapping[str, Any], machine: Any, *_: Any, **__: Any) -> Simulation:
        if not left:
            return ff.sim.simulate(graph, tensors, machine)
        start = time.process_time()
        compared = cosimulate(graph, tensors, machine, tool)
        assert compared.simulation is not None, "kernels have no deadlocks"
        report(kernels, left.pop(0), compared, time.process_time() - start)
        return compared.simulation

    compiled.run(check=False, dedup=False, execute=execute)


def keep(kernels: Kernels, region: str, compared: Cosimulation, seconds: float) -> None:
    row = {
        "key": f"{kernels.name}/{region}",
        "machine": MACHINE,
        "nodes": compared.nodes,
        "firings": compared.firings,
        "tokens": compared.tokens,
        "cycles": compared.cycles,
        "simulator_cycles": compared.simulator_cycles,
        "equal": compared.difference is None,
        "seconds": round(seconds, 2),
    }
    add("cosimulated", row)


ABOUT = ("figure13", "Figure 13, cycles of circuits and of the simulator", ("cosimulated",))
FIGURE = Figure(*ABOUT, collect, table, checks, draw, run, size=(6, 4))
