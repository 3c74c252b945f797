"""What SparTA shows, on what can be had here: tables, pictures and what must hold, from the committed rows.

python tools/figures/sparta.py             # one line each
python tools/figures/sparta.py --check     # exit status 1 where something differs
python tools/figures/sparta.py --write     # tables and pictures of docs/attributes.md and docs/plans.md
"""

from __future__ import annotations

import sys

import click
import sparta_figure11
import sparta_figure14
import sparta_figure15
import sparta_figure16
import sparta_figure17
import sparta_figure18
import sparta_table2
from frame import PICTURES, ROOT, between_marks, drawn
from sten import block

PAGES = {
    ROOT / "docs" / "attributes.md": (sparta_table2.FIGURE, sparta_figure14.FIGURE),
    ROOT / "docs" / "plans.md": tuple(
        figure.FIGURE for figure in (sparta_figure16, sparta_figure17, sparta_figure18, sparta_figure15, sparta_figure11)
    ),
}
FIGURES = tuple(figure for figures in PAGES.values() for figure in figures)


def pages() -> dict[str, str]:
    """The pages with the blocks of all figures, by their paths."""
    written = {}
    for path, figures in PAGES.items():
        text = path.read_text(encoding="utf-8")
        for figure in figures:
            text = between_marks(text, figure.name, "sparta", block(figure, figure.collect()))
        written[str(path)] = text
    return written


@click.command(help=__doc__.partition("\n")[0])
@click.option("--check", is_flag=True, help="Exit status 1 where something differs from what must hold.")
@click.option("--write", is_flag=True, help="Write tables and pictures of the documentation.")
def main(check: bool, write: bool) -> None:
    for figure in FIGURES:
        data = figure.collect()
        for verdict in figure.checks(data):
            click.echo(f"{figure.name}: {verdict.what}: {verdict.holds}")
        if write and figure.draw:
            drawn(figure, data, PICTURES / f"{figure.name}.svg")
    if write:
        for path, text in pages().items():
            (ROOT / path).write_text(text, encoding="utf-8")
    if check and any(v.holds is False for figure in FIGURES for v in figure.checks(figure.collect())):
        sys.exit(1)


if __name__ == "__main__":
    main()
