"""Table 2: how far the estimate is from the runs of the models on Collab's size, and whether it picks what the runs rank first.

The rows are those of `estimate_errors.py`. The paper's heuristic knows statistics; so does the estimate where it is told to, and it is
also given the tensors.
"""

from __future__ import annotations

from itertools import groupby
from typing import Any

import estimate_errors as study
from claims import Check, at_most, cell, markdown, published, together, within
from frame import Data, Figure
from model_runs_table import NAMES
from store import rows

WORKLOADS = {"gpt": "bigbird:block=16", "gcn": "synthetic:collab", "graphsage": "synthetic:collab"}
MACHINE = "comal"
KINDS = ("tensors", "statistics")
WHAT = ("flops", "bytes")


def collect() -> Data:
    """Mean absolute errors in percent over the granularities that were run; what ranks first; milliseconds."""
    ran = rows("models")
    estimated = [with_run(row, ran.get(row["key"])) for row in sorted(rows("estimate").values(), key=study.position)]
    errors: Data = {}
    for model, data in WORKLOADS.items():
        of = [r for r in estimated if r["run"] and r["point"]["data"] == data and _of(r) == (model, MACHINE, [])]
        mean = {kind: {what: _mean([abs(study.error(row, kind, what)) for row in of]) for what in WHAT} for kind in KINDS}
        errors[model] = {**mean, "points": len(of), "first_ms": max((r["statistics"]["first_ms"] for r in of), default=None)}
    return {"errors": errors, "picks": _picks(estimated), "published": published("table2"), "seconds": {}}


def with_run(row: dict[str, Any], ran: dict[str, Any] | None) -> dict[str, Any]:
    """The run may have come after the estimate."""
    if ran is None:
        return {**row, "run": None}
    return {**row, "run": {"flops": ran["flops"], "bytes": ran["bytes_read"] + ran["bytes_written"], "cycles": ran["cycles"]}}


def _of(row: dict[str, Any]) -> tuple[str, str, list[str]]:
    point = row["point"]
    return point["model"], point["machine"], point["options"]


def _mean(errors: list[float]) -> float | None:
    return sum(errors) / len(errors) if errors else None


def _picks(estimated: list[dict[str, Any]]) -> Data:
    """Of every model, data and machine with two runs or more: whether the least estimate is of the fastest run."""
    found: Data = {kind: {"right": 0, "of": 0, "misses": []} for kind in KINDS}
    for place, group in groupby((row for row in estimated if row["run"]), key=lambda row: study.position(row)[:4]):
        points = list(group)
        if len(points) < 2:
            continue
        fastest = min(points, key=lambda row: row["run"]["cycles"])
        for kind in KINDS:
            right = min(points, key=lambda row, kind=kind: row[kind]["cycles"])["key"] == fastest["key"]  # type: ignore[misc]
            found[kind]["right"] += right
            found[kind]["of"] += 1
            if not right:
                found[kind]["misses"].append(" ".join(map(str, place[:3])))
    return found


def table(data: Data) -> str:
    heads = ["model", "data", *(f"{what}, {kind}" for kind in KINDS for what in ("FLOPs", "bytes"))]
    heads += ["published FLOPs", "bytes", "runs", "ms"]
    lines = []
    for model, of in data["errors"].items():
        ours = [f"{cell(of[kind][what])} %" for kind in KINDS for what in WHAT]
        theirs = [f"{number} %" for number in data["published"][model]]
        lines.append([NAMES[model], f"`{WORKLOADS[model]}`", *ours, *theirs, str(of["points"]), cell(of["first_ms"], ".0f")])
    return markdown(heads, lines, 2)


def checks(data: Data) -> list[Check]:
    found = []
    for n, what in enumerate(WHAT):
        parts = [at_most(NAMES[m], of["statistics"][what], data["published"][m][n]) for m, of in data["errors"].items()]
        found.append(together(f"error of {what} from statistics in percent, at most the published one", parts))
    parts = [within(f"{NAMES[m]} {what}", of["tensors"][what], 0, 0) for m, of in data["errors"].items() for what in WHAT]
    found.append(together("0 % off from tensors", parts))
    for kind, picks in data["picks"].items():
        said = f"{picks['right']} of {picks['of']} models, data and machines" + "".join(
            f"; not {miss}" for miss in picks["misses"]
        )
        found.append(
            Check(f"from {kind}: the least estimate is of the fastest run", said, not picks["misses"] if picks["of"] else None)
        )
    return found


FIGURE = Figure(
    "table2",
    "Table 2, errors of the estimate",
    ("estimate",),
    collect,
    table,
    checks,
    how="python evaluation/estimate_errors.py --runs evaluation/rows/models.jsonl --extra --store evaluation/rows/estimate.jsonl",
)
