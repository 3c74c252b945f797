"""The changes that `fuseflow explain cycles` names, made: what they were expected to take, and what they take.

    python tools/changes.py [--only 'gcn.py*rda'] [--table]

Prints a line for each; `--table`: the first of each case, as Markdown. The last line sums up all: by how much they are off, and how
often the first is the best.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

import click

import fuseflow as ff
from fuseflow.explain.cycles import Change, explain_cycles, reschedule
from fuseflow.schedule import Schedule

MODELS = Path(__file__).resolve().parents[1] / "models"
MACHINES = ("ideal", "rda")
CASES: tuple[tuple[str, dict[str, str], str], ...] = (
    ("gcn.py", {}, "layerwise"),
    ("gcn.py", {}, "none"),
    ("gcn.py", {}, "full"),
    ("graphsage.py", {}, "layerwise"),
    ("graphsage.py", {}, "full"),
    ("sae.py", {"small": "true"}, "layerwise"),
    ("sae.py", {"small": "true"}, "none"),
    ("gpt_bigbird.py", {"small": "true", "part": "attention"}, "layerwise"),
    ("gpt_bigbird.py", {"small": "true", "part": "attention"}, "none"),
)


@dataclass(frozen=True, slots=True)
class Row:
    """Cycles now, as they were expected of a change, and as they are."""

    case: str
    machine: str
    change: Change
    now: int
    cycles: int

    @property
    def error(self) -> float:
        """In percent of what it takes."""
        return 100 * (self.change.cycles - self.cycles) / self.cycles


def measured(name: str, options: dict[str, str], fuse: str, machine: str) -> Iterator[Row]:
    """Every change of a case, the one that is expected to help most first."""
    case = " ".join((name.removesuffix(".py"), *([options["part"]] if "part" in options else []), fuse))
    compiled = ff.compile(MODELS / name, options=options, schedule=Schedule.fuse(fuse), machine=machine)
    report = explain_cycles(compiled)
    for change in report.changes:
        made = replace(reschedule(compiled, change.schedule), machine=change.machine)
        yield Row(case, machine, change, report.result.cycles, made.run(check=False).cycles)


@click.command(help=__doc__.partition("\n")[0])
@click.option("--only", default="*", metavar="PATTERN", help="MODEL/FUSE/MACHINE, as in gcn.py/*/rda.")
@click.option("--table", is_flag=True, help="Markdown, of the first change of each case.")
def main(only: str, table: bool) -> None:
    cases = [(m, o, f, on) for m, o, f in CASES for on in MACHINES if fnmatch.fnmatchcase(f"{m}/{f}/{on}", only)]
    rows: list[list[Row]] = []
    if table:
        click.echo("| model, fused | machine | cycles | change | expected | is | error |\n|---|---|---:|---|---:|---:|---:|")
    for case in cases:
        rows.append(list(measured(*case)))
        for row in rows[-1][:1] if table else rows[-1]:
            cells = (row.case, row.machine, f"{row.now:,}", f"`{row.change.flags}`", f"{row.change.cycles:,}", f"{row.cycles:,}")
            exact = ", run" if row.change.measured else ""
            line = " | ".join((*cells, f"{row.error:+.1f} %{exact}"))
            click.echo(f"| {line} |" if table else line)
    click.echo(summary(rows))


def summary(rows: list[list[Row]]) -> str:
    """How far estimated changes are off, and how often the change named first is the best one, or helps at all as it was to."""
    estimated = [row for case in rows for row in case if not row.change.measured]
    errors = sorted(abs(row.error) for row in estimated)
    direction = sum((row.change.cycles < row.now) == (row.cycles < row.now) for row in estimated)
    lost = [case[0].cycles / min(row.cycles for row in case) for case in rows if case]
    return (
        f"{len(estimated)} estimated changes: off by {median(errors):.1f} % (median), {max(errors):.1f} % at most, "
        f"{sum(e > 25 for e in errors)} by more than 25 %; {direction} in the right direction; "
        f"the first of a case takes {max(lost):.2f} times the best at most, {sum(x == 1 for x in lost)} of {len(lost)} are the best"
    )


if __name__ == "__main__":
    main()
