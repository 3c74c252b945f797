"""The page of a stored run, rendered through the templates beside this file. The same run gives the same bytes.

Its first screen has the regions over time and as a table, faster changes, the roofline, and memory by tensor.
"""

from __future__ import annotations

import functools
import zlib
from base64 import b64encode
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec

import networkx as nx
from jinja2 import TemplateError
from markupsafe import Markup

from fuseflow.errors import FileError
from fuseflow.loop_progress import counted
from fuseflow.report.page.advice import limits, remedies
from fuseflow.report.page.assets import render
from fuseflow.report.page.catalog import catalog
from fuseflow.report.page.charts import compute_roof, roofline
from fuseflow.report.page.html_elements import Bar, Cell, Column, Link, html_table, printable_text
from fuseflow.report.page.regions import RegionPage, region_page, repeated_label
from fuseflow.report.page.run_directory import AGAIN, StoredRun, Values
from fuseflow.report.page.run_pairs import region_pairs, speed_up, speed_up_table
from fuseflow.report.page.things import Things
from fuseflow.report.page.time_bars import BarPart, time_bar
from fuseflow.report.page.training import training_chapter
from fuseflow.yaml_text import write_yaml

MALFORMED = (
    ArithmeticError, AttributeError, LookupError, RecursionError, TemplateError, TypeError, ValueError, nx.NetworkXException,
)  # fmt: skip
"""The errors that drawing raises for values that are not the values of a run."""


P = ParamSpec("P")


def printable(make: Callable[P, str]) -> Callable[P, str]:
    """Let a function that makes a page return no unprintable characters, and raise `FileError` for values that are not as fuseflow writes
    them."""

    @functools.wraps(make)
    def made(*args: P.args, **kwargs: P.kwargs) -> str:
        try:
            text = make(*args, **kwargs)
        except MALFORMED as error:
            raise FileError(f"the run is not as fuseflow writes it: {type(error).__name__} {error}", hint=AGAIN) from error
        return printable_text(text)

    return made


@printable
def page(stored: StoredRun, baseline: tuple[str, StoredRun] | None = None, bare: bool = False) -> str:
    """Return the page of a run, which is compared region by region with a `baseline` if there is one: its name, and the run. A `bare` page
    has no style and no scripts. Raises `FileError` if fuseflow would not write such values of a run."""
    things = catalog(stored)
    run = counted(stored.result["regions"], "laying out graphs")
    regions = [region_page(values, stored, things) for values in run]
    return render(
        "page.html.jinja",
        things,
        run=stored.result,
        regions=regions,
        overview=overview(stored, regions, things, baseline),
        explained=stored.cycles is not None,
        settings=write_yaml(stored.result["machine_settings"]),
        bare=bare,
    )


def packed_page(text: str) -> str:
    """Return a bare page as a text that may stand inside of another, whose script `runs.js` opens it: compressed, in base 64."""
    return b64encode(zlib.compress(text.encode(), 9)).decode()


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
