"""What the first screen of a page begins with: what limits the run, what would take fewer cycles and by how much, and the commands."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from fuseflow.report.page.regions import RegionPage
from fuseflow.report.page.run_directory import StoredRun, Values


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
