"""Cycles, energy and area of the four families, unfused, partially and fully fused, on `rda`: of runs at their small size, and of estimates
at their real one.

    python evaluation/figures.py energy --run --data-dir DIR   # what is missing; about two minutes, with the files of Cora

The models are those of `models/paper`, and the schedules those of figure 12. Small graphs are KarateClub, and real ones Cora. Energies are
those of the package, in picojoules by part, and areas are the most over the regions, in gate equivalents.
"""

from __future__ import annotations

from typing import Any

from claims import Check, cell, markdown, ratio, together, within
from frame import Data, Figure, Options
from pictures import bars, legend
from store import ROOT, complete, rows

import fuseflow as ff
from fuseflow.energy import PARTS, load_event_energies
from fuseflow.energy.energy import ProgramEnergy
from fuseflow.resources import Resources
from fuseflow.run.compiled import Compiled

STORE = "energy"
MACHINE = "rda"
FAMILIES = {"gcn": "GCN", "graphsage": "GraphSAGE", "sae": "autoencoder", "gpt": "GPT-3"}
DATA = {"gcn": "karate", "graphsage": "karate", "sae": None, "gpt": None}
REAL, REAL_DATA = "/real", {"gcn": "cora", "graphsage": "cora", "sae": None, "gpt": None}
"""The end of the keys of real sizes, which are estimated, and their data. Models without a graph have their own."""
FUSED = ("unfused", "partial", "full")
TITLES = {"fifos": "FIFOs", "dram": "DRAM", "refresh": "refreshes in it", "sram": "SRAM in it"}
REFRESH, SRAM = ("dram", "refresh"), ("leakage", "sram_bit")
"""What the DRAM takes as long as a program runs, whatever it does, and what bits of SRAM leak."""


def points() -> list[str]:
    return [f"{family}/{fused}{size}" for size in ("", REAL) for family in FAMILIES for fused in FUSED]


def run(options: Options) -> None:
    """Add the rows that are missing."""
    complete(STORE, points(), lambda key: expected(key, options) if key.endswith(REAL) else measured(key), options.only)


def compiled(key: str, data: str | None, **given: Any) -> Compiled:
    family, fused = key.removesuffix(REAL).split("/")
    schedule = ff.Schedule.load(ROOT / "schedules" / f"{family}_{fused}.yaml")
    return ff.compile(ROOT / "models" / "paper" / f"{family}.py", data=data, schedule=schedule, machine=MACHINE, **given)


def measured(key: str) -> dict[str, Any]:
    """One row: a run that is checked, with its energy by part and its area."""
    result = compiled(key, DATA[key.split("/")[0]], options={"small": True}).run()
    assert result.check is not None and result.check.passed, key
    area = Resources.most_of(region.resources for region in result.regions).area
    moved = sum(r.times * r.simulation.memory.moved_bytes() for r in result.regions if r.simulation.memory is not None)
    return row(key, result.cycles, area, result.energy()) | {"moved": moved}


def expected(key: str, options: Options) -> dict[str, Any]:
    """One row of a real size: an estimate, with its energy by part and its area."""
    data = REAL_DATA[key.split("/")[0]]
    estimate = compiled(key, data, data_dir=options.data_dir if data else None).estimate()
    area = Resources.most_of(region.resources for region in estimate.regions).area
    return row(key, round(estimate.cycles), area, estimate.energy())


def row(key: str, cycles: int, area: int | None, energy: ProgramEnergy) -> dict[str, Any]:
    return {
        "key": key,
        "machine": MACHINE,
        "regions": sum(region.times for region in energy.regions),
        "cycles": cycles,
        "energy": {part: round(energy.of_part(part)) for part in PARTS},
        "refresh": round(of_event(energy, REFRESH)),
        "sram": round(of_event(energy, SRAM)),
        "area": area,
    }


def of_event(energy: ProgramEnergy, event: tuple[str, str]) -> float:
    """What the events of one kind take, in picojoules."""
    return sum(r.times * item.energy for r in energy.regions for item in r.items if (item.part, item.constant) == event)


def collect() -> Data:
    found = rows(STORE)
    return {"points": {key: found.get(key) for key in points()}}


def value(data: Data, family: str, fused: str, what: str, size: str = "") -> float | None:
    """A number of a point: `cycles`, `area`, `moved`, `energy` in all, or the energy of one part, or of refreshes or of the bits of
    SRAM alone."""
    row = data["points"][f"{family}/{fused}{size}"]
    if row is None:
        return None
    return float(sum(row["energy"].values()) if what == "energy" else row["energy"][what] if what in PARTS else row[what])


def table(data: Data) -> str:
    small, real = of_size(data, "", "nJ", 1e3), of_size(data, REAL, "µJ", 1e6)
    deciding = [line for family in FAMILIES if (line := deciding_line(data, family))]
    return "\n".join(
        [small, "At their real sizes, where cycles, leakage and what the DRAM takes are estimates:\n", real, *deciding]
    )


def deciding_line(data: Data, family: str) -> str:
    """What a partially fused program of real size takes more than the unfused one, if what its SRAM leaks decides that; else nothing."""
    nanowatts, usual = deciding_leakage(data, family, REAL), load_event_energies().leakage.sram_bit.value
    if nanowatts is None or nanowatts > usual:
        return ""
    times = ratio(value(data, family, "partial", "energy", REAL), value(data, family, "unfused", "energy", REAL))
    return (
        f"{FAMILIES[family]}, partially fused, takes {cell(times)} times the energy of the unfused program if a bit of SRAM leaks "
        f"{usual} nW, as that of the macro does. At {nanowatts:.2f} nW it takes as much, and below that less.\n"
    )


def of_size(data: Data, size: str, unit: str, picojoules: float) -> str:
    what = [*(part for part in PARTS if part != "leakage"), "refresh", "leakage", "sram", "energy"]
    heads = [
        "model",
        "fused",
        "regions",
        "cycles",
        "area, GE",
        *(f"{TITLES.get(key, key)}, {unit}" for key in what),
        "of unfused",
    ]
    lines = []
    for family, name in FAMILIES.items():
        for fused in FUSED:
            of = ratio(value(data, family, fused, "energy", size), value(data, family, "unfused", "energy", size))
            whole = [cell(value(data, family, fused, key, size), ",.0f") for key in ("regions", "cycles", "area")]
            parts = [energy_cell(value(data, family, fused, key, size), picojoules) for key in what]
            lines.append([name, fused, *whole, *parts, cell(of)])
    return markdown(heads, lines, 2)


def energy_cell(picojoules: float | None, unit: float) -> str:
    return cell(None if picojoules is None else picojoules / unit, ",.1f")


def checks(data: Data) -> list[Check]:
    dram = {family: ratio(value(data, family, "partial", "dram"), value(data, family, "unfused", "dram")) for family in FAMILIES}
    fused = [within(f"{FAMILIES[family]}", dram[family], 0, 1, 3) for family in ("gcn", "graphsage")]
    moved = {
        family: ratio(without_refresh(data, family, "partial"), without_refresh(data, family, "unfused")) for family in FAMILIES
    }
    alone = [within(f"{FAMILIES[family]}", moved[family], 0, 1, 3) for family in ("gcn", "graphsage")]
    real = [
        within(FAMILIES[f], ratio(value(data, f, "partial", "dram", REAL), value(data, f, "unfused", "dram", REAL)), 0, 1, 3)
        for f in ("gcn", "graphsage")
    ]
    most = [within(name, share(data, family), 0.5, 1) for family, name in FAMILIES.items()]
    return [
        together("partially fused layers of graph networks take less DRAM energy than unfused: times", fused),
        together("so does what moves and opens rows, without refreshes: times", alone),
        together("and at real sizes, by the estimate: times", real),
        together("unfused, the DRAM takes more than half of the energy: a share of", most),
    ]


def deciding_leakage(data: Data, family: str, size: str) -> float | None:
    """What a bit of SRAM would leak, in nanowatts, if the partially fused program took as much energy as the unfused one: with less it
    takes less. None unless the partially fused program has more bits, for longer."""
    energy, sram = ([value(data, family, fused, what, size) for fused in FUSED[:2]] for what in ("energy", "sram"))
    if None in (*energy, *sram) or sram[1] <= sram[0]:
        return None
    saved = (energy[0] - sram[0]) - (energy[1] - sram[1])
    return load_event_energies().leakage.sram_bit.value * saved / (sram[1] - sram[0])


def without_refresh(data: Data, family: str, fused: str) -> float | None:
    dram, refresh = (value(data, family, fused, what) for what in ("dram", "refresh"))
    return None if dram is None or refresh is None else dram - refresh


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
    "energy", "Cycles, energy and area of the four families", (STORE,), collect, table, checks, draw, run, size=(11, 8)
)
