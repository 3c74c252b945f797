"""Figures of a sweep: speed-ups by fusion, work against the first schedule, curves over numbers and sparsity, the spread of orders.

They show series of numbers: for every workload, the best points along one axis.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fuseflow.errors import SweepError, UsageError
from fuseflow.report.figure_files import require_matplotlib, save_figure
from fuseflow.report.sweep_table import Record, records
from fuseflow.requirements import install_command
from fuseflow.sweep.sweep import Sweep

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WORKLOAD = ("model", "data", "options", "seed", "sparsity", "machine", "set")
FUSION = ("fuse", "schedule")
"""The axes that choose the fusion. Figures take the first that varies."""


@dataclass(frozen=True, slots=True)
class PlotSeries:
    """The points of a sweep that have values, with `lines` as in a table. If they are `expected`, they are estimates."""

    axes: tuple[str, ...]
    lines: tuple[Record, ...]
    expected: bool

    @classmethod
    def of(cls, sweep: Sweep) -> PlotSeries:
        """Return the simulations of a sweep that simulates every point, else its estimates."""
        if sweep.modes == ("sample",):
            raise UsageError(
                "a figure has no intervals, so sampled points are not drawn", hint="`fuseflow sweep show` prints them with theirs"
            )
        expected = "estimate" in sweep.modes
        rows = records(sweep)
        axes = tuple(axis for axis in rows.axes if axis in sweep.space.axes)
        lines = tuple(line for line in rows.lines if _value(line, "cycles", expected) is not None)
        return cls(axes, lines, expected)

    def value(self, line: Record, quantity: str) -> float:
        value = _value(line, quantity, self.expected)
        assert value is not None
        return value

    def least(self, lines: Iterable[Record]) -> Record:
        """Return the line with the fewest cycles, the first of equal ones."""
        return min(lines, key=lambda line: self.value(line, "cycles"))

    @property
    def fusion(self) -> str | None:
        """The axis that chooses the fusion, if it varies."""
        return next((axis for axis in FUSION if axis in self.axes), None)

    @property
    def word(self) -> str:
        return "expected " if self.expected else ""

    def groups(self, axes: Sequence[str], lines: Iterable[Record] | None = None) -> dict[str, list[Record]]:
        """Return the lines grouped by their labels on those of `axes` that vary."""
        groups: dict[str, list[Record]] = {}
        for line in self.lines if lines is None else lines:
            groups.setdefault(" ".join(str(line[axis]) for axis in axes if axis in self.axes), []).append(line)
        return groups

    def numeric(self, axis: str) -> NumericAxis | None:
        """Return the labels of an axis as numbers, or None unless there are several that differ in one number only."""
        return numeric_axis(list(dict.fromkeys(str(line[axis]) for line in self.lines)), axis)


@dataclass(frozen=True, slots=True)
class NumericAxis:
    """Labels as numbers: `i=2`, `i=4`, and `-`, which is one lane. `of` names the counted setting, such as `par i`."""

    of: str
    at: dict[str, float]


def numeric_axis(labels: Sequence[str], axis: str) -> NumericAxis | None:
    """Return labels as numbers, or None if they do not differ in one number.

    >>> numeric_axis(["-", "i=2", "i=4"], "par")
    NumericAxis(of='par i', at={'i=2': 2.0, 'i=4': 4.0, '-': 1.0})
    >>> numeric_axis(["A=8,8", "A=16,16"], "block").at, numeric_axis(["d:block=8,length=64", "d:block=4,length=64"], "data").of
    ({'A=8,8': 8.0, 'A=16,16': 16.0}, 'data block')
    >>> numeric_axis(["A=8,8", "A=8,16,16"], "block"), numeric_axis(["i=2", "k=2"], "par"), numeric_axis(["rda", "ideal"], "machine")
    (None, None, None)
    """
    valued = [label for label in labels if label != "-"]
    texts = {tuple(_NUMBER.split(label)) for label in valued}
    if len(labels) < 2 or len(texts) != 1 or (len(valued) < len(labels) and axis not in ("par", "block")):
        return None
    text = texts.pop()
    columns = list(zip(*(map(float, _NUMBER.findall(label)) for label in valued), strict=True))
    varying = [n for n, column in enumerate(columns) if len(valued) == 1 or len(set(column)) > 1]
    if not varying or any(columns[n] != columns[varying[0]] for n in varying):
        return None
    words = re.findall(r"[A-Za-z_]\w*", "".join(text[: varying[0] + 1]))
    at = dict(zip(valued, columns[varying[0]], strict=True))
    return NumericAxis(f"{axis} {words[-1] if words else ''}".strip(), at | ({"-": 1.0} if "-" in labels else {}))


_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")


def _value(line: Record, quantity: str, expected: bool) -> float | None:
    value = line.get(f"estimated_{quantity}" if expected else quantity)
    return float(value) if isinstance(value, int | float) else None


@dataclass(frozen=True, slots=True)
class FigureFile:
    """A figure file that was written, or the reason why there is none."""

    name: str
    path: Path | None
    why_not: str = ""

    def to_json(self) -> dict[str, str | None]:
        return {"name": self.name, "file": None if self.path is None else str(self.path), "why_not": self.why_not}


def write_figures(sweep: Sweep, folder: Path, form: str) -> Iterator[FigureFile]:
    """Write the figures that the axes of a sweep allow. Raises `SweepError` if nothing is known yet, `UsageError` without matplotlib."""
    require_matplotlib("`sweep plot`", install_command("matplotlib"))
    import matplotlib

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
            save_figure(figure, path)
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

    return _bars(series, [("flops", f"{series.word}FLOPs", relative), ("bytes", f"{series.word}bytes", relative)])


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


def _legend(figure: Figure, plot: Any, title: str, columns: int = 4) -> None:
    """Draw one legend above all panels, which have the same lines or bars."""
    handles, labels = plot.get_legend_handles_labels()
    figure.legend(handles, labels, title=title, loc="outside upper center", ncols=min(len(labels), columns), fontsize=8)


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


@dataclass(frozen=True, slots=True)
class SparsityAxis:
    """The specs of a sweep, by label: the share of entries that each leaves out, and the layout in which it stores weights."""

    share: Mapping[str, float]
    layout: Mapping[str, str]


def sparsity_axis(sweep: Sweep) -> SparsityAxis | None:
    """Return the specs of a sweep as numbers, or None unless several differ in their share.

    A spec has a share if all its rules leave out the same share of a weight, whatever its numbers are. A threshold has none.
    """
    from fuseflow.sparsity.spec import SparseSpec  # figures of dense models do without

    shares, layouts = dict[str, float](), dict[str, str]()
    for place in sweep.space.points:
        label = place.labels["sparsity"]
        entries = [entry for _, entry in SparseSpec.from_yaml(place.point.sparsity).weights] if place.point.sparsity else []
        shares_of_rules = {entry.sparsifier.share for entry in entries} or {0.0}
        share = shares_of_rules.pop()
        if share is not None and not shares_of_rules:
            shares[label] = share
            layouts[label] = " ".join(dict.fromkeys(entry.layout.name for entry in entries)) or "dense"
    return SparsityAxis(shares, layouts) if len(set(shares.values())) > 1 else None


def sparsity_figure(series: PlotSeries, axis: SparsityAxis) -> Figure:
    """Draw the fewest cycles, and the bytes of the same points, at each share. Every workload is a row of two panels."""
    from matplotlib.figure import Figure

    lines = [line for line in series.lines if str(line["sparsity"]) in axis.share]
    workloads = series.groups([name for name in WORKLOAD if name != "sparsity"], lines)
    figure = Figure(figsize=(8, 3.2 * len(workloads)))
    plots = figure.subplots(len(workloads), 2, squeeze=False)
    for (cycles, bytes), (title, of_workload) in zip(plots, workloads.items(), strict=True):
        by_layout: dict[str, dict[float, Any]] = {}
        for label, same in series.groups(["sparsity"], of_workload).items():
            by_layout.setdefault(axis.layout[label], {})[axis.share[label]] = series.least(same)
        for plot, quantity in ((cycles, "cycles"), (bytes, "bytes")):
            for layout, best in by_layout.items():
                shares = sorted(best)
                plot.plot(shares, [series.value(best[share], quantity) for share in shares], marker="o", label=layout)
            plot.set(title=title, xlabel="share of weights left out", ylabel=f"{series.word}{quantity}", ylim=(0, None))
    _legend(figure, plots[0][0], "layout", columns=6)
    return figure
