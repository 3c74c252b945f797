"""The table of two runs that says, region by region, how much faster the second is than the first, its baseline."""

from __future__ import annotations

from collections.abc import Sequence

from fuseflow.report.page.html_table import Bar, Cell, Column, Link, html_table
from fuseflow.report.page.region_pairs import RegionPair
from fuseflow.report.page.regions import repeated_label
from fuseflow.report.page.svg import Markup


def speed_up(before: int, after: int) -> str:
    """Return the speed-up from `before` to `after`, which are cycles, as text; "" if one of them is 0."""
    return f"{before / after:.2f}" if before and after else ""


def speed_up_table(
    pairs: Sequence[RegionPair], links: Sequence[Link | None], cycles: tuple[int, int], sides: tuple[str, str] = ("A", "B")
) -> Markup:
    """Return a row for each pair of regions, whose name leads to its link, and a row for the whole runs, which take `cycles`.
    `sides` name the runs."""
    first, second = sides
    columns = (
        Column(f"regions of {second}", f"that compute the same as those of {first}", words=True),
        Column(f"regions of {first}", words=True),
        Column(f"{first}, cycles"),
        Column(f"{second}, cycles"),
        Column("speed-up", f"the cycles of {first}, divided by those of {second}"),
        Column("saved, cycles", f"the cycles of {first} less those of {second}"),
        Column(
            "of the slower", f"what is saved, of the slower of both: green where {second} is faster, red where slower", words=True
        ),
    )
    rows: list[tuple[Cell, ...]] = []
    for pair, link in zip(pairs, links, strict=True):
        before, after = pair.cycles
        name: Cell = link if link is not None else ", ".join(map(repeated_label, pair.after)) or "none"
        names = name, ", ".join(map(repeated_label, pair.before)) or "none"
        rows.append((*names, before, after, speed_up(before, after), before - after, _change(before, after)))
    total = speed_up(*cycles), cycles[0] - cycles[1], _change(*cycles)
    rows.append(("total", "total", *cycles, *total))
    return html_table(columns, rows, sortable=False)


def _change(before: int, after: int) -> Bar | None:
    if before == after:
        return None
    return Bar(100 * abs(before - after) / max(before, after), "good" if after < before else "bad")
