"""The first screen of a page: the regions over time and as a table, faster changes, the roofline, and memory by tensor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fuseflow.report.page.html_table import Bar, Cell, Column, Link, html_table
from fuseflow.report.page.region_pairs import region_pairs
from fuseflow.report.page.regions import RegionPage, repeated_label
from fuseflow.report.page.roofline import roofline
from fuseflow.report.page.run_directory import StoredRun, Values
from fuseflow.report.page.speed_ups import speed_up, speed_up_table
from fuseflow.report.page.svg import Markup
from fuseflow.report.page.things import Things
from fuseflow.report.page.time_bar import BarPart, time_bar


@dataclass(frozen=True, slots=True)
class Overview:
    """The pieces of the first screen. `unplaced` are the regions that a roofline cannot show, since they have no FLOPs or move no bytes."""

    time: Markup
    regions: Markup
    changes: Markup | None
    roofline: Markup | None
    unplaced: tuple[str, ...]
    memory: Markup | None
    energy: Markup | None
    baseline: Baseline | None


@dataclass(frozen=True, slots=True)
class Baseline:
    """The run that another is compared with: its name, its cycles, the speed-up of the other run, and a table of speed-ups by region."""

    name: str
    cycles: int
    speed_up: str
    table: Markup


def overview(
    stored: StoredRun, regions: Sequence[RegionPage], things: Things, baseline: tuple[str, StoredRun] | None = None
) -> Overview:
    """Return the first screen of a run, which is compared with a `baseline` if there is one: its name, and the run."""
    peak = next((float(r.memory["peak_bytes_per_cycle"]) for r in regions if r.memory is not None), None)
    return Overview(
        time=region_bar(regions, stored.result["cycles"]),
        regions=_region_table(stored.result, regions),
        changes=None if stored.cycles is None else _change_table(stored.cycles["changes"], stored.result["cycles"]),
        roofline=roofline([region.point for region in regions], peak),
        unplaced=tuple(r.label for r in regions if not (r.flops and r.point.bytes)),
        memory=_memory_table(stored.result, things),
        energy=None if stored.energy is None else _energy_table(stored.energy, regions),
        baseline=None if baseline is None else _baseline(*baseline, stored, regions),
    )


def _baseline(name: str, before: StoredRun, after: StoredRun, regions: Sequence[RegionPage]) -> Baseline:
    pairs, pages = region_pairs(before, after), {region.name: region for region in regions}
    links = []
    for pair in pairs:
        page = pages[pair.after[0]["name"]] if pair.after else None
        label = ", ".join(map(repeated_label, pair.after))
        links.append(None if page is None else Link(label, page.key, page.number))
    cycles = before.result["cycles"], after.result["cycles"]
    return Baseline(name, cycles[0], speed_up(*cycles), speed_up_table(pairs, links, cycles, ("baseline", "this run")))


def region_bar(regions: Sequence[RegionPage], cycles: int, scale: int | None = None) -> Markup:
    """Return the bar of the regions over time, each as wide as the cycles of all regions that run like it. `scale` are the cycles
    of the whole width."""
    parts = []
    for region in regions:
        spent = region.values["times"] * region.values["cycles"]
        share = 100 * spent / cycles if cycles else 0.0
        tip = f"{region.label}: {spent:,} cycles, {share:.1f} % of all" + (
            f"; {region.span.replace('`', '')}" if region.span else ""
        )
        parts.append(BarPart(region.label, spent, tip, region.key, region.number))
    return time_bar(parts, scale)


def _region_table(run: Values, regions: Sequence[RegionPage]) -> Markup:
    columns = (
        Column("region", "a click opens it; regions that run alike share a row, with the numbers of one", words=True),
        Column("Einsums", "how many are fused in it"),
        Column("cycles", "how long one of them takes"),
        Column("of all, %", "the share of all that run like it, of the cycles of the run"),
        Column("roofline, cycles", "at least so many: of its busiest node, or to move its bytes"),
        Column("over roofline", "cycles, divided by the roofline"),
        Column("limited by", "the node that most of its critical path is due to, or its busiest node", words=True),
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
    return (
        Link(region.label, region.key, region.number),
        len(values["einsums"]), values["cycles"], share, bound, over, region.limits or "",
        values["nodes"], values["firings"], values["tokens"], region.flops, region.read, region.written,
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
    pages, rows = {region.name: region for region in regions}, list[tuple[Cell, ...]]()
    for region in energy["regions"]:
        page = pages[region["name"]]
        numbers = (*(region["parts"][part] for part in parts), region["total"])
        rows.append((Link(page.label, page.key, page.number), *(f"{number / 1000:,.2f}" for number in numbers)))
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
        thing = things[things.add("tensor", name)]
        shape = next((text for label, text in thing.facts if label == "shape"), "")
        rows.append((Link(name, thing.key, things.number("tensor", name)), shape, read, written, Bar(100 * total / most)))
    return html_table(columns, rows)
