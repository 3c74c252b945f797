"""The paper's models, unfused, partially and fully fused: one run after the other, each in a process of its own, none twice.

    python evaluation/model_runs.py --store models.jsonl [--data-dir DIR] [--machine comal] [--only 'gcn/cora/*'] [--limit 3600]
    python evaluation/model_runs.py --store models.jsonl --summary

A point is a model, data, a granularity and a machine. Its result is a line of the store, written when it is there: a run that is killed
loses the point that it was at, and goes on there. Failures and points that take longer than the limit are lines too, tried again only
with `--again`. Graphs whose files are not in `--data-dir` are replaced by stand-ins, which are other points and say so.
"""

from __future__ import annotations

import fnmatch
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import click
from claims import published
from model_runs_table import summary
from process_pool import run_apart
from store import AGAIN, DATA_DIR, LIMIT, LIST, ONLY, ROOT, STORE, left, load, work

from fuseflow.frontend.data import FILE_READERS, has_files

GRANULARITIES = ("unfused", "partial", "full")
GRAPHS = ("cora", "citeseer", "cora_ml", "dblp", "collab")
IMAGES = ("imagenet", "nih", "luna16")
BLOCKS = (16, 32, 64)
APART = ("collab",)
"""Graphs whose full fusion takes hours: asked for by name (`--only`)."""


@dataclass(frozen=True, slots=True)
class Point:
    """`workload` is the short name of the data (`cora`, `b64`), `data` the spec that is run. `granularity` is
    one of GRANULARITIES, or names a file in schedules/paper (`figure14/layer1`). `formats` are those of `--format`, such as `X=csr`."""

    model: str
    workload: str
    data: str
    granularity: str
    machine: str
    options: tuple[str, ...] = ()
    formats: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """What tells it from all other points."""
        options = "".join(f"+{option}" for option in (*self.options, *self.formats))
        return f"{self.model}/{self.data}/{self.granularity}/{self.machine}{options}"

    def command(self, data_dir: Path | None) -> list[str]:
        files = ["--data-dir", str(data_dir)] if data_dir is not None and self.data.partition(":")[0] in FILE_READERS else []
        options = [word for option in self.options for word in ("-O", option)]
        options += [word for form in self.formats for word in ("--format", form)]
        named = f"{self.model}_{self.granularity}" if self.granularity in GRANULARITIES else f"paper/{self.granularity}"
        schedule = ROOT / "schedules" / f"{named}.yaml"
        model = ROOT / "models" / "paper" / f"{self.model}.py"
        run = [sys.executable, "-m", "fuseflow", "run", str(model), "--data", self.data, *files, *options]
        # The published graphs scan outermost levels in every loop, and the figures stand beside their numbers. None has other formats.
        convention = [] if self.formats else ["--rescan", "every"]
        return [*run, "--schedule", str(schedule), *convention, "--machine", self.machine, "--json", "-", "--quiet"]


@dataclass(frozen=True, slots=True)
class Row:
    """What became of a point: `done`, `failed` or `limit` (it took too long). `arrays`: bytes read and written by array (pos, crd, val)."""

    key: str
    point: dict[str, Any]
    state: str
    seconds: float
    peak_mb: int
    cycles: int = 0
    flops: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    regions: dict[str, int] = field(default_factory=dict)
    check: dict[str, Any] | None = None
    notices: list[str] = field(default_factory=list)
    simulate_seconds: float = 0.0
    error: str = ""
    arrays: dict[str, dict[str, int]] = field(default_factory=dict)


def points(machine: str, data_dir: Path | None, decoders: int) -> Iterator[Point]:
    """All of them, the cheap ones first."""
    for granularity in GRANULARITIES:
        for graph in GRAPHS:
            real = data_dir is not None and has_files(graph, data_dir)
            for model in ("gcn", "graphsage"):
                yield Point(model, graph, graph if real else f"synthetic:{graph}", granularity, machine)
        for images in IMAGES:
            yield Point("sae", images, f"images:{images}", granularity, machine)
        for block in BLOCKS:
            options = () if decoders == 12 else (f"decoders={decoders}",)
            yield Point("gpt", f"b{block}", f"bigbird:block={block}", granularity, machine, options)


def is_named(point: Point, patterns: Sequence[str]) -> bool:
    names = (point.key, f"{point.model}/{point.workload}/{point.granularity}")
    return any(fnmatch.fnmatch(name, pattern) for name in names for pattern in patterns)


def wanted(point: Point, only: tuple[str, ...]) -> bool:
    if only:
        return is_named(point, only)
    return not (point.workload in APART and point.granularity == "full")


def run(point: Point, data_dir: Path | None, limit: float) -> Row:
    """Run a point in a process of its own, which is ended at the limit."""
    ran = run_apart(point.command(data_dir), limit)
    about, result = (point.key, asdict(point)), ran.result
    if result is None:
        return Row(*about, **ran.ended(limit))
    return Row(
        *about,
        **ran.ended(limit),
        cycles=result["cycles"],
        flops=result["flops"],
        bytes_read=result["bytes"]["read"],
        bytes_written=result["bytes"]["write"],
        regions={region["name"]: region["cycles"] * region["times"] for region in result["regions"]},
        check=result["check"],
        notices=result["notices"],
        simulate_seconds=result["seconds"]["simulate"],
        arrays=by_array(result["bytes"]["by_tensor"]),
    )


def by_array(tensors: Mapping[str, Mapping[str, Mapping[str, float]]]) -> dict[str, dict[str, int]]:
    """Bytes by array and direction, of all tensors together."""
    found: dict[str, dict[str, int]] = {}
    for arrays in tensors.values():
        for array, moved in arrays.items():
            both = found.setdefault(array, {"read": 0, "write": 0})
            for direction in both:
                both[direction] += round(moved[direction])
    return dict(sorted(found.items()))


def _place(row: Row) -> tuple[Any, ...]:
    """By model, workload and granularity."""
    known = [*GRAPHS, *IMAGES, *(f"b{block}" for block in BLOCKS)]
    workload = row.point["workload"]
    at = known.index(workload) if workload in known else len(known)
    return row.point["model"], at, row.point["data"], GRANULARITIES.index(row.point["granularity"])


@click.command(help=__doc__.partition("\n")[0])
@STORE
@DATA_DIR
@click.option("--machine", default="comal", show_default=True)
@click.option("--decoders", type=click.IntRange(1), default=12, show_default=True, help="Of GPT-3; all of them do the same work.")
@click.option(
    "--format", "formats", multiple=True, metavar="TENSOR=FORMAT", help="Of each run, as `fuseflow run` has it; repeatable."
)
@ONLY
@LIMIT
@AGAIN
@LIST
@click.option("--summary", "only_summary", is_flag=True, help="Run nothing; print the table of what there is.")
def main(
    store: Path,
    data_dir: Path | None,
    machine: str,
    decoders: int,
    formats: tuple[str, ...],
    only: tuple[str, ...],
    limit: float,
    again: bool,
    listing: bool,
    only_summary: bool,
) -> None:
    rows = load(store, Row)
    asked = [replace(point, formats=formats) for point in points(machine, data_dir, decoders) if wanted(point, only)]
    if not asked:
        raise click.UsageError(f"no point is like {', '.join(only)}")
    todo = left(asked, rows, again)
    if listing:
        return click.echo("".join(f"{point.key}\n" for point in todo), nl=False)
    if not only_summary:
        work(todo, lambda point: run(point, data_dir, limit), store, rows)
    kept = sorted((row for row in rows.values() if row.point["machine"] == machine), key=_place)
    click.echo(summary(kept, GRANULARITIES, published("figure12")), nl=False)


if __name__ == "__main__":
    main()
