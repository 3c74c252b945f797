"""What STen shows, on what can be had here: tables, pictures and what must hold, from the committed rows.

python tools/figures/sten.py             # one line each
python tools/figures/sten.py --check     # exit status 1 where something differs
python tools/figures/sten.py --write     # tables and pictures of docs/sparsity.md
"""

from __future__ import annotations

import sys

import click
import sten_dispatch
import sten_figure7
import sten_figure9
import sten_figure10
import sten_table2
from frame import PICTURES, ROOT, Data, Figure, between_marks, drawn, verdicts

FIGURES = tuple(module.FIGURE for module in (sten_figure7, sten_figure9, sten_figure10, sten_table2, sten_dispatch))
PAGE = ROOT / "docs" / "sparsity.md"


def block(figure: Figure, data: Data) -> str:
    """What stands between the marks of the page: picture, table and verdicts."""
    picture = f"![{figure.title}](figures/{figure.name}.svg)\n\n" if figure.draw else ""
    return f"{picture}{figure.table(data)}\n{verdicts(figure.checks(data))}"


def page_of(page: str) -> str:
    """The page with the blocks of all figures."""
    for figure in FIGURES:
        page = between_marks(page, figure.name, "sten", block(figure, figure.collect()))
    return page


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
        PAGE.write_text(page_of(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    if check and any(v.holds is False for figure in FIGURES for v in figure.checks(figure.collect())):
        sys.exit(1)


if __name__ == "__main__":
    main()
