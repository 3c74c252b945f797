"""The results of a sweep as a table with a line for each point, on a terminal, as CSV or as Parquet, and its progress."""

from __future__ import annotations

import csv
import io
import operator
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.table import Table

from fuseflow.errors import UsageError, did_you_mean
from fuseflow.notebook_table import SummaryTable
from fuseflow.report.tables import plain_table
from fuseflow.requirements import install_command
from fuseflow.resources import COMPONENTS
from fuseflow.sweep.point import ALL_MODES, Mode, code_version, value_name
from fuseflow.sweep.store import ResultRow
from fuseflow.sweep.sweep import MODE_WORDS, Sweep, SweepProgress, rest_text

Cell = str | int | float | None
Record = dict[str, Cell]

ESTIMATED = ("cycles", "bytes", "live_bytes", "flops", "energy_pj", *COMPONENTS)
_MOVED = ("bytes", "bytes_read", "bytes_written")
SIMULATED = ("cycles", *_MOVED, "live_bytes", "flops", "firings", "tokens", "nodes", "roofline", "energy_pj", *COMPONENTS)
SAMPLED = ("sampled_cycles", "sampled_low", "sampled_high", "bytes", "flops", "firings", *COMPONENTS)
CLOCKED = ("seconds", "peak_mb")
"""The columns that differ from run to run. A table has them only on request."""


_COLUMNS: dict[str, dict[str, str]] = {
    "estimate": {f"estimated_{name}": name for name in ESTIMATED},
    "sample": {name: name for name in SAMPLED},
    "simulate": {name: name for name in SIMULATED},
}
"""The columns of a table by mode, each with the name of its value in a row of the store."""


@dataclass(frozen=True, slots=True)
class SweepRows:
    """The lines of a table. `axes` are the columns that identify a point."""

    axes: tuple[str, ...]
    columns: tuple[str, ...]
    lines: tuple[Record, ...]

    def _repr_html_(self) -> str:
        differing, numbers = _shown_columns(self)
        shown = (*differing, *numbers, *(["error"] if any(line["error"] for line in self.lines) else []))
        rows = tuple(tuple("" if (cell := line.get(column)) is None else cell for column in shown) for line in self.lines)
        title = f"{len(self.lines)} points: {shared_values(self)}" if self.lines else "no points"
        return SummaryTable(title, shown, rows).to_html()


def records(sweep: Sweep, clocked: bool = False, others: bool = False) -> SweepRows:
    """Return a line for every point of the sweep, in the order of its file. `clocked` adds the columns of time and memory, and
    `others` the rows of points that are no longer in the file."""
    rows, points = sweep.store.rows(), sweep.space.points
    lines = [_line(place.labels, {mode: rows.get(place.point.key(mode)) for mode in sweep.modes}) for place in points]
    if others:
        inside = {place.point.key(mode) for place in points for mode in ALL_MODES}
        lines += [_line(row.labels, {row.mode: row}) for key, row in rows.items() if key not in inside]
    axes = tuple(dict.fromkeys(axis for place in points for axis in place.labels))
    values = [column for mode in sweep.modes for column in _COLUMNS[mode]]
    names = (*axes, "status", *values, "to_best", *(CLOCKED if clocked else ()), "reason", "error")
    return SweepRows(axes, names, _related(sweep, lines))


def objective_column(sweep: Sweep) -> str:
    objective = sweep.file.content.objective
    return f"estimated_{objective}" if sweep.modes == ("estimate",) else value_name(sweep.modes[-1], objective)


def _line(labels: Mapping[str, str], rows: Mapping[str, ResultRow | None]) -> Record:
    line: Record = {**labels, "status": "left", "reason": "", "error": ""}
    for mode, row in rows.items():
        if row is None:
            continue
        outcome = row.outcome
        line["status"] = f"{mode}d" if outcome.ok else "failed"
        line |= {"reason": outcome.reason, "error": outcome.error}
        if outcome.ok:
            line |= {column: outcome.values.get(name) for column, name in _COLUMNS[mode].items()}
        line |= {"seconds": outcome.seconds, "peak_mb": round(outcome.peak / 1e6)}
    return line


def _related(sweep: Sweep, lines: list[Record]) -> tuple[Record, ...]:
    """Return the lines with `to_best`: the value of a point of the sweep divided by the best one of its workload."""
    column, by_workload = objective_column(sweep), dict[str, list[tuple[Record, float]]]()
    for place, line in zip(sweep.space.points, lines, strict=False):
        value = line.get(column)
        if isinstance(value, int | float):
            by_workload.setdefault(place.point.workload, []).append((line, value))
    for valued in by_workload.values():
        if least := min(value for _, value in valued):
            for line, value in valued:
                line["to_best"] = round(value / least, 4)
    return tuple(lines)


def filter_lines(rows: SweepRows, where: Iterable[str]) -> SweepRows:
    """Return the lines for which every condition holds, such as `fuse=full`, `cycles<1000` or `status!=failed`."""
    tests = [_test(rows, text) for text in where]
    return replace(rows, lines=tuple(line for line in rows.lines if all(test(line) for test in tests)))


_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


def _test(rows: SweepRows, text: str) -> Callable[[Record], bool]:
    match = re.fullmatch(r"\s*(\w+)\s*(!=|<=|>=|=|<|>)\s*(.*?)\s*", text)
    if match is None:
        raise UsageError(
            f"cannot read `--where {text}`", hint="write a column, a comparison and a value, as in `fuse=full`, `cycles<1000`"
        )
    column, sign, value = match.groups()
    _known(rows, column, "--where")
    number = _number(value)
    if number is None and sign not in ("=", "!="):
        raise UsageError(f"`--where {text}`: `{value}` is not a number", hint="words are compared with `=` and `!=`")

    def test(line: Record) -> bool:
        cell = line.get(column)
        if isinstance(cell, int | float) and number is not None:
            return _COMPARE[sign](cell, number)
        if sign not in ("=", "!="):
            other = None if cell is None else _number(str(cell))
            return other is not None and number is not None and _COMPARE[sign](other, number)
        return _COMPARE[sign]("" if cell is None else str(cell), value)

    return test


def _number(text: str) -> float | None:
    try:
        return float(text.replace(",", "").replace("_", ""))
    except ValueError:
        return None


def _known(rows: SweepRows, column: str, flag: str) -> None:
    if column not in rows.columns:
        raise UsageError(f"`{flag}`: there is no column `{column}`", hint=did_you_mean(column, rows.columns))


def sort_lines(rows: SweepRows, column: str | None, objective: str) -> SweepRows:
    """Return the lines sorted by a column, or by the objective if it is None. Lines without a value come last, as they are in the file."""
    by = column or objective
    descending = by.startswith("-")
    by = by.removeprefix("-")
    _known(rows, by, "--sort")

    def rank(line: Record) -> tuple[Any, ...]:
        cell = line.get(by)
        if cell is None or cell == "":
            return (2, 0)
        if isinstance(cell, str):
            number = _number(cell)
            return (1, cell) if number is None else (0, number)
        return (0, cell)

    valued = sorted((line for line in rows.lines if rank(line)[0] < 2), key=rank, reverse=descending)
    second = "" if column or not objective.endswith("s") else f"estimated_{objective}"
    valueless = [line for line in rows.lines if rank(line)[0] == 2]
    valueless.sort(key=lambda line: (line.get(second) is None, line.get(second) or 0))
    return replace(rows, lines=(*valued, *valueless))


def sweep_table(rows: SweepRows) -> Table:
    """Return a table for a terminal with the axes on which points differ, the numbers that exist, and the first line of each error."""
    shown, numbers = _shown_columns(rows)
    failed = any(line["error"] for line in rows.lines)
    heads = [name.replace("_", "\n") if name not in shown else name for name in (*shown, *numbers)]
    table = plain_table(*heads, *(["error"] if failed else []), numbers_from=len(shown) + ("status" in numbers))
    if failed:
        table.columns[-1].justify = "left"
    for line in rows.lines:
        error = [escape(str(line["error"]).partition("\n")[0])] if failed else []
        table.add_row(*(escape(_text(c, line.get(c))) for c in (*shown, *numbers)), *error)
    return table


def _shown_columns(rows: SweepRows) -> tuple[list[str], list[str]]:
    """Return the axes on which points differ, and the columns of numbers that exist and say most."""
    shown = [axis for axis in rows.axes if len({line.get(axis) for line in rows.lines}) > 1]
    occupied = (name for component in ("energy_pj", *COMPONENTS) for name in (component, f"estimated_{component}"))
    hidden = {*rows.axes, "firings", "tokens", "nodes", "bytes", "reason", "error", *occupied}
    return shown, [c for c in rows.columns if c not in hidden and any(line.get(c) not in (None, "") for line in rows.lines)]


def shared_values(rows: SweepRows) -> str:
    """Return a line with the axes on which all points agree."""
    same = {axis: rows.lines[0].get(axis) for axis in rows.axes if len({line.get(axis) for line in rows.lines}) == 1}
    dull = {"options": "-", "seed": "0", "sparsity": "dense", "propagate": "false", "set": "-", "schedule": "default"}
    return ", ".join(f"{axis} {value}" for axis, value in same.items() if value is not None and dull.get(axis) != value)


def _text(column: str, cell: Cell) -> str:
    if cell is None:
        return ""
    if column == "to_best" or isinstance(cell, float):
        return f"{cell:,.2f}"
    return f"{cell:,}" if isinstance(cell, int) else cell


def csv_text(rows: SweepRows) -> str:
    out = io.StringIO()
    writer = csv.DictWriter(out, rows.columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows.lines)
    return out.getvalue()


def write_parquet(rows: SweepRows, path: Path) -> None:
    """Write the lines as Parquet: axes and words as strings, counts as 64-bit integers. Raises `UsageError` without pyarrow."""
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        raise UsageError("`--format parquet` needs pyarrow", hint=install_command("pyarrow")) from None
    texts, floats = {*rows.axes, "status", "reason", "error"}, {"to_best", "seconds"}
    kinds = {c: pa.string() if c in texts else pa.float64() if c in floats else pa.int64() for c in rows.columns}
    table = pa.Table.from_pylist([{c: line.get(c) for c in rows.columns} for line in rows.lines], schema=pa.schema(kinds))
    parquet.write_table(table, path)


def count_progress(sweep: Sweep) -> SweepProgress:
    """Return the progress of a sweep."""
    tally = SweepProgress(sweep.expected_tasks(), sweep.file.content.objective)
    rows = sweep.store.rows()
    for mode in sweep.modes:
        for place in sweep.chosen(mode):
            task = sweep.task(place, mode)
            row = rows.get(task.key)
            if row is not None and sweep.done(task, row):
                tally.note(place, mode, row.outcome, reused=True)
            else:
                tally.expect(place, mode)
    known = sum(len(sweep.chosen(mode)) for mode in sweep.modes)
    if sweep.tasks_are_known():
        tally.total = known
    tally.time.unknown = max(0, tally.total - known)
    return tally


def status_lines(sweep: Sweep, tally: SweepProgress) -> Iterator[str]:
    """Yield lines about the number of points, the points that are left, why points failed, and the best point of every workload."""
    stored, keys = sweep.store.rows(), (place.point.key(mode) for mode in sweep.modes for place in sweep.space.points)
    rows = [stored[key] for key in keys if key in stored]
    size = len(sweep.space)
    equal = sweep.space.combinations - size
    yield f"{sweep.file.path}: {size:,} points" + (f" ({equal:,} more combinations are equal to one of them)" if equal else "")
    running = ", running now" if sweep.store.is_written_by_another else ""
    runs = f"{tally.total:,} runs (each point is estimated, the best are simulated): " if tally.total != size else ""
    counts = f"{tally.done - tally.failed:,} done, {tally.failed:,} failed, {tally.left:,} left"
    work = tally.time.work if tally.left else None
    yield f"{runs}{counts}{running}" + ("" if work is None else f" ({rest_text(work)} of work on one core)")
    reasons = Counter(row.outcome.reason for row in rows if not row.outcome.ok)
    if reasons:
        yield "failed: " + ", ".join(f"{count:,} with {reason}" for reason, count in sorted(reasons.items()))
    stale = sum(row.code != code_version() for row in rows)
    if stale:
        yield f"{stale:,} rows are of another fuseflow than this; `--again stale` does them again"
    yield from _best(sweep, tally)


def status_json(sweep: Sweep, tally: SweepProgress) -> dict[str, Any]:
    """Return the progress of a sweep as plain values (schema 1): its points, its runs, and the best point of each workload and mode."""
    best = [
        {"mode": mode, "value": value, "objective": sweep.file.content.objective, "point": dict(place.labels)}
        for (_, mode), (value, place) in tally.best.items()
    ]
    return {
        "schema": 1,
        "sweep": str(sweep.file.path),
        "points": len(sweep.space),
        "runs": tally.total,
        "done": tally.done - tally.failed,
        "failed": tally.failed,
        "left": tally.left,
        "best": best,
    }


def _best(sweep: Sweep, tally: SweepProgress) -> Iterator[str]:
    """Yield a line about the best point of each workload, in the last mode that has results."""
    modes: list[Mode] = [mode for mode in sweep.modes if any(mode == m for _, m in tally.best)]
    if not modes:
        return
    objective = sweep.file.content.objective
    expected = MODE_WORDS[modes[-1]]
    for (_, mode), (value, place) in sorted(tally.best.items(), key=lambda item: sweep.space.points.index(item[1][1])):
        if mode == modes[-1]:
            where = place.name(sweep.space.axes)
            yield f"best: {value:,} {expected}{objective}" + (f" at {where}" if where else "")
