"""All figures and tables of the paper, from the committed rows: what holds, and docs/figures.md with its pictures.

python tools/figures/figures.py             # one line each
python tools/figures/figures.py --check     # exit status 1 where something differs that docs/figures.md does not explain
python tools/figures/figures.py --write     # tables and pictures of the documentation
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping

import click
import figure4b
import figure12
import figure13
import figure14
import figure15
import figure16
import figure17
import table2
import table3
from frame import PICTURES, ROOT, Check, Data, Figure, between_marks, drawn, markdown, verdicts

FIGURES = tuple(
    module.FIGURE for module in (figure4b, figure12, figure13, figure14, figure15, figure16, figure17, table2, table3)
)
PAGE = ROOT / "docs" / "figures.md"
COUNTED = ((True, "hold"), (False, "differ"), (None, "not all run"))


def blocks(collected: Mapping[str, Data]) -> Iterator[tuple[str, str]]:
    """What stands between the marks of the page: an overview, and picture, table and verdicts of each figure."""
    yield "overview", overview(collected)
    for figure in FIGURES:
        data = collected[figure.name]
        picture = f"![{figure.title}](figures/{figure.name}.svg)\n\n" if figure.draw else ""
        yield figure.name, f"{picture}{figure.table(data)}\n{verdicts(figure.checks(data))}"


def overview(collected: Mapping[str, Data]) -> str:
    lines = []
    for figure in FIGURES:
        data = collected[figure.name]
        stores = ", ".join(f"`{store}.jsonl`" for store in figure.stores)
        seconds = ", ".join(f"{number / 60:,.0f} on {machine}" for machine, number in data["seconds"].items() if number)
        link = f"[{figure.title}](#{anchor(figure)})"
        lines.append([link, f"`tools/figures/{figure.name}.py`", stores, seconds, tally(figure.checks(data))])
    return markdown(("figure", "command", "rows", "minutes of its rows", "what must hold"), lines, 5)


def anchor(figure: Figure) -> str:
    return re.sub(r"[^a-z0-9 -]", "", figure.title.lower()).replace(" ", "-")


def tally(checks: list[Check]) -> str:
    counts = [(sum(check.holds is verdict for check in checks), word) for verdict, word in COUNTED]
    return ", ".join(f"{number} {word}" for number, word in counts if number)


def page_of(collected: Mapping[str, Data], page: str) -> str:
    for name, block in blocks(collected):
        page = between_marks(page, name, "figures", block)
    return page


def unexplained(figure: Figure, data: Data, page: str) -> list[Check]:
    """What differs, and is not named in the text of the page: `**Differs: ...**`, with the words of the check."""
    prose = re.sub(r"<!-- (\w+): .*?<!-- end of \1 -->", "", page, flags=re.DOTALL)
    return [check for check in figure.checks(data) if check.holds is False and f"*{check.what}*" not in prose]


@click.command(help=__doc__.partition("\n")[0])
@click.option("--check", is_flag=True, help="Exit status 1 where something differs that docs/figures.md does not explain.")
@click.option("--write", is_flag=True, help="Rewrite the tables and pictures of the documentation.")
def main(check: bool, write: bool) -> None:
    collected = {figure.name: figure.collect() for figure in FIGURES}
    if write:
        PAGE.write_text(page_of(collected, PAGE.read_text(encoding="utf-8")), encoding="utf-8")
        PICTURES.mkdir(exist_ok=True)
        for figure in FIGURES:
            if figure.draw:
                drawn(figure, collected[figure.name], PICTURES / f"{figure.name}.svg")
    left = []
    for figure in FIGURES:
        data = collected[figure.name]
        click.echo(f"{figure.title}: {tally(figure.checks(data))}")
        left += unexplained(figure, data, PAGE.read_text(encoding="utf-8"))
    for one in left if check else ():
        click.echo(f"not explained: {one.what}: {one.found}", err=True)
    sys.exit(1 if check and left else 0)


if __name__ == "__main__":
    main()
