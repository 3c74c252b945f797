"""The rows of `evaluation.py` as a table, and what they say of each other: rows of the same point with other seeds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

from claims import markdown
from model_runs import GRANULARITIES
from model_runs_table import NAMES

HEADS = ("model", "data", "fused", "cycles", "speed", "published", "sampled", "firings", "processor s", "peak MB")


def table(rows: Sequence[Any], published: Mapping[str, Sequence[int]], jobs: int) -> str:
    """Markdown: a line a point, in the order of the rows, and what all of them took. A sampled number has a `~` and its interval, and so
    has each speed that one goes into."""
    unfused = {(row.point["model"], row.point["data"]): row for row in rows if row.point["granularity"] == GRANULARITIES[0]}
    lines = []
    for row in rows:
        model, granularity = row.point["model"], row.point["granularity"]
        theirs = published[f"{model}/{row.point['workload']}"]
        lines.append(
            [
                NAMES[model],
                f"`{row.point['data']}`",
                granularity,
                cycles_text(row),
                _speed(unfused.get((model, row.point["data"])), row),
                f"{theirs[0] / theirs[GRANULARITIES.index(granularity)]:.2f}",
                _share(row),
                f"{row.firings:,}",
                f"{row.processor_seconds:,.0f}",
                f"{row.peak_mb:,}",
            ]
        )
    seconds = sum(row.processor_seconds for row in rows)
    total = f"{len(rows)} points took {seconds / 60:,.1f} minutes of a processor: {seconds / 60 / jobs:,.1f} on {jobs} that are free.\n"
    return markdown(HEADS, lines, 3) + "\n" + total


def cycles_text(row: Any) -> str:
    """Return the cycles of a row: an exact number, a sampled one with its interval, or what happened instead."""
    if row.state != "done":
        return str(row.state)
    if row.exact_cycles is not None:
        return f"{row.exact_cycles:,}"
    low, high = interval(row)
    return f"~{row.sampled_cycles['estimate']:,} ± {(high - low) / 2:,.0f}"


def interval(row: Any) -> tuple[int, int]:
    """Return the least and the most cycles that a row says."""
    if row.exact_cycles is not None:
        return row.exact_cycles, row.exact_cycles
    return row.sampled_cycles["low"], row.sampled_cycles["high"]


def error(row: Any) -> float:
    """Return half of the interval of a row as a share of its middle: 0 of an exact one."""
    low, high = interval(row)
    return (high - low) / (high + low) if high else 0.0


def _speed(unfused: Any, row: Any) -> str:
    return "" if unfused is None or unfused.state != "done" or row.state != "done" else speed(unfused, row)


def speed(unfused: Any, row: Any) -> str:
    """How much faster than unfused it is, with a `~` where either is sampled."""
    sampled = row.exact_cycles is None or unfused.exact_cycles is None
    return f"{'~' if sampled else ''}{sum(interval(unfused)) / sum(interval(row)):.2f}"


def _share(row: Any) -> str:
    """How much of the work of the sampled regions was run; empty where nothing was sampled."""
    shares = [region["sample"]["share"] for region in row.regions if "sample" in region]
    return f"{len(shares)} of {len(row.regions)} regions, ± {error(row) * 100:.2f} %" if shares else ""


def disagreements(rows: Iterable[Any]) -> Iterator[str]:
    """Yield a sentence for each two rows of one point that cannot both be right, whatever was asked: their intervals have no number in
    common."""
    by_point: dict[str, list[Any]] = {}
    for row in rows:
        if row.state == "done":
            by_point.setdefault(row.key.partition("?")[0], []).append(row)
    for point, same in by_point.items():
        for one, other in combinations(same, 2):
            (low, high), (other_low, other_high) = interval(one), interval(other)
            if high < other_low or other_high < low:
                yield f"{point}: {cycles_text(one)} with {one.asked}, but {cycles_text(other)} with {other.asked}"
