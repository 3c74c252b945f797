"""The first screen of a run: what limits it and what would help, its regions over time and as a table, the roofline, memory, training."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from fuseflow.report.page.charts import BarPart, compute_roof, loss_chart, roofline, time_bar
from fuseflow.report.page.html_elements import Bar, Cell, Column, Link, html_table
from fuseflow.report.page.regions import RegionPage, repeated_label
from fuseflow.report.page.run_directory import StoredRun, Values
from fuseflow.report.page.run_pairs import region_pairs, speed_up, speed_up_table
from fuseflow.report.page.things import Things


def overview(
    stored: StoredRun, regions: Sequence[RegionPage], things: Things, baseline: tuple[str, StoredRun] | None = None
) -> dict[str, Any]:
    """Return the pieces of the first screen of a run, which is compared with a `baseline` if there is one: its name, and the run."""
    peak = next((float(r.memory["peak_bytes_per_cycle"]) for r in regions if r.memory is not None), None)
    points = [region.point for region in regions]
    return {
        "limits": limits(stored.result, regions),
        "remedies": remedies(stored),
        "roof": compute_roof(points),
        "time": _region_bar(regions, stored.result["cycles"]),
        "regions": _region_table(stored.result, regions),
        "changes": None if stored.cycles is None else _change_table(stored.cycles["changes"], stored.result["cycles"]),
        "roofline": roofline(points, peak),
        "unplaced": [r.label for r in regions if not r.point.drawn],  # they have no place in a roofline
        "memory": _memory_table(stored.result, things),
        "energy": None if stored.energy is None else _energy_table(stored.energy, regions),
        "training": None if stored.training is None else training_chapter(stored.training, things),
        "baseline": None if baseline is None else _baseline(*baseline, stored, regions),
    }


def _baseline(name: str, before: StoredRun, after: StoredRun, regions: Sequence[RegionPage]) -> dict[str, Any]:
    """Return what the screen says of an earlier run, the baseline: its cycles, and the speed-up in all and by region."""
    pairs, pages = region_pairs(before, after), {region.values["name"]: region for region in regions}
    links = []
    for pair in pairs:
        page = pages[pair.after[0]["name"]] if pair.after else None
        label = ", ".join(map(repeated_label, pair.after))
        links.append(None if page is None else Link(label, page.thing))
    cycles = before.result["cycles"], after.result["cycles"]
    table = speed_up_table(pairs, links, cycles, ("baseline", "this run"))
    return {"name": name, "cycles": cycles[0], "speed_up": speed_up(*cycles), "table": table}


def _region_bar(regions: Sequence[RegionPage], cycles: int) -> Markup:
    """Return the bar of the regions over time, each as wide as the cycles of all regions that run like it."""
    parts = []
    for region in regions:
        spent = region.values["times"] * region.values["cycles"]
        share = 100 * spent / cycles if cycles else 0.0
        span = f"; {region.span.replace('`', '')}" if region.span else ""
        tip = f"{region.label}: {spent:,} cycles, {share:.1f} % of all{span}"
        parts.append(BarPart(region.label, spent, tip, region.thing))
    return time_bar(parts)


def _region_table(run: Values, regions: Sequence[RegionPage]) -> Markup:
    columns = (
        Column("region", "a click opens it; regions that run alike share a row, with the numbers of one", words=True),
        Column("cycles", "how long one of them takes"),
        Column("of all, %", "the share of all that run like it, of the cycles of the run"),
        Column("over roofline", "cycles, divided by the roofline"),
        Column("limited by", "the node and the steps that most of its critical path is due to", words=True),
        Column("roofline, cycles", "cycles that it cannot beat: of its busiest node, or to move its bytes"),
        Column("Einsums", "how many are fused in it"),
        Column("nodes"),
        Column("firings"),
        Column("tokens"),
        Column("FLOPs"),
        Column("read, bytes", "what nodes asked for"),
        Column("written, bytes"),
    )
    return html_table(columns, [_region_row(run, region) for region in regions])


def _region_row(run: Values, region: RegionPage) -> tuple[Cell, ...]:
    values, bound = region.values, region.values["roofline"]["bound"]
    share = 100 * values["times"] * values["cycles"] / run["cycles"] if run["cycles"] else 0.0
    over: Cell = f"{values['cycles'] / bound:.2f}" if bound else ""
    traffic = values["statistics"]["traffic"]
    moved = (sum(row["bytes"] for row in traffic if row["direction"] == direction) for direction in ("read", "write"))
    return (
        Link(region.label, region.thing),
values["cycles"], share, over, region.limits or "", bound,
        len(values["einsums"]), values["nodes"], values["firings"], values["tokens"], region.point.flops, *moved,
    )  # fmt: skip


def _change_table(changes: Sequence[Values], now: int) -> Markup | None:
    """Return a table of changes that would take fewer cycles, the best first, with the speed-up over the run, of `now` cycles."""
    columns = (
        Column("change of the schedule", "the flags that make it", words=True),
        Column("cycles", "of all regions"),
        Column("speed-up", "the cycles of this run, divided by those"),
        Column("how known", "simulated, or estimated without running it", words=True),
    )
    rows: list[tuple[Cell, ...]] = []
    for change in changes:
        cycles, how = change["cycles"], "measured" if change["measured"] else "estimated"
        speed_up = f"{now / cycles:.2f}" if cycles else ""
        rows.append((change["change"], cycles, speed_up, how))
    return html_table(columns, rows) if rows else None


def _energy_table(energy: Values, regions: Sequence[RegionPage]) -> Markup:
    """Return the energy of each region by part, in nanojoules, and the technology of each part."""
    parts = energy["parts"]
    columns = (
        Column("region", "regions that run alike share a row, with the numbers of one", words=True),
        *(Column(f"{part}, nJ", values["technology"]) for part, values in parts.items()),
        Column("energy, nJ", "of all parts"),
    )
    pages, rows = {region.values["name"]: region for region in regions}, list[tuple[Cell, ...]]()
    for region in energy["regions"]:
        page = pages[region["name"]]
        numbers = (*(region["parts"][part] for part in parts), region["total"])
        rows.append((Link(page.label, page.thing), *(f"{number / 1000:,.2f}" for number in numbers)))
    technologies = (values["technology"] for values in parts.values())
    rows.append(("technology", *technologies, ""))
    return html_table(columns, rows)


def _memory_table(run: Values, things: Things) -> Markup | None:
    """Return the bytes of every tensor of the run, the largest number first."""
    totals = []
    for name, kinds in run["bytes"]["by_tensor"].items():
        read, written = (sum(kind[direction] for kind in kinds.values()) for direction in ("read", "write"))
        totals.append((read + written, name, read, written))
    totals.sort(key=lambda row: (-row[0], row[1]))
    most = max((total for total, *_ in totals), default=0)
    if not most:
        return None
    columns = (
        Column("tensor", words=True),
        Column("shape", words=True),
        Column("read, bytes", "what nodes asked for, in all regions"),
        Column("written, bytes"),
        Column("share", "of the tensor with most bytes", words=True),
    )
    rows: list[tuple[Cell, ...]] = []
    for total, name, read, written in totals:
        thing = things.add("tensor", name)
        shape = next((text for label, text in thing.facts if label == "shape"), "")
        rows.append((Link(name, thing), shape, read, written, Bar(100 * total / most)))
    return html_table(columns, rows)


@dataclass(frozen=True, slots=True)
class Remedy:
    """A change that takes fewer cycles: what it is, its cycles (None if they are not known), how many times as fast it is, how that is
    known, and the command."""

    text: str
    cycles: int | None
    times: str
    known: str
    command: str


def limits(run: Values, regions: Sequence[RegionPage]) -> list[dict[str, Any]]:
    """Return the regions that take most of the cycles, with what limits each: as many as take half of them together."""
    ordered = sorted(regions, key=lambda region: -_spent(region))
    shown, left = list[dict[str, Any]](), run["cycles"] / 2
    for region in ordered:
        if left <= 0 or region.limit is None:
            break
        share = 100 * _spent(region) / run["cycles"]
        shown.append({"region": region, "share": share, "sentence": region.limit.sentence})
        left -= _spent(region)
    return shown


def _spent(region: RegionPage) -> int:
    return int(region.values["times"] * region.values["cycles"])


def remedies(stored: StoredRun) -> list[Remedy]:
    """Return the best change next to the schedule, and the schedule that a search finds, the faster one first."""
    if stored.cycles is None:
        return []
    now = stored.result["cycles"]
    return sorted((*_change(stored.cycles, now), *_search(stored.cycles, now)), key=lambda remedy: remedy.cycles or now)


def _change(explained: Values, now: int) -> Iterator[Remedy]:
    best = next((change for change in explained["changes"] if change["cycles"] < now), None)
    if best is not None:
        known = "simulated" if best["measured"] else "estimated"
        command = _changed(explained.get("command"), best["change"])
        yield Remedy("one change of the schedule", best["cycles"], f"{now / max(best['cycles'], 1):.2f}", known, command)


def _changed(words: Sequence[str] | None, change: str) -> str:
    """Return the command of a run with a change; the change alone if the command is not known."""
    if words is None:
        return change
    kept = list(words)
    while change.startswith("--fuse ") and "--fuse" in kept:  # which would fuse more regions, and not others
        at = kept.index("--fuse")
        del kept[at : at + 2]
    return f"{shlex.join(kept)} {change}"


def _search(explained: Values, now: int) -> Iterator[Remedy]:
    search = explained.get("search")
    if search is None or (search["cycles"] is not None and search["cycles"] >= now):
        return
    command = f"{shlex.join(search['command'])}\n{shlex.join(search['then'])}"
    text = f"the schedule that the search finds within the budget `{search['budget']}`"
    if search["cycles"] is None:
        yield Remedy("a search of the whole schedule, which takes longer than this run", None, "", "", command)
    else:
        yield Remedy(text, search["cycles"], f"{now / max(search['cycles'], 1):.2f}", "simulated", command)


def training_chapter(training: Values, things: Things) -> dict[str, Any]:
    """Return the pieces of the chapter. `training` has the content of `training.json`."""
    losses = [step["loss"] for step in training["steps"] if step["loss"] is not None]
    return {
        "steps": len(training["steps"]),
        "losses": loss_chart(losses, training["reference_losses"]) if losses else None,
        "beside": bool(training["reference_losses"]),
        "notes": training["notes"],
        "phases": _phase_table(training["phases"]),
        "live": _live_table(training["live"], things),
        "stored": _stored_table(training["stored"], things) if training["stored"] else None,
    }


def _phase_table(phases: Sequence[Values]) -> Markup:
    columns = (
        Column("phase", "regions that are fused across the border of phases have a row of their own", words=True),
        Column("regions"),
        Column("cycles", "of the first step"),
        Column("of all", words=True),
        Column("FLOPs"),
        Column("read, bytes", "what nodes asked for"),
        Column("written, bytes"),
    )
    total = sum(row["cycles"] for row in phases)
    rows = list[tuple[Cell, ...]]()
    for row in phases:
        share = Bar(100 * row["cycles"] / total if total else 0.0)
        numbers = (row["regions"], row["cycles"], share, row["flops"], row["read"], row["written"])
        rows.append((" + ".join(row["phases"]), *numbers))
    return html_table(columns, rows)


def _live_table(live: Sequence[Values], things: Things) -> Markup:
    columns = (
        Column("region", "in the order in which they run", words=True),
        Column("phase", words=True),
        Column("live, bytes", "of intermediates that are stored before its end and read in it or later"),
        Column("of the most", words=True),
    )
    most = max((row["bytes"] for row in live), default=0)
    rows = [
        (
            Link(row["region"], things.find("region", row["region"])),
            " + ".join(row["phases"]),
            row["bytes"],
            Bar(100 * row["bytes"] / most if most else 0.0, "memory"),
        )
        for row in live
    ]
    return html_table(columns, rows, sortable=False)


def _stored_table(stored: Sequence[Values], things: Things) -> Markup:
    columns = (
        Column("stored", "a result of the forward or the loss that later phases read", words=True),
        Column("in region", words=True),
        Column("bytes", "that are written of it"),
        Column("read by", "the Einsums that read it", words=True),
        Column("in regions", words=True),
    )
    rows = [
        (
            Link(row["name"], things.find("tensor", row["name"])),
            row["region"],
            None if row["bytes"] is None else int(row["bytes"]),
            ", ".join(row["einsums"]),
            ", ".join(row["regions"]),
        )
        for row in stored
    ]
    return html_table(columns, rows)
