"""All figures and tables, from the committed rows: what holds, and the pages that show them, with their pictures.

python evaluation/figures.py             # one line each
python evaluation/figures.py --check     # exit status 1 where something differs without a reason in reasons.yaml
python evaluation/figures.py --write     # tables and pictures of the documentation
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import click
import figure4b
import figure12
import figure13
import figure14
import figure15
import figure16
import figure17
import sparta_figure11
import sparta_figure14
import sparta_figure15
import sparta_figure16
import sparta_figure17
import sparta_figure18
import sparta_table2
import sten_dispatch
import sten_figure7
import sten_figure9
import sten_figure10
import sten_table2
import table2
import table3
from frame import PICTURES, ROOT, Check, Data, Figure, between_marks, drawn, markdown, unexplained, verdicts

FUSEFLOW = (figure4b, figure12, figure13, figure14, figure15, figure16, figure17, table2, table3)
STEN = (sten_figure7, sten_figure9, sten_figure10, sten_table2, sten_dispatch)
PLANS = (sparta_figure16, sparta_figure17, sparta_figure18, sparta_figure15, sparta_figure11)
PAGE = ROOT / "docs" / "figures.md"
PAGES: dict[Path, tuple[Figure, ...]] = {
    PAGE: tuple(module.FIGURE for module in FUSEFLOW),
    ROOT / "docs" / "sparsity.md": tuple(module.FIGURE for module in STEN),
    ROOT / "docs" / "attributes.md": (sparta_table2.FIGURE, sparta_figure14.FIGURE),
    ROOT / "docs" / "plans.md": tuple(module.FIGURE for module in PLANS),
}
"""The figures that each page shows: those of the FuseFlow paper, of STen and of SparTA."""
FIGURES = tuple(figure for figures in PAGES.values() for figure in figures)
COUNTED = ((True, "hold"), (False, "differ"), (None, "not all run"))


def blocks(path: Path, collected: Mapping[str, Data]) -> Iterator[tuple[str, str]]:
    """What stands between the marks of a page: picture, table and verdicts of each figure, and an overview of those of the paper."""
    if path == PAGE:
        yield "overview", overview(collected)
    for figure in PAGES[path]:
        data = collected[figure.name]
        picture = f"![{figure.title}](figures/{figure.name}.svg)\n\n" if figure.draw else ""
        yield figure.name, f"{picture}{figure.table(data)}\n{verdicts(figure.name, figure.checks(data))}"


def overview(collected: Mapping[str, Data]) -> str:
    lines = []
    for figure in PAGES[PAGE]:
        data = collected[figure.name]
        stores = ", ".join(f"`{store}.jsonl`" for store in figure.stores)
        seconds = ", ".join(f"{number / 60:,.0f} on {machine}" for machine, number in data["seconds"].items() if number)
        link = f"[{figure.title}](#{anchor(figure)})"
        lines.append([link, f"`evaluation/{figure.name}.py`", stores, seconds, tally(figure.checks(data))])
    return markdown(("figure", "command", "rows", "minutes of its rows", "what must hold"), lines, 5)


def anchor(figure: Figure) -> str:
    return re.sub(r"[^a-z0-9 -]", "", figure.title.lower()).replace(" ", "-")


def tally(checks: list[Check]) -> str:
    counts = [(sum(check.holds is verdict for check in checks), word) for verdict, word in COUNTED]
    return ", ".join(f"{number} {word}" for number, word in counts if number)


def written(path: Path, collected: Mapping[str, Data]) -> str:
    """The text of a page with the blocks of its figures."""
    page = path.read_text(encoding="utf-8")
    for name, block in blocks(path, collected):
        page = between_marks(page, name, "figures", block)
    return page


@click.command(help=__doc__.partition("\n")[0])
@click.option("--check", is_flag=True, help="Exit status 1 where something differs without a reason in reasons.yaml.")
@click.option("--write", is_flag=True, help="Rewrite the tables and pictures of the documentation.")
def main(check: bool, write: bool) -> None:
    collected = {figure.name: figure.collect() for figure in FIGURES}
    if write:
        for path in PAGES:
            path.write_text(written(path, collected), encoding="utf-8")
        PICTURES.mkdir(exist_ok=True)
        for figure in FIGURES:
            if figure.draw:
                drawn(figure, collected[figure.name], PICTURES / f"{figure.name}.svg")
    left = []
    for figure in FIGURES:
        found = figure.checks(collected[figure.name])
        click.echo(f"{figure.title}: {tally(found)}")
        left += unexplained(figure.name, found)
    for one in left if check else ():
        click.echo(f"not explained: {one.what}: {one.ours}", err=True)
    sys.exit(1 if check and left else 0)


if __name__ == "__main__":
    main()
