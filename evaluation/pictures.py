"""Pictures of figures, which are the same bytes each time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from fuseflow.requirements import install_command


def blank_figure(width: float, height: float) -> Any:
    """Of matplotlib, which is loaded only for a plot."""
    try:
        from matplotlib.figure import Figure as Blank
    except ImportError:
        raise click.ClickException(f"--plot needs matplotlib: {install_command('matplotlib')}") from None
    return Blank(figsize=(width, height), layout="constrained")


def save(figure: Any, picture: str | Path, about: str = "") -> None:
    """The same bytes each time. `about` stands in the metadata of an SVG."""
    import matplotlib

    svg = str(picture).endswith(".svg")
    with matplotlib.rc_context({"svg.hashsalt": "fuseflow"}):
        figure.savefig(picture, dpi=150, metadata={"Date": None, "Description": about or None} if svg else None)


def bars(
    axes: Any,
    groups: Sequence[str],
    series: Mapping[str, Sequence[float | None]],
    theirs: Mapping[str, Sequence[float | None]] | None = None,
    base: float = 0,
) -> None:
    """Bars of ours side by side, from `base` on, and with each a diamond of what is published. Where one is missing, it says so.
    One that ends where it begins is a stroke."""
    width = 0.8 / len(series)
    for n, (label, heights) in enumerate(series.items()):
        places = [x - 0.4 + (n + 0.5) * width for x in range(len(groups))]
        there = [(x, h) for x, h in zip(places, heights, strict=True) if h is not None]
        axes.bar([x for x, _ in there], [h - base for _, h in there], width, bottom=base, label=label, color=f"C{n}")
        for x, h in there:
            if base and abs(h / base - 1) < 0.03:  # a bar of no height would look like one that is missing
                axes.plot([x - width / 2, x + width / 2], [h, h], color=f"C{n}", linewidth=4, solid_capstyle="butt")
        for x in (x for x, h in zip(places, heights, strict=True) if h is None):
            missing_bar(axes, x, "not run")
        against = [(x, h) for x, h in zip(places, (theirs or {}).get(label, ()), strict=False) if h is not None]
        if against:
            hollow = {"marker": "D", "s": 22, "facecolors": "none", "edgecolors": "black", "zorder": 3}
            axes.scatter([x for x, _ in against], [h for _, h in against], label="published", **hollow)
    many = len(groups) > 6
    axes.set_xticks(range(len(groups)), groups, rotation=30 if many else 0, ha="right" if many else "center")


def look(number: int, count: int) -> dict[str, Any]:
    """How the line of a series is drawn: the first of `count` has the widest line and the largest marks, so that those that lie on top of
    it do not hide it."""
    below = (count - 1 - number) / max(count - 1, 1)
    marks = {"marker": "osD^vPX*"[number % 8], "fillstyle": "none", "markersize": 4 + 6 * below}
    return {**marks, "color": f"C{number}", "linewidth": 1.1 + 1.9 * below}


def missing_bar(axes: Any, x: float, why: str) -> None:
    """Say why there is no bar at a place."""
    axes.text(
        x, 0.02, why, rotation=90, ha="center", va="bottom", fontsize=6, color="dimgrey", transform=axes.get_xaxis_transform()
    )


def legend(figure: Any, inside: Any = None, title: str = "", columns: int = 8) -> None:
    """Each label once: above all panels, or inside one of them, of what it shows."""
    found: dict[str, Any] = {}
    for axes in [inside] if inside else figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    where = {} if inside else {"loc": "outside upper center", "ncols": columns}
    named = {"title": title, "title_fontsize": "small"} if title else {}
    (inside or figure).legend(list(found.values()), list(found), fontsize="small", **where, **named)
