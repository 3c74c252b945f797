"""The figure of a sweep over sparsity: cycles and bytes against the share of the weights that is left out, a line for each layout."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fuseflow.report.sweep_series import WORKLOAD, PlotSeries
from fuseflow.sweep.sweep import Sweep

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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
    handles, labels = plots[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, title="layout", loc="outside upper center", ncols=min(len(labels), 6), fontsize=8)
    return figure
