"""Figure 17: cycles of T[i,l] = A[i,k] B[k,j] C[j,l] on the karate club in all 24 loop orders, and how far they lie apart.

    python evaluation/figures.py figure17 --run

The rows are those of `nested_matmul.py`, which says more: operands stored as the loops want them, every point on both simulators and
equal to the dense product. The paper's product is of two matrix products, one inside the other: `(A B) C`, fused.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import product
from typing import Any

import nested_matmul as study
from claims import Check, as_published, cell, markdown, published, ratio
from frame import Data, Figure, Options
from measured import Run
from pictures import legend, missing_bar
from store import rows, write

MACHINES = ("comal", "ideal", "rda")
FORM = "(A B) C"
FORMS = ("A B C", "(A B) C", "A (B C)")


def collect() -> Data:
    """Cycles by machine, form and order; None where the compiler refuses the order."""
    found = rows("nested_matmul")
    points = {m: {f: {o: found.get(f"{m}/{f}/{o}", {}).get("cycles") for o in study.ORDERS} for f in FORMS} for m in MACHINES}
    seconds = {m: sum(row["seconds"] for row in found.values() if row["machine"] == m) for m in MACHINES}
    refused = sorted(key for key, row in found.items() if "refused" in row)
    return {"cycles": points, "refused": refused, "published": published("figure17"), "seconds": seconds}


def plotted(order: str) -> bool:
    return study.ORDERS.index(order) in study.PLOTTED


def spread(data: Data, machine: str, form: str) -> float | None:
    """The slowest of the paper's orders over the fastest."""
    cycles = [number for order, number in data["cycles"][machine][form].items() if plotted(order) and number]
    return ratio(max(cycles), min(cycles)) if cycles else None


def table(data: Data) -> str:
    columns = [(m, f) for m in MACHINES for f in (FORMS if m == "comal" else (FORM,))]
    lines = []
    for n, order in enumerate(study.ORDERS):
        refused = ["refused" if f"{m}/{f}/{order}" in data["refused"] else "" for m, f in columns]
        cells = [cell(data["cycles"][m][f][order], ",") or why for (m, f), why in zip(columns, refused, strict=True)]
        lines.append([f"{n} {order}{' *' if plotted(order) else ''}", *cells])
    lines.append(["spread of *", *(cell(spread(data, m, f), ".1f") for m, f in columns)])
    lines.append(["published", *(f"{data['published']['spread']}" if (m, f) == (MACHINES[0], FORM) else "" for m, f in columns)])
    return markdown(["order", *(f"{f}, {m}" for m, f in columns)], lines)


def checks(data: Data) -> list[Check]:
    theirs = data["published"]["spread"]
    found = [as_published(f"{m}: spread of {FORM}", spread(data, m, FORM), theirs, 1) for m in MACHINES]
    for machine in MACHINES:
        of = data["cycles"][machine]
        ran = [order for order in study.ORDERS if any(of[form][order] for form in FORMS)]
        factored = sum(of[FORM][order] is not None for order in study.ORDERS)
        said = f"{len(ran)} in some form, {factored} as {FORM}"
        found.append(
            Check(f"{machine}: all 24 orders give the same tensor", said, len(ran) == len(study.ORDERS) if ran else None)
        )
        if known := {order: cycles for order, cycles in of[FORM].items() if cycles}:
            least = min(known, key=known.__getitem__)
            what = f"{machine}: no order of {FORM} is faster than the program's own, ikjl"
            found.append(Check(what, least, known[least] == known["ikjl"]))
    return found


def draw(data: Data, figure: Any) -> None:
    """Sorted as the paper numbers them; paler bars are those that it does not plot. A form that cannot have an order has no bar."""
    width = 0.8 / len(FORMS)
    axes = figure.subplots()
    for n, form in enumerate(FORMS):
        of = data["cycles"]["comal"][form]
        for shown, alpha in ((True, 1.0), (False, 0.35)):
            points = [(x - 0.4 + (n + 0.5) * width, of[o]) for x, o in enumerate(study.ORDERS) if of[o] and plotted(o) == shown]
            label = form if shown else None
            axes.bar([x for x, _ in points], [c for _, c in points], width, color=f"C{n}", alpha=alpha, label=label)
        for x, order in enumerate(study.ORDERS):
            if not of[order]:
                missing_bar(axes, x - 0.4 + (n + 0.5) * width, "refused")
    axes.bar(0, 0, color="dimgrey", label="plotted in the paper, too (*)")
    axes.bar(0, 0, color="dimgrey", alpha=0.35, label="not plotted in the paper")
    axes.set_xticks(range(len(study.ORDERS)), [f"{o}{'*' if plotted(o) else ''}" for o in study.ORDERS], rotation=60)
    axes.set(yscale="log", ylim=(1000, None), ylabel="cycles on comal", xlabel="loop order, outermost first")
    legend(figure)


def run(options: Options) -> None:
    """All orders again: they take a minute or two."""
    write("nested_matmul", measured())


def measured() -> Iterator[Data]:
    given = study.operands()
    for machine, form, order in product(MACHINES, (f for f in study.FORMS if f.name in FORMS), study.ORDERS):
        start = time.perf_counter()
        found = study.measure(form, order, given, machine, copies=False)
        said = found.to_json() if isinstance(found, Run) else {"refused": found}
        row = {"key": f"{machine}/{form.name}/{order}", "machine": machine, "form": form.name, "asked": order, **said}
        yield {**row, "seconds": round(time.perf_counter() - start, 2)}


FIGURE = Figure("figure17", "Figure 17, loop orders of a nested product", ("nested_matmul",), collect, table, checks, draw, run)
