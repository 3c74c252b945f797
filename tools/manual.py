"""The words of each part of the documentation, and the list of all pages in README.md.

    python tools/manual.py            the words of each part, and of the manual, which has at most 45,000
    python tools/manual.py --index    writes the list of pages into README.md

A word is what stands between spaces, in prose, tables and blocks of code alike. Lists that a tool writes between `<!-- list of` and
`<!-- end -->` are not counted.
"""

from __future__ import annotations

import re
from pathlib import Path

import click

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
MANUAL = {
    "tutorials": "Tutorials",
    "how-to": "How-to",
    "reference": "Reference",
    "explanation": "Explanation",
}
"""The folders of the manual, by what README.md calls them."""
OTHERS = {"measured": "Measured", "develop": "Development"}
MOST_WORDS = 45_000

_GENERATED = re.compile(r"<!-- list of.*?<!-- end -->", re.DOTALL)
_INDEX = re.compile(r"(?<=<!-- all pages -->\n).*?(?=<!-- end of all pages -->)", re.DOTALL)


def words(page: Path) -> int:
    return len(_GENERATED.sub("", page.read_text(encoding="utf-8")).split())


def pages(part: str) -> list[Path]:
    return sorted((DOCS / part).glob("*.md"))


def title(page: Path) -> str:
    """The first heading of a page; raises `ValueError` if it has none."""
    first = re.search(r"^# (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    if first is None:
        raise ValueError(f"{page} has no title")
    return first[1]


def index() -> str:
    """All pages under the names of their parts, in Markdown, as README.md has them."""
    listed = (
        f"**{name}**: {', '.join(f'[{title(page)}]({page.relative_to(ROOT)})' for page in pages(part))}.\n"
        for part, name in (MANUAL | OTHERS).items()
    )
    return "\n".join(["", *listed, ""])


def with_index(readme: str) -> str:
    return _INDEX.sub(lambda _: index(), readme)


def words_by_part() -> dict[str, int]:
    """The words of README.md and of each part."""
    return {"README.md": words(ROOT / "README.md")} | {part: sum(map(words, pages(part))) for part in (*MANUAL, *OTHERS)}


def words_of_manual() -> int:
    return sum(number for part, number in words_by_part().items() if part not in OTHERS)


@click.command()
@click.option("--index", "write", is_flag=True, help="Write the list of pages into README.md.")
def main(write: bool) -> None:
    """Print the words of each part of the documentation."""
    readme = ROOT / "README.md"
    if write:
        readme.write_text(with_index(readme.read_text(encoding="utf-8")), encoding="utf-8")
    for part, number in words_by_part().items():
        click.echo(f"{part:12} {number:8,}")
    click.echo(f"{'manual':12} {words_of_manual():8,} of {MOST_WORDS:,}")


if __name__ == "__main__":
    main()
