"""The curve of cycles over a resource, as CSV or as a plot, with a schedule file for each point beside it."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path

from fuseflow.autoscheduler.budget.trials import ParetoPoint
from fuseflow.errors import UsageError
from fuseflow.filesystem import write_text
from fuseflow.filesystem.schemas import with_schema
from fuseflow.report.figure_files import IMAGE_FORMATS, require_matplotlib, save_figure
from fuseflow.requirements import install_command
from fuseflow.resources import COMPONENTS

IMAGES = tuple(f".{form}" for form in IMAGE_FORMATS)
"""The endings of files that are plots. A file that ends in `.csv` is a table."""


def check_curve_file(path: Path) -> None:
    """Raise `UsageError` for a file whose ending says no form, and for a plot without matplotlib."""
    if path.suffix not in (".csv", *IMAGES):
        raise UsageError(f"`{path}` says no form of a curve", hint=f"end it in .csv, {', '.join(IMAGES)}")
    if path.suffix in IMAGES:
        require_matplotlib("a plot", f"{install_command('matplotlib')}, or write a .csv")


def write_curve(path: Path, component: str, points: Sequence[ParetoPoint]) -> list[Path]:
    """Write a curve of cycles over a component, such as `mul`, and a schedule file for each point: `gcn-mul-64.yaml` beside
    `gcn.csv`. Return the files."""
    names = [f"{path.stem}-{component}-{getattr(point.trial.resources, component) or 0}.yaml" for point in points]
    if path.suffix == ".csv":
        write_text(path, csv_text(component, points, names))
    else:
        _plot(path, component, points)
    files = [path.parent / name for name in names]
    for file, point in zip(files, points, strict=True):
        write_text(file, with_schema("schedule", point.trial.schedule.to_yaml()))
    return [path, *files]


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
        save_figure(figure, path)
