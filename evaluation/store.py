"""Points that are run one after the other, and a store of their rows: JSON lines, each on disk before the next point begins."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, Protocol, TypeVar

import click

ROOT = Path(__file__).resolve().parents[1]
ROWS = ROOT / "evaluation" / "rows"
FOLDER = click.Path(path_type=Path, exists=True, file_okay=False)
STORE = click.option("--store", type=click.Path(path_type=Path, dir_okay=False), required=True, help="JSON lines.")
DATA_DIR = click.option("--data-dir", type=FOLDER, help="Where the files of graphs are.")
ONLY = click.option("--only", multiple=True, metavar="PATTERN", help="Points whose keys are like this; repeatable.")
LIMIT = click.option("--limit", type=click.FloatRange(0, min_open=True), default=3600, show_default=True, help="Seconds a point.")
AGAIN = click.option("--again", is_flag=True, help="Try what failed or took too long again.")
LIST = click.option("--list", "listing", is_flag=True, help="Print the points that are to be run, and end.")
TABLE = click.option("--table", "only_table", is_flag=True, help="Run nothing; print the table of what there is.")
"""Options that studies share."""


class Row(Protocol):
    """What became of a point: a dataclass with a key, and where points are run one after the other with a state and what that took."""

    key: str
    state: str
    cycles: int
    seconds: float
    peak_mb: int


RowT = TypeVar("RowT")
PointT = TypeVar("PointT")


def rows(store: str) -> dict[str, dict[str, Any]]:
    """The last row of every point that is done."""
    path = ROWS / f"{store}.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    found = {row["key"]: row for row in map(json.loads, lines)}
    return {key: row for key, row in found.items() if row.get("state", "done") == "done"}


def like(key: str, patterns: Sequence[str]) -> bool:
    """Whether a key matches a pattern of the shell, or there is none."""
    return not patterns or any(fnmatch(key, pattern) for pattern in patterns)


def write(store: str, made: Iterable[Mapping[str, Any]]) -> None:
    """Write all rows of a store anew."""
    lines = [json.dumps(row) + "\n" for row in made]
    (ROWS / f"{store}.jsonl").write_text("".join(lines), encoding="utf-8")


def add(store: str, row: Mapping[str, Any]) -> None:
    """One line."""
    with (ROWS / f"{store}.jsonl").open("a", encoding="utf-8") as stream:
        stream.write(json.dumps(row) + "\n")


def complete(store: str, points: Iterable[str], measure: Callable[[str], Mapping[str, Any]], only: Sequence[str]) -> None:
    """Measure the points without a row whose keys are like `only`, and add one line when each is done."""
    done = rows(store)
    for key in points:
        if key not in done and like(key, only):
            add(store, {"key": key, **measure(key)})


def load(store: Path, row: Callable[..., RowT]) -> dict[str, RowT]:
    """The last row of every point. A line that was cut off, as the process was killed, is left out."""
    found: dict[str, RowT] = {}
    for line in store.read_text(encoding="utf-8").splitlines() if store.exists() else ():
        try:
            read = row(**json.loads(line))
        except (json.JSONDecodeError, TypeError):
            continue
        found[read.key] = read
    return found


def append(store: Path, row: Any) -> None:
    """One line, on disk when this returns; behind a line that was cut off it begins a new one."""
    with store.open("ab+") as stream:
        if stream.tell():
            stream.seek(-1, os.SEEK_END)
            if stream.read(1) != b"\n":
                stream.write(b"\n")
        stream.write(json.dumps(asdict(row)).encode() + b"\n")
        stream.flush()
        os.fsync(stream.fileno())


def left(points: Iterable[PointT], rows: dict[str, Row], again: bool = False) -> list[PointT]:
    """Those without a row; with `again` those that are not done."""
    return [p for p in points if p.key not in rows or (again and rows[p.key].state != "done")]


def work(points: Sequence[PointT], run: Callable[[PointT], Row], store: Path, rows: dict[str, Row]) -> None:
    """One point after the other, each in `store` and in `rows` before the next begins."""
    for number, point in enumerate(points, start=1):
        click.echo(f"[{number}/{len(points)}] {point.key} ...", err=True, nl=False)
        row = run(point)
        append(store, row)
        rows[row.key] = row
        click.echo(f" {row.state}, {row.cycles:,} cycles, {row.seconds:,.0f} s, {row.peak_mb:,} MB", err=True)
