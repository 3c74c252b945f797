"""Models of others at real sizes: how long their import takes, and how many cycles each granularity.

    python evaluation/real_models.py --data-dir DIR [--only 'bert/*'] [--limit 600] [--again]   # complete the rows
    python evaluation/real_models.py --table                                                    # the table of what there is
    python evaluation/real_models.py --write                                                    # the table in docs/measured/models.md

A point is a model and what is measured of it: `import`, or a granularity. It is run in a process of its own (`real_model_point.py`), and is
a line of the store when it is done. Points that are refused or take longer than the limit are lines, too, tried again only with `--again`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
from claims import between_marks, cell, markdown
from process_pool import run_apart
from real_model_list import MODELS, RealModel
from store import AGAIN, DATA_DIR, ONLY, ROOT, ROWS, TABLE, left, like, load, work

PAGE = ROOT / "docs" / "measured" / "models.md"
STORE = ROWS / "real_models.jsonl"
FUSED = ("layerwise", "full", "auto")
MEASURES = ("import", "none", *FUSED)
MOST_SECONDS = 5
"""What a warm import may take."""


@dataclass(frozen=True, slots=True)
class Point:
    model: str
    measure: str
    data_dir: Path | None = None

    @property
    def key(self) -> str:
        return f"{self.model}/{self.measure}"

    @property
    def command(self) -> list[str]:
        files = ["--data-dir", str(self.data_dir)] if self.data_dir else []
        return [sys.executable, str(Path(__file__).with_name("real_model_point.py")), self.model, self.measure, *files]


@dataclass(frozen=True, slots=True)
class Row:
    """What became of a point: `done`, `refused`, `wrong`, `failed` or `limit`. `values` are those that the process printed."""

    key: str
    state: str
    seconds: float
    peak_mb: int
    values: dict[str, Any] = field(default_factory=dict)
    error: str = ""

    @property
    def cycles(self) -> int:
        return int(self.values.get("cycles", 0))


def points(data_dir: Path | None) -> list[Point]:
    return [Point(model.name, measure, data_dir if model.graph else None) for model in MODELS for measure in MEASURES]


def run(point: Point, limit: float) -> Row:
    """Run a point in a process of its own, which is ended at the limit."""
    ran = run_apart(point.command, limit)
    if ran.result is None:
        ended = ran.ended(limit)  # the last line of a traceback says what happened
        return Row(point.key, **{**ended, "error": ended["error"].splitlines()[-1]})
    if "refused" in ran.result:
        return Row(point.key, "refused", ran.seconds, ran.peak_mb, error=ran.result["refused"])
    state = "done" if ran.result.get("passed", True) else "wrong"
    return Row(point.key, state, ran.seconds, ran.peak_mb, ran.result)


# The table -------------------------------------------------------------------------------------------------------------------

HEADS = (
    "model", "sizes", "regions, auto", "cycles, none", "cycles, auto", "speed, auto", "best", "cycles, best", "speed, best",
    "FLOPs share", "error", "import, s", "import, MB", "tensors, MB", "remarks",
)  # fmt: skip


def table(rows: Mapping[str, Row]) -> str:
    """Markdown: a line for each model. A number of cycles that was estimated has a `~`."""
    return markdown(HEADS, (_line(model, rows) for model in MODELS), 2)


def _line(model: RealModel, rows: Mapping[str, Row]) -> list[str]:
    of = {measure: rows[f"{model.name}/{measure}"] for measure in MEASURES if f"{model.name}/{measure}" in rows}
    done = {measure: row.values for measure, row in of.items() if row.state == "done"}
    imported, none = done.get("import", {}), done.get("none", {})
    best = min(done.keys() - {"import"}, key=lambda m: (done[m]["cycles"], MEASURES.index(m)), default="")
    errors = [values["error"] for values in done.values() if "error" in values]
    return [
        model.title,
        model.sizes,
        cell(done.get("auto", {}).get("regions"), ","),
        _cycles(none),
        _cycles(done.get("auto", {})),
        cell(_speed(none, done.get("auto", {}))),
        best,
        _cycles(done.get(best, {})),
        cell(_speed(none, done.get(best, {}))),
        cell(imported.get("flops_share")),
        cell(max(errors, default=None), ".0e"),
        cell(imported.get("import_seconds"), ".1f"),
        cell(imported.get("import_mb"), ","),
        cell(imported.get("tensors_mb"), ".0f"),
        _remarks(of),
    ]


def _speed(none: Mapping[str, Any], fused: Mapping[str, Any]) -> float | None:
    return none["cycles"] / fused["cycles"] if none and fused else None


def _cycles(values: Mapping[str, Any]) -> str:
    if not values:
        return ""
    return f"{'~' if values['how'] == 'estimated' else ''}{values['cycles']:,}"


def _remarks(of: Mapping[str, Row]) -> str:
    """What was not run, and why; what was estimated."""
    said = [f"{measure}: {_sentence(row)}" for measure, row in of.items() if row.state != "done"]
    for measure, row in of.items():
        if row.values.get("how") == "estimated":
            said.append(f"{measure}: {_cycles(row.values)}, estimated ({row.values['firings']:.0e} firings)")
    missing = [measure for measure in MEASURES if measure not in of]
    return "; ".join([*said, *([f"not run: {', '.join(missing)}"] if missing else [])])


def _sentence(row: Row) -> str:
    first = row.error.strip().partition("\n")[0].replace("|", "/")[:120]
    return f"{row.state}, {first}" if first else row.state


def broken(rows: Iterable[Row]) -> list[str]:
    """What a table must not show: a wrong value, a crash, or an import that takes too long."""
    late = [row.key for row in rows if row.values.get("import_seconds", 0) > MOST_SECONDS]
    return late + [row.key for row in rows if row.state in ("wrong", "failed")]


@click.command(help=__doc__.partition("\n")[0])
@click.option("--store", type=click.Path(path_type=Path, dir_okay=False), default=STORE, help="JSON lines.")
@DATA_DIR
@ONLY
@click.option("--limit", type=click.FloatRange(min=0, min_open=True), default=600, show_default=True, help="Seconds for a point.")
@AGAIN
@TABLE
@click.option("--write", is_flag=True, help="Run nothing; write the table into docs/measured/models.md.")
def main(
    store: Path, data_dir: Path | None, only: tuple[str, ...], limit: float, again: bool, only_table: bool, write: bool
) -> None:
    rows = load(store, Row)
    if write:
        page = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(between_marks(page, "real models", "real_models", table(rows)), encoding="utf-8")
        return
    if not only_table:
        asked = [p for p in points(data_dir) if like(p.key, only)]
        if not asked:
            raise click.UsageError(f"no point is like {', '.join(only)}")
        work(left(asked, rows, again), lambda point: run(point, limit), store, rows)
    click.echo(table(rows), nl=False)


if __name__ == "__main__":
    main()
