"""Table 3: how many dataflow orders the fully fused GCN and GraphSAGE have, counted under the paper's rule and with equal views merged.

python evaluation/figures.py table3 --run
"""

from __future__ import annotations

import math
import time
from typing import Any

from claims import Check, doubtful, markdown, published, within
from frame import Data, Figure, Options
from model_runs_table import NAMES
from store import ROOT, rows, write

from fuseflow.frontend.model_spec import ModelSpec
from fuseflow.frontend.sources import load
from fuseflow.fusion.order_counts import OrderCount, count_legal, count_merged, count_reference
from fuseflow.lower.program import lower
from fuseflow.schedule import Schedule

MODELS = ("gcn", "graphsage")
RULES = {"reference": "the paper's rule", "merged": "equal views merged", "legal": "as compiled here"}
EXPECTED = {
    "gcn": (math.factorial(18), math.factorial(16) // math.factorial(4) ** 4),
    "graphsage": (math.factorial(11), math.comb(9, 4) * 3 * 3),
}
"""What the counts come to in closed form; for the checks only."""


def collect() -> Data:
    found = rows("orders")
    return {"orders": {model: found.get(model) for model in MODELS}, "published": published("table3"), "seconds": {}}


def table(data: Data) -> str:
    lines = []
    for model, row in data["orders"].items():
        for rule, title in RULES.items():
            of = row[rule] if row else {}
            counts = [f"{of[what]:,}" if of else "" for what in ("variables", "unconstrained", "constrained")]
            theirs = [f"{n:,}" for n in data["published"][model]] if rule == "reference" else ["", ""]
            if model in doubtful("table3") and rule == "reference":
                theirs[0] += " ?"
            lines.append([NAMES[model], title, *counts, *theirs])
    return markdown(
        ["model", "counted", "variables", "unconstrained", "constrained", "published unconstrained", "constrained"], lines, 2
    )


def checks(data: Data) -> list[Check]:
    found = []
    for model, closed in EXPECTED.items():
        row = data["orders"][model]
        for what, expected, theirs in zip(("unconstrained", "constrained"), closed, data["published"][model], strict=True):
            ours = row["reference"][what] if row else None
            said = "not counted" if ours is None else f"{ours:,}"
            found.append(
                Check(f"{NAMES[model]}, the paper's rule: {what}", said, None if ours is None else ours == theirs, f"{theirs:,}")
            )
            found.append(
                Check(f"{NAMES[model]}, in closed form: {what}, {expected:,}", said, None if ours is None else ours == expected)
            )
    if row := data["orders"]["gcn"]:
        legal, compiled = row["legal"]["constrained"], row["compiled"]
        found.append(Check("GCN, as compiled here: every order compiles", f"{compiled} of {legal}", compiled == legal))
    merged = [(row["merged"]["variables"], row["merged"]["constrained"]) if row else None for row in data["orders"].values()]
    wanted = [(6, 1), (11, EXPECTED["graphsage"][1])]
    found.append(
        Check("merged: 6 variables and 1 order, 11 and 1,134", str(merged), None if None in merged else merged == wanted)
    )
    times = [row["milliseconds"] for row in data["orders"].values() if row]
    found.append(within("milliseconds, below 1,000", max(times, default=None), 0, 1000, digits=0))
    return found


def run(options: Options) -> None:
    write("orders", map(count, MODELS))


def count(model: str) -> dict[str, Any]:
    """A row: the counts of the model as one region. They depend on the program and its formats only."""
    source = load(ModelSpec(ROOT / "models" / "paper" / f"{model}.py", data="karate"))
    schedule = Schedule.load(ROOT / "schedules" / f"{model}_full.yaml")
    program, (compiled,) = lower(source.program, schedule, source.tensors)
    stored = {t.name: t for t in program.tensors if t.name not in program.defined}
    start = time.perf_counter()
    counts = {
        "reference": count_reference(program, compiled.fused, stored),
        "merged": count_merged(program, compiled.fused, stored),
        "legal": count_legal(compiled.fused),
    }
    took = round(1000 * (time.perf_counter() - start), 1)
    plain = {rule: _plain(counted) for rule, counted in counts.items()}
    _, (best,) = lower(source.program, schedule.lower(order_policy="best"), source.tensors)
    compared = best.fused.compared
    can = sum(order.cost is not None for order in compared) if compared.extent == "all" else None
    return {"key": model, **plain, "compiled": can, "milliseconds": took}


def _plain(counted: OrderCount) -> dict[str, int]:
    assert counted.constrained.exact
    return {"variables": counted.variables, "unconstrained": counted.unconstrained, "constrained": counted.constrained.orders}


FIGURE = Figure("table3", "Table 3, numbers of dataflow orders", ("orders",), collect, table, checks, run=run)
