"""All figures and tables, from the committed rows: what holds, and the pages that show them, with their pictures.

python evaluation/figures.py             # one line each
python evaluation/figures.py --check     # exit status 1 where something differs without a reason in reasons.yaml
python evaluation/figures.py --write     # tables and pictures of the documentation
python evaluation/figures.py figure14 [--plot figure14.svg] [--check]        # its table and what must hold
python evaluation/figures.py figure14 --run [--data-dir DIR] [--only 'gcn/*']  # complete its rows first
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path

import click
from claims import Check, between_marks, markdown, unexplained, verdicts
from frame import PICTURES, Data, Figure, Options, drawn
from store import DATA_DIR, LIMIT, ONLY, ROOT

PAGE = ROOT / "docs" / "measured" / "figures.md"
PAGES: dict[Path, tuple[Figure, ...]] = {
    ROOT / "docs" / page: tuple(import_module(name).FIGURE for name in names.split())
    for page, names in {
        "measured/figures.md": "figure4b figure12 figure13 figure14 figure15 figure16 figure17 table2 table3",
        "measured/sparsity.md": "sten_figure7 sten_figure9 sten_figure10 sten_table2 sten_dispatch",
        "measured/propagation.md": "sparta_table2 sparta_figure14",
        "measured/plans.md": "sparta_figure16 sparta_figure17 sparta_figure18 sparta_figure15 sparta_figure11",
        "measured/energy.md": "energy",
    }.items()
}
"""The figures that each page shows: those of the FuseFlow paper, of STen, of SparTA, and of our own."""
FIGURES = {figure.name: figure for figures in PAGES.values() for figure in figures}
COUNTED = ((True, "hold"), (False, "differ"), (None, "not all run"))


def blocks(path: Path, collected: Mapping[str, Data]) -> Iterator[tuple[str, str]]:
    """What stands between the marks of a page: picture, table and verdicts of each figure, and an overview of those of the paper."""
    if path == PAGE:
        yield "overview", overview(collected)
    for figure in PAGES[path]:
        data = collected[figure.name]
        picture = f"![{figure.title}](../figures/{figure.name}.svg)\n\n" if figure.draw else ""
        yield figure.name, f"{picture}{figure.table(data)}\n{verdicts(figure.name, figure.checks(data))}"


def overview(collected: Mapping[str, Data]) -> str:
    lines = []
    for figure in PAGES[PAGE]:
        data = collected[figure.name]
        stores = ", ".join(f"`{store}.jsonl`" for store in figure.stores)
        seconds = ", ".join(f"{number / 60:,.0f} on {machine}" for machine, number in data["seconds"].items() if number)
        lines.append([f"[{figure.title}](#{anchor(figure)})", f"`{figure.name}`", stores, seconds, tally(figure.checks(data))])
    return markdown(("figure", "name", "rows", "minutes of its rows", "what must hold"), lines, 5)


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
@click.argument("name", required=False, type=click.Choice(list(FIGURES)), metavar="[FIGURE]")
@click.option("--check", is_flag=True, help="Exit status 1 where something differs: of all figures, without a reason.")
@click.option("--write", is_flag=True, help="Rewrite the tables and pictures of the documentation.")
@click.option("--run", "running", is_flag=True, help="Run what is missing first; rows are added as they are there.")
@DATA_DIR
@ONLY
@LIMIT
@click.option("--plot", "picture", metavar="FILE", help="Draw it (.svg, .png, .pdf).")
def main(
    name: str | None,
    check: bool,
    write: bool,
    running: bool,
    data_dir: Path | None,
    only: tuple[str, ...],
    limit: float,
    picture: str | None,
) -> None:
    if name is None and (running or picture):
        raise click.UsageError("--run and --plot are of one figure: name it")
    if (data_dir or only) and not running:
        raise click.UsageError("--data-dir and --only say what to run: add --run")
    if name is None:
        sys.exit(of_all(check, write))
    figure = FIGURES[name]
    if running and figure.run is None:
        raise click.UsageError(f"the rows come from another command: {figure.how}")
    if picture and figure.draw is None:
        raise click.UsageError("there is no picture of this table")
    if running and figure.run is not None:
        figure.run(Options(data_dir, only, limit))
    data = figure.collect()
    found = figure.checks(data)
    click.echo(figure.table(data))
    click.echo(verdicts(figure.name, found), nl=False)
    if picture:
        drawn(figure, data, picture)
    sys.exit(check and any(c.holds is False for c in found))


def of_all(check: bool, write: bool) -> bool:
    """Print a line for each figure, and return whether something that is checked differs without a reason."""
    collected = {figure.name: figure.collect() for figure in FIGURES.values()}
    if write:
        for path in PAGES:
            path.write_text(written(path, collected), encoding="utf-8")
        for figure in FIGURES.values():
            if figure.draw:
                drawn(figure, collected[figure.name], PICTURES / f"{figure.name}.svg")
    left = []
    for figure in FIGURES.values():
        found = figure.checks(collected[figure.name])
        click.echo(f"{figure.title}: {tally(found)}")
        left += unexplained(figure.name, found)
    for one in left if check else ():
        click.echo(f"not explained: {one.what}: {one.ours}", err=True)
    return check and bool(left)


if __name__ == "__main__":
    main()
