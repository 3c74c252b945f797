"""After table 2 of SparTA: what pruned operands make of the result of each operator.

The table is what `fuseflow.propagation` makes of the operator table; nothing is written by hand. Each cell is compared with 4,096 random
fillings of what is unknown.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
from claims import Check, markdown
from frame import Data, Figure

FILLINGS = 4096
SPECIAL = (0.0, 1.0, -1.0, 0.5, -0.5, 2.0, math.inf, -math.inf)
ROUNDING = ("saturate", "nearest", "nearest_finite")
"""Operators that round to a narrow type, whose other operands are numbers of the type: (0, 0) stand for none of them."""


def collect() -> Data:
    from fuseflow.ops import OPERATORS
    from fuseflow.propagation.expressions import applied

    table: Data = {}
    for name, row in OPERATORS.items():
        if name in ROUNDING:
            continue
        for states in itertools.product((0.0, math.nan), repeat=row.arity):
            known = float(applied(row, [np.asarray(state) for state in states]))
            table.setdefault(name, {})[pattern(states)] = {"known": cell(known), "fillings": cell(shown(row, states))}
    return table


def shown(row: Any, states: tuple[float, ...]) -> float:
    """The result that no filling changes, or NaN if one does."""
    rng = np.random.default_rng(0)
    operands = [filling(rng) if math.isnan(state) else np.full(FILLINGS, state) for state in states]
    results = row(*operands)
    return float(results[0]) if (results == results[0]).all() else math.nan


def filling(rng: np.random.Generator) -> Any:
    return np.where(rng.random(FILLINGS) < 0.5, rng.choice(SPECIAL, FILLINGS), rng.normal(scale=3, size=FILLINGS))


def pattern(states: tuple[float, ...]) -> str:
    return "".join("?" if math.isnan(state) else "0" for state in states)


def cell(value: float) -> str:
    return "unknown" if math.isnan(value) else f"{value + 0.0:g}"  # no -0


def table(data: Data) -> str:
    columns = ("0", "0?", "?0", "00")
    short = [
        [name, *(row.get(column, {}).get("known", "") for column in columns)] for name, row in data.items() if name != "where"
    ]
    where = ", ".join(
        f"`where({', '.join(states)})` is {row['known']}" for states, row in data["where"].items() if row["known"] != "unknown"
    )
    head = ("operator", "pruned operand", "first pruned", "second pruned", "both pruned")
    return f"{markdown(head, short, len(head))}\nWith `?` for what is unknown, {where}. Of other such operands it is unknown.\n"


def checks(data: Data) -> list[Check]:
    cells = {(name, states): row for name, rows in data.items() for states, row in rows.items()}
    wrong = [f"{name}({states})" for (name, states), row in cells.items() if row["known"] != row["fillings"]]
    return [Check("each cell is what 4,096 fillings show", "; ".join(wrong) or f"{len(cells)} cells", not wrong)]


FIGURE = Figure("sparta_table2", "After table 2 of SparTA: operators", (), collect, table, checks)
