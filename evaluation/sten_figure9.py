"""After figure 9 of STen: how long a step of training takes with fixed and with new masks, beside a dense one.

    python evaluation/figures.py sten_figure9 --run    # measure again with tools/bench/sparse_step.py, about a minute

Times are of one core of the computer that measured, so that only their ratios say something. The paper
measured other models on other hardware.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from claims import Check, cell, markdown, within
from frame import Data, Figure, Options
from store import ROOT, rows, write

STORE = "sten_figure9"


def run(options: Options) -> None:
    """Measure every case."""
    bench = [sys.executable, str(ROOT / "tools" / "bench" / "sparse_step.py"), "--json", "-"]
    printed = subprocess.run(bench, check=True, capture_output=True, text=True).stdout
    write(STORE, json.loads(printed)["cases"])


def collect() -> Data:
    return {key: {"ms": row["ms"], "ratio": row["ratio"]} for key, row in rows(STORE).items()}


def table(data: Data) -> str:
    lines = [[key, cell(row["ms"], ".1f"), cell(row["ratio"])] for key, row in data.items()]
    return markdown(("masks", "milliseconds a step", "times a dense step"), lines)


def checks(data: Data) -> list[Check]:
    fixed = {key: row["ratio"] for key, row in data.items() if key.startswith("fixed")}
    return [within(f"{key}: at most 1.3 times a dense step", ratio, 0, 1.3) for key, ratio in fixed.items()]


def draw(data: Data, figure: Any) -> None:
    plot = figure.subplots()
    plot.barh(list(data), [row["ms"] for row in data.values()])
    plot.invert_yaxis()
    plot.set(xlabel="milliseconds a step")


FIGURE = Figure(STORE, "After figure 9 of STen: step times", (STORE,), collect, table, checks, draw, run)
