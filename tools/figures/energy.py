"""Cycles, energy and area of the four families, unfused, partially and fully fused, at their small size on `rda`.

    python tools/figures/energy.py --run            # what is missing; about a minute
    python tools/figures/energy.py --write          # the table and the picture of docs/energy.md
    python tools/figures/energy.py [--plot energy.svg] [--check]

The models are those of `models/paper` with `small`, and the schedules those of figure 12. Graphs are KarateClub. Energies are those of the
package, in picojoules by part, and areas are the most over the regions, in gate equivalents.
"""

from __future__ import annotations

import json
import sys
from fnmatch import fnmatch
from typing import Any

from frame import (
    PICTURES,
    ROOT,
    ROWS,
    Check,
    Data,
    Figure,
    Options,
    bars,
    between_marks,
    cell,
    command,
    drawn,
    legend,
    markdown,
    ratio,
    rows,
    together,
    verdicts,
    within,
)

import fuseflow as ff
from fuseflow.energy import PARTS
from fuseflow.resources import Resources

STORE = "energy"
MACHINE = "rda"
FAMILIES = {"gcn": "GCN", "graphsage": "GraphSAGE", "sae": "autoencoder", "gpt": "GPT-3"}
DATA = {"gcn": "karate", "graphsage": "karate", "sae": None, "gpt": None}
FUSED = ("unfused", "partial", "full")
REFRESH = "dram", "refresh"
"""What the DRAM takes as long as a program runs, whatever it does."""


def points() -> list[str]:
    return [f"{family}/{fused}" for family in FAMILIES for fused in FUSED]


def run(options: Options) -> None:
    """Add the rows that are missing."""
    known = rows(STORE)
    for key in points():
        if key not in known and (not options.only or any(fnmatch(key, pattern) for pattern in options.only)):
            with (ROWS / f"{STORE}.jsonl").open("a", encoding="utf-8") as stream:
                stream.write(json.dumps(measured(key)) + "\n")


def measured(key: str) -> dict[str, Any]:
    """One row: a run that is checked, with its energy by part and its area."""
    family, fused = key.split("/")
    compiled = ff.compile(
        ROOT / "models" / "paper" / f"{family}.py",
        data=DATA[family],
        options={"small": True},
        schedule=ff.Schedule.load(ROOT / "schedules" / f"{family}_{fused}.yaml"),
        machine=MACHINE,
    )
    result = compiled.run()
    assert result.check is not None and result.check.passed, key
    energy = result.energy()
    return {
        "key": key,
        "machine": MACHINE,
        "regions": sum(region.times for region in result.regions),
        "cycles": result.cycles,
        "energy": {part: round(energy.of_part(part)) for part in PARTS},
        "refresh": round(
            sum(r.times * item.energy for r in energy.regions for item in r.items if (item.part, item.constant) == REFRESH)
        ),
        "area": Resources.most_of(region.resources for region in result.regions).area,
        "moved": sum(r.times * r.simulation.memory.moved_bytes() for r in result.regions if r.simulation.memory is not None),
    }


def collect() -> Data:
    found = rows(STORE)
    return {"points": {key: found.get(key) for key in points()}}


def value(data: Data, family: str, fused: str, what: str) -> float | None:
    """A number of a point: `cycles`, `area`, `moved`, `energy` in all, or the energy of one part."""
    row = data["points"][f"{family}/{fused}"]
    if row is None:
        return None
    return float(sum(row["energy"].values()) if what == "energy" else row["energy"][what] if what in PARTS else row[what])


def table(data: Data) -> str:
    heads = ["model", "fused", "regions", "cycles", "area, GE", *(f"{part}, nJ" for part in PARTS), "energy, nJ", "of unfused"]
    lines = []
    for family, name in FAMILIES.items():
        for fused in FUSED:
            of = ratio(value(data, family, fused, "energy"), value(data, family, "unfused", "energy"))
            whole = [cell(value(data, family, fused, what), ",.0f") for what in ("regions", "cycles", "area")]
            parts = [nanojoules(value(data, family, fused, part)) for part in (*PARTS, "energy")]
            lines.append([name, fused, *whole, *parts, cell(of)])
    return markdown(heads, lines, 2)


def nanojoules(picojoules: float | None) -> str:
    return cell(None if picojoules is None else picojoules / 1000, ",.1f")


def checks(data: Data) -> list[Check]:
    dram = {family: ratio(value(data, family, "partial", "dram"), value(data, family, "unfused", "dram")) for family in FAMILIES}
    fused = [within(f"{FAMILIES[family]}", dram[family], 0, 1, 3) for family in ("gcn", "graphsage")]
    most = [within(name, share(data, family), 0.5, 1) for family, name in FAMILIES.items()]
    return [
        together("partially fused layers of graph networks take less DRAM energy than unfused: times", fused),
        together("unfused, the DRAM takes more than half of the energy: a share of", most),
    ]


def share(data: Data, family: str) -> float | None:
    return ratio(value(data, family, "unfused", "dram"), value(data, family, "unfused", "energy"))


def draw(data: Data, figure: Any) -> None:
    """A panel each for cycles, energy and area, as times those of the unfused program; the energy also by part."""
    names = list(FAMILIES.values())
    above, below = figure.subplots(2, 1)
    series = {
        f"{what}, {fused}": [ratio(value(data, f, fused, what), value(data, f, "unfused", what)) for f in FAMILIES]
        for what in ("cycles", "energy", "area")
        for fused in FUSED[1:]
    }
    bars(above, names, series)
    above.axhline(1, color="black", linewidth=0.6)
    above.set(yscale="log", ylim=(0.3, 20), ylabel="times unfused", title=f"cycles, energy and area on {MACHINE}, small sizes")
    above.set_yticks([0.3, 0.5, 1, 2, 4, 8], ["0.3", "0.5", "1", "2", "4", "8"])
    above.minorticks_off()
    above.legend(ncols=3, loc="upper center", fontsize="small")
    places = [(family, fused) for family in FAMILIES for fused in FUSED]
    bottom = [0.0] * len(places)
    for number, part in enumerate(PARTS):
        heights = [(value(data, *place, part) or 0) / (value(data, place[0], "unfused", "energy") or 1) for place in places]
        below.bar(range(len(places)), heights, bottom=bottom, label=part, color=f"C{number}")
        bottom = [a + b for a, b in zip(bottom, heights, strict=True)]
    labels = [f"{FAMILIES[family]}\n{fused}" for family, fused in places]
    below.set_xticks(range(len(places)), labels, fontsize="small")
    below.set(ylabel="energy, times unfused", title="by part: 45 nm for circuits, HBM2 for the DRAM")
    legend(figure, below)


FIGURE = Figure(
    "energy",
    "Cycles, energy and area of the four families",
    (STORE,),
    collect,
    table,
    checks,
    draw,
    run,
    size=(11, 8),
)

PAGE = ROOT / "docs" / "energy.md"


def page() -> str:
    """The page of the documentation with the table and what must hold."""
    data = collect()
    return between_marks(PAGE.read_text(encoding="utf-8"), STORE, STORE, f"{table(data)}\n{verdicts(checks(data))}")


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        PAGE.write_text(page(), encoding="utf-8")
        drawn(FIGURE, collect(), PICTURES / f"{STORE}.svg")
    else:
        command(FIGURE)()
