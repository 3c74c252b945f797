"""What the figures of the paper share: rows, published numbers, what must hold, tables, pictures, and a command for each.

A figure collects its data from committed rows and from published.yaml; its table, its checks and its picture see nothing else. A picture
carries the digest of the data that it was drawn from, so that an old one can be told.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import click
from ruamel.yaml import YAML

from fuseflow.requirements import install_command

ROOT = Path(__file__).resolve().parents[1]
ROWS = ROOT / "evaluation" / "rows"
PICTURES = ROOT / "docs" / "figures"

Data = dict[str, Any]
"""Plain values, as JSON has them."""


@cache
def _yaml(name: str) -> dict[str, Any]:
    return dict(YAML(typ="safe").load((ROOT / "evaluation" / f"{name}.yaml").read_text(encoding="utf-8")))


def published(figure: str) -> dict[str, Any]:
    """What the paper or its artifact has for a figure, without `mark` and `doubtful`."""
    return {key: value for key, value in _yaml("published")[figure].items() if key not in ("mark", "doubtful")}


def mark(figure: str) -> str:
    """P printed, S stored, D derived."""
    return str(_yaml("published")[figure]["mark"])


def doubtful(figure: str) -> dict[str, str]:
    """What contradicts itself, and why."""
    return dict(_yaml("published")[figure].get("doubtful", {}))


def reasons(figure: str) -> dict[str, str]:
    """Why claims of a figure do not hold, by the words of the claim."""
    return {what: entry["reason"] for entry in _yaml("reasons").get(figure, ()) for what in entry["of"]}


def rows(store: str, folder: Path | None = None) -> dict[str, dict[str, Any]]:
    """The last row of every point that is done."""
    path = (folder or ROWS) / f"{store}.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    found = {row["key"]: row for row in map(json.loads, lines)}
    return {key: row for key, row in found.items() if row.get("state", "done") == "done"}


SAME = 0.05
"""A number is as published if it is within a twentieth of the published one."""


@dataclass(frozen=True, slots=True)
class Check:
    """What must hold, what is ours, and whether it holds: None where a point was not run yet.

    `published` is what the paper or its artifact has, as printed, and empty where it has nothing: such a claim is our own.
    """

    what: str
    ours: str
    holds: bool | None
    published: str = ""


def within(
    what: str, number: float | None, least: float, most: float = float("inf"), digits: int = 2, published: float | None = None
) -> Check:
    theirs = "" if published is None else f"{published:,.{digits}f}"
    if number is None:
        return Check(what, "not run", None, theirs)
    return Check(what, f"{number:,.{digits}f}", least <= number <= most, theirs)


def as_published(what: str, number: float | None, theirs: float, digits: int = 2, near: float = SAME) -> Check:
    """A number that must be the published one."""
    return within(what, number, theirs * (1 - near), theirs * (1 + near), digits, theirs)


def at_most(what: str, number: float | None, theirs: float, digits: int = 2) -> Check:
    """An error or a cost that must not be greater than the published one."""
    return within(what, number, 0, theirs, digits, theirs)


def rising(what: str, numbers: Sequence[float | None], digits: int = 2, published: Sequence[float] = ()) -> Check:
    """Each larger than the one before, as the published ones are."""
    theirs = " < ".join(f"{n:,.{digits}f}" for n in published)
    found = [n for n in numbers if n is not None]
    if len(found) < len(numbers):
        return Check(what, "not run", None, theirs)
    return Check(what, " < ".join(f"{n:,.{digits}f}" for n in found), all(a < b for a, b in pairwise(found)), theirs)


def together(what: str, parts: Iterable[Check]) -> Check:
    """One that holds where all do; each part says in `what` of which point it is."""
    kept = list(parts)
    found = "; ".join(f"{part.what} {part.ours}" for part in kept)
    theirs = "; ".join(f"{part.what} {part.published}" for part in kept if part.published)
    verdicts = {part.holds for part in kept} or {None}
    holds = False if False in verdicts else None if None in verdicts else True
    return Check(what, found, holds, theirs)


@dataclass(frozen=True, slots=True)
class Options:
    """Of `--run`."""

    data_dir: Path | None
    only: tuple[str, ...]
    limit: float


@dataclass(frozen=True, slots=True)
class Figure:
    """`run` completes the rows; None where another command does, which `how` names. `draw` takes a figure of matplotlib."""

    name: str
    title: str
    stores: tuple[str, ...]
    collect: Callable[[], Data]
    table: Callable[[Data], str]
    checks: Callable[[Data], list[Check]]
    draw: Callable[[Data, Any], None] | None = None
    run: Callable[[Options], None] | None = None
    how: str = ""
    size: tuple[float, float] = (11, 4)


def markdown(heads: Sequence[str], lines: Iterable[Sequence[str]], numbers_from: int = 1) -> str:
    rule = "|" + "---|" * numbers_from + "---:|" * (len(heads) - numbers_from)
    return "\n".join([f"| {' | '.join(heads)} |", rule, *(f"| {' | '.join(line)} |" for line in lines)]) + "\n"


def cell(number: float | None, form: str = ",.2f") -> str:
    return "" if number is None else f"{number:{form}}"


VERDICTS = {True: "holds", False: "**differs**", None: "not all run"}


def between_marks(page: str, name: str, tool: str, block: str) -> str:
    """Return a page of the documentation with this block between the marks of a name, which say what tool writes it."""
    pattern = re.compile(rf"(<!-- {name}: evaluation/{tool}\.py --write -->\n).*?(<!-- end of {name} -->\n)", re.DOTALL)
    if not pattern.search(page):
        raise click.ClickException(f"the page has no marks of {name}")
    return pattern.sub(lambda marks: f"{marks[1]}\n{block}\n{marks[2]}", page, count=1)


def verdicts(figure: str, checks: Iterable[Check]) -> str:
    """A table of claims: what is published, what is ours, and why the two differ."""
    why = reasons(figure)
    lines = ((c.what, c.published, c.ours, VERDICTS[c.holds], why.get(c.what, "") if c.holds is False else "") for c in checks)
    return markdown(("must hold", "published", "ours", "verdict", "reason"), lines, 5)


def unexplained(figure: str, checks: Iterable[Check]) -> list[Check]:
    """What differs without a reason, and what has a reason though it holds."""
    why = reasons(figure)
    return [check for check in checks if check.holds is not None and check.holds == (check.what in why)]


def ratio(above: float | None, below: float | None) -> float | None:
    return above / below if above and below else None


# Pictures --------------------------------------------------------------------------------------------------------------------


def blank_figure(width: float, height: float) -> Any:
    """Of matplotlib, which is loaded only for a plot."""
    try:
        from matplotlib.figure import Figure as Blank
    except ImportError:
        raise click.ClickException(f"--plot needs matplotlib: {install_command('matplotlib')}") from None
    return Blank(figsize=(width, height), layout="constrained")


def digest(data: Data) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:16]


def save(figure: Any, picture: str | Path, about: str = "") -> None:
    """The same bytes each time. `about` stands in the metadata of an SVG."""
    import matplotlib

    svg = str(picture).endswith(".svg")
    with matplotlib.rc_context({"svg.hashsalt": "fuseflow"}):
        figure.savefig(picture, dpi=150, metadata={"Date": None, "Description": about or None} if svg else None)


def drawn(figure: Figure, data: Data, picture: str | Path) -> None:
    assert figure.draw is not None
    blank = blank_figure(*figure.size)
    figure.draw(data, blank)
    save(blank, picture, f"data {digest(data)}")


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


# A command -------------------------------------------------------------------------------------------------------------------


def command(figure: Figure) -> click.Command:
    """Prints the table and what must hold; completes the rows before, draws or judges where it is asked to."""

    @click.command(help=f"{figure.title}: from evaluation/rows, its table and what must hold.")
    @click.option("--run", "running", is_flag=True, help="Run what is missing first; rows are added as they are there.")
    @click.option(
        "--data-dir", type=click.Path(path_type=Path, exists=True, file_okay=False), help="Where the files of graphs are."
    )
    @click.option("--only", multiple=True, metavar="PATTERN", help="Of --run: keys of points; repeatable.")
    @click.option(
        "--limit", type=click.FloatRange(min=0, min_open=True), default=3600, show_default=True, help="Seconds a point."
    )
    @click.option("--plot", "picture", metavar="FILE", help="Draw it (.svg, .png, .pdf).")
    @click.option("--check", is_flag=True, help="Exit status 1 where something differs, whatever the reason.")
    def main(running: bool, data_dir: Path | None, only: tuple[str, ...], limit: float, picture: str | None, check: bool) -> None:
        if running and figure.run is None:
            raise click.UsageError(f"the rows come from another command: {figure.how}")
        if (data_dir or only) and not running:
            raise click.UsageError("--data-dir and --only say what to run: add --run")
        if picture and figure.draw is None:
            raise click.UsageError("there is no picture of this table")
        if running:
            assert figure.run is not None
            figure.run(Options(data_dir, only, limit))
        data = figure.collect()
        found = figure.checks(data)
        click.echo(figure.table(data))
        click.echo(verdicts(figure.name, found), nl=False)
        if picture:
            drawn(figure, data, picture)
        if check and any(c.holds is False for c in found):
            sys.exit(1)

    return main
