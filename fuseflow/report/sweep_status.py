"""The progress of a sweep, computed from its store alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from fuseflow.sweep.point import Mode, code_version
from fuseflow.sweep.sweep import MODE_WORDS, Sweep, SweepProgress, rest_text


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
