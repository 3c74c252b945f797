"""Figures of a sweep: speed-ups by fusion, work against the first schedule, curves over numbers, the spread of loop orders."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fuseflow.errors import SweepError, UsageError
from fuseflow.filesystem import replace_file
from fuseflow.report.sweep_series import WORKLOAD, PlotSeries
from fuseflow.report.sweep_sparsity import SparsityAxis, sparsity_axis, sparsity_figure
from fuseflow.requirements import install_command
from fuseflow.sweep.sweep import Sweep

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True)
class FigureFile:
    """A figure file that was written, or the reason why there is none."""

    name: str
    path: Path | None
    why_not: str = ""


def write_figures(sweep: Sweep, folder: Path, form: str) -> Iterator[FigureFile]:
    """Write the figures that the axes of a sweep allow. Raises `SweepError` if nothing is known yet, `UsageError` without
    matplotlib."""
    try:
        import matplotlib
    except ImportError:
        raise UsageError("`sweep plot` needs matplotlib", hint=install_command("matplotlib")) from None
    series = PlotSeries.of(sweep)
    if not series.lines:
        raise SweepError("no point has a result yet", hint=f"`fuseflow sweep {sweep.file.path}` makes them")
    folder.mkdir(parents=True, exist_ok=True)
    with matplotlib.rc_context({"svg.hashsalt": "fuseflow", "figure.constrained_layout.use": True, "font.size": 9}):
        for name, draw, missing in _figures(series, sparsity_axis(sweep)):
            figure = draw()
            if figure is None:
                yield FigureFile(name, None, missing)
                continue
            path = folder / f"{name}.{form}"
            undated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(form)
            with replace_file(path) as temporary:
                figure.savefig(temporary, format=form, dpi=150, metadata=undated)
            yield FigureFile(name, path)


def _figures(series: PlotSeries, sparsity: SparsityAxis | None) -> Iterator[tuple[str, Callable[[], Figure | None], str]]:
    yield "speedups", lambda: speedups(series), "neither `fuse` nor `schedules` vary"
    yield "work", lambda: work(series), "neither `fuse` nor `schedules` vary"
    if "sparsity" in series.axes:
        missing = "fewer than two specs leave out a share of the weights that they say"
        yield "sparsity", lambda: None if sparsity is None else sparsity_figure(series, sparsity), missing
    curves = [axis for axis in series.axes if axis not in ("seed", "sparsity", series.fusion) and series.numeric(axis)]
    for axis in curves:
        yield f"curve-{axis}", lambda axis=axis: curve(series, axis), ""  # type: ignore[misc]
    if not curves:
        yield "curves", lambda: None, "no axis is a number that varies, as `par: [{}, {i: 2}, {i: 4}]` is"
    yield "orders", lambda: orders(series), "`order` does not vary"


def _figure(wide: float, high: float, panels: int = 1) -> tuple[Figure, list[Any]]:
    from matplotlib.figure import Figure

    across = min(panels, 3)
    down = math.ceil(panels / across)
    figure = Figure(figsize=(min(wide * across, 40), min(high * down, 60)))
    return figure, [figure.add_subplot(down, across, n + 1) for n in range(panels)]


def speedups(series: PlotSeries) -> Figure | None:
    """Draw the speed-up of the fastest point of every workload and fusion, against the fastest of the first fusion."""
    return _bars(
        series, [("cycles", f"speed-up of {series.word}cycles", lambda base, value: base / value if value else math.nan)]
    )


def work(series: PlotSeries) -> Figure | None:
    """Draw the FLOPs and bytes of the points that `speedups` compares, relative to the first fusion."""

    def relative(base: float, value: float) -> float:
        return value / base if base else math.nan

    return _bars(
        series, [(quantity, f"{series.word}{name}", relative) for quantity, name in (("flops", "FLOPs"), ("bytes", "bytes"))]
    )


def _bars(series: PlotSeries, panels: list[tuple[str, str, Callable[[float, float], float]]]) -> Figure | None:
    axis = series.fusion
    if axis is None:
        return None
    workloads = series.groups(WORKLOAD)
    kinds = list(series.groups([axis]))
    figure, plots = _figure(3.5 + 0.22 * len(workloads) * (len(kinds) + 1), 4.5, len(panels))
    for plot, (quantity, title, compared) in zip(plots, panels, strict=True):
        for n, kind in enumerate(kinds):
            heights = []
            for lines in workloads.values():
                lines_by_kind = series.groups([axis], lines)
                both = [
                    series.value(series.least(lines_by_kind[k]), quantity) if k in lines_by_kind else math.nan
                    for k in (kinds[0], kind)
                ]
                heights.append(compared(*both))
            width = 0.8 / len(kinds)
            plot.bar([x - 0.4 + (n + 0.5) * width for x in range(len(workloads))], heights, width, label=kind)
        plot.axhline(1, color="black", linewidth=0.6)
        plot.set_ylabel(f"{title}, {kinds[0]} = 1")
        plot.set_xticks(range(len(workloads)), list(workloads), rotation=30 if len(workloads) > 1 else 0, ha="right")
    _legend(figure, plots[0], axis)
    return figure


def _legend(figure: Figure, plot: Any, title: str) -> None:
    """Draw one legend above all panels, which have the same lines or bars."""
    handles, labels = plot.get_legend_handles_labels()
    figure.legend(handles, labels, title=title, loc="outside upper center", ncols=min(len(labels), 4), fontsize=8)


def curve(series: PlotSeries, axis: str) -> Figure | None:
    """Draw the fewest cycles at each number of an axis, with a panel for every workload and a line for each fusion."""
    axis_numbers = series.numeric(axis)
    assert axis_numbers is not None
    at = axis_numbers.at
    panels = series.groups([name for name in WORKLOAD if name != axis])
    figure, plots = _figure(4, 3.2, len(panels))
    for plot, (title, lines) in zip(plots, panels.items(), strict=True):
        for kind, of_kind in series.groups([series.fusion] if series.fusion else [], lines).items():
            best = {at[label]: series.least(same) for label, same in series.groups([axis], of_kind).items()}
            numbers = sorted(best)
            plot.plot(numbers, [series.value(best[n], "cycles") for n in numbers], marker="o", label=kind or None)
        numbers = sorted(set(at.values()))
        if numbers[0] > 0:
            plot.set_xscale("log", base=2)
        plot.set_xticks(numbers, [f"{n:g}" for n in numbers])
        plot.set_yscale("log")
        plot.set(title=title, xlabel=axis_numbers.of, ylabel=f"{series.word}cycles")
    if series.fusion:
        _legend(figure, plots[0], series.fusion)
    return figure


def orders(series: PlotSeries) -> Figure | None:
    """Draw the spread of the loop orders of each schedule: the cycles of every point over the fewest of the points that differ
    only in the order."""
    axis = next((name for name in ("order", "order_policy") if name in series.axes), None)
    if axis is None:
        return None
    groups = series.groups([name for name in series.axes if name != axis])
    figure, (plot,) = _figure(3 + 0.25 * len(groups), 3.5)
    for x, lines in enumerate(groups.values()):
        least = series.value(series.least(lines), "cycles")
        plot.plot([x] * len(lines), [series.value(line, "cycles") / least for line in lines], "o", alpha=0.6, color="C0")
    plot.set_ylabel(f"{series.word}cycles, best order = 1")
    plot.set_xticks(range(len(groups)), list(groups), rotation=90, fontsize=7)
    return figure
