"""The recorded exact runs of the paper's models, sampled: is the exact number in the interval of the sample, or within 1 % of it?

    python evaluation/sampled_rows.py --store sampled_rows.jsonl [--data-dir DIR] [--sample error=1%] [--only 'gcn/cora/*'] [--most 1e9]
    python evaluation/sampled_rows.py --store sampled_rows.jsonl --table

The exact runs are those of evaluation/rows/models.jsonl. A region that is too short to be sampled is run as it is, and must then have
the recorded cycles. A run that is killed loses the point that it was at. Points that are in the store are not sampled again.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
import model_runs
from process_pool import run_apart
from store import DATA_DIR, ONLY, STORE, TABLE, append, like, load

RECORDED = Path(__file__).parent / "rows" / "models.jsonl"
LARGEST_ERROR = 0.01


@dataclass(frozen=True, slots=True)
class SampledRegionRow:
    """A region: its exact cycles, and its sampled number with its interval. Without a sample all three are those of an exact run."""

    name: str
    exact: int
    estimate: int
    low: int
    high: int
    sampled: bool

    @property
    def off(self) -> float:
        """By which share of the exact number the sampled one is off."""
        return self.estimate / self.exact - 1

    @property
    def right(self) -> bool:
        """Whether the exact number is in the interval, or near the sampled one. An exact number must be the recorded one."""
        return self.low <= self.exact <= self.high or (self.sampled and abs(self.off) <= LARGEST_ERROR)


@dataclass(frozen=True, slots=True)
class Row:
    """A point that was sampled, in all and region by region."""

    key: str
    sample: str
    state: str
    seconds: float
    processor_seconds: float
    regions: list[dict[str, Any]] = field(default_factory=list)
    error: str = ""

    def parts(self) -> Iterator[SampledRegionRow]:
        """Yield the number of the whole run, and those of its regions."""
        return (SampledRegionRow(**values) for values in self.regions)


def sampled(recorded: model_runs.Row, sample: str, data_dir: Path | None, limit: float) -> Row:
    """Sample a point whose exact cycles are known, in a process of its own."""
    point = model_runs.Point(**{**recorded.point, "options": tuple(recorded.point["options"])})
    ran = run_apart([*point.command(data_dir), "--sample", sample], limit)
    about = (recorded.key, sample)
    times = (ran.seconds, ran.processor_seconds)
    if ran.result is None:
        return Row(*about, "limit" if ran.late else "failed", *times, error=ran.said[-2000:])
    regions = list(_regions(recorded, ran.result))
    state, said = ("failed", ran.said[-2000:]) if ran.status else ("done", "")
    return Row(*about, state, *times, regions=regions, error=said)


def _regions(recorded: model_runs.Row, result: dict[str, Any]) -> Iterator[dict[str, Any]]:
    whole = result["sampled_cycles"]
    yield {"name": "total", "exact": recorded.cycles, **_numbers(whole), "sampled": whole["low"] < whole["high"]}
    for region in result["regions"]:
        times, name = region["times"], region["name"]
        numbers = (
            _numbers(region["sampled_cycles"])
            if "sampled_cycles" in region
            else dict.fromkeys(("estimate", "low", "high"), region["exact_cycles"])
        )
        counted = {key: times * value for key, value in numbers.items()}
        yield {"name": name, "exact": recorded.regions[name], **counted, "sampled": "sampled_cycles" in region}


def _numbers(cycles: dict[str, Any]) -> dict[str, int]:
    return {key: cycles[key] for key in ("estimate", "low", "high")}


def table(rows: Iterable[Row]) -> str:
    """Return markdown: each point, and each region of it that was sampled or that is wrong."""
    lines = [
        "| point | region | exact cycles | sampled | off | right | processor seconds |",
        "|---|---|---:|---:|---:|---|---:|",
    ]
    for row in rows:
        if not row.regions:
            lines.append(f"| {row.key} | {row.state} | - | - | - | no | {row.processor_seconds:,.0f} |")
        for part in row.parts():
            if part.name != "total" and part.right and not part.sampled:
                continue
            number = f"~{part.estimate:,} ± {(part.high - part.low) // 2:,}" if part.sampled else f"{part.estimate:,}"
            right, seconds = "yes" if part.right else "no", f"{row.processor_seconds:,.0f}" if part.name == "total" else ""
            lines.append(f"| {row.key} | {part.name} | {part.exact:,} | {number} | {part.off:+.3%} | {right} | {seconds} |")
    return "\n".join(lines) + "\n"


def verdict(rows: Iterable[Row]) -> str:
    """Say how many totals and how many sampled regions have the exact number in their interval, and how many are right."""
    parts = [part for row in rows for part in row.parts()]
    told = []
    for what, some in (
        ("sampled totals", [p for p in parts if p.name == "total" and p.sampled]),
        ("sampled regions", [p for p in parts if p.name != "total" and p.sampled]),
    ):
        inside = sum(p.low <= p.exact <= p.high for p in some)
        told.append(
            f"{what}: {inside} of {len(some)} in their interval, {sum(p.right for p in some)} there or within {LARGEST_ERROR:.0%}"
        )
    return "\n".join(told) + "\n"


@click.command(help=__doc__.partition("\n")[0])
@STORE
@DATA_DIR
@click.option("--machine", default="rda", show_default=True)
@click.option("--sample", default="error=1%", show_default=True, help="What is asked of each sample.")
@ONLY
@click.option("--most", type=click.FloatRange(min=0), default=1e10, show_default=True, help="The most cycles of an exact run.")
@click.option("--limit", type=click.FloatRange(min=0, min_open=True), default=600, show_default=True, help="Seconds for a point.")
@TABLE
def main(
    store: Path,
    data_dir: Path | None,
    machine: str,
    sample: str,
    only: tuple[str, ...],
    most: float,
    limit: float,
    only_table: bool,
) -> None:
    rows = load(store, Row)
    known = load(RECORDED, model_runs.Row).values()
    exact = [row for row in known if row.point["machine"] == machine and row.state == "done" and row.cycles <= most]
    asked = [row for row in exact if like(row.key, only)]
    if not asked:
        raise click.UsageError("no recorded run is like that")
    for recorded in () if only_table else sorted(asked, key=lambda row: row.cycles):
        if recorded.key not in rows:
            row = sampled(recorded, sample, data_dir, limit)
            append(store, row)
            rows[row.key] = row
            click.echo(f"{row.key}: {row.state}, {row.processor_seconds:,.0f} s of processor time", err=True)
    click.echo(table(rows.values()) + "\n" + verdict(rows.values()), nl=False)
    if not all(part.right for row in rows.values() for part in row.parts()):
        sys.exit(1)


if __name__ == "__main__":
    main()
