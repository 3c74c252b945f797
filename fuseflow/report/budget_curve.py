"""The curve of cycles over a resource, as CSV or as a plot, with a schedule file for each point beside it."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path

from fuseflow.autoscheduler.budget.trials import ParetoPoint
from fuseflow.errors import UsageError
from fuseflow.filesystem import replace_file
from fuseflow.requirements import install_command
from fuseflow.resources import COMPONENTS

IMAGES = (".png", ".svg", ".pdf")
"""The endings of files that are plots. A file that ends in `.csv` is a table."""


def check_curve_file(path: Path) -> None:
    """Raise `UsageError` for a file whose ending says no form, and for a plot without matplotlib."""
    if path.suffix not in (".csv", *IMAGES):
        raise UsageError(f"`{path}` says no form of a curve", hint=f"end it in .csv, {', '.join(IMAGES)}")
    if path.suffix in IMAGES:
        _require_matplotlib()


def write_curve(path: Path, component: str, points: Sequence[ParetoPoint]) -> list[Path]:
    """Write a curve of cycles over a component, such as `mul`, and a schedule file for each point: `gcn-mul-64.yaml` beside
    `gcn.csv`. Return the files."""
    names = schedule_files(path, component, points)
    if path.suffix == ".csv":
        with replace_file(path) as temporary:
            temporary.write_text(csv_text(component, points, names), encoding="utf-8")
    else:
        _plot(path, component, points)
    for name, point in zip(names, points, strict=True):
        with replace_file(path.parent / name) as temporary:
            temporary.write_text(point.trial.schedule.to_yaml(), encoding="utf-8")
    return [path, *(path.parent / name for name in names)]


def schedule_files(path: Path, component: str, points: Sequence[ParetoPoint]) -> list[str]:
    """Return the name of the schedule file of each point: the name of the curve, the component, and the amount at the point."""
    return [f"{path.stem}-{component}-{getattr(point.trial.resources, component) or 0}.yaml" for point in points]


def csv_text(component: str, points: Sequence[ParetoPoint], files: Sequence[str]) -> str:
    """Return a curve as CSV: the cycles of each point, its resources, and its schedule file."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    others = [name for name in COMPONENTS if name != component]
    writer.writerow((component, "cycles", "estimated_cycles", "fused", *others, "schedule"))
    for point, file in zip(points, files, strict=True):
        trial = point.trial
        amounts = [getattr(trial.resources, name) for name in (component, *others)]
        cycles = "" if trial.cycles is None else trial.cycles
        writer.writerow((amounts[0], cycles, round(trial.estimate), trial.name, *amounts[1:], file))
    return text.getvalue()


def _plot(path: Path, component: str, points: Sequence[ParetoPoint]) -> None:
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context({"svg.hashsalt": "fuseflow", "font.size": 9}):
        figure = Figure(figsize=(5, 3.5), layout="constrained")
        axes = figure.add_subplot()
        axes.plot([getattr(point.trial.resources, component) or 1 for point in points], [point.cycles for point in points], "o-")
        axes.set(xscale="log", yscale="log", xlabel=component, ylabel="cycles")
        axes.grid(visible=True, which="both", alpha=0.3)
        undated = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(path.suffix)
        with replace_file(path) as temporary:
            figure.savefig(temporary, format=path.suffix[1:], dpi=150, metadata=undated)


def _require_matplotlib() -> None:
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise UsageError("a plot needs matplotlib", hint=f"{install_command('matplotlib')}, or write a .csv") from None
