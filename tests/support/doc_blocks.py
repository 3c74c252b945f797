"""Blocks of code of the documentation's pages, each with what the comment above it says of it.

<!-- not run: foreign data -->         no test runs it, for one of the `REASONS`
<!-- slow -->                          a slow test runs it
<!-- from tests/data/a_file.py -->     it is the text of that file, which a test uses
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

REASONS = {
    "installation": "it installs packages, or needs machines or programs that a test does not have",
    "foreign data": "it reads data sets that do not come with fuseflow",
    "hours": "it measures for longer than a slow test may take",
    "formula": "it is a formula",
    "outline": "it is the outline of a program",
}
"""Why no test runs a block."""

_FENCE = re.compile(r"^( *)(```+)(.*)$")
_COMMENT = re.compile(r"^<!-- (not run: (?P<reason>.*)|(?P<slow>slow)|from (?P<file>\S+)) -->$")
_LIST = re.compile(r"^\s*([-*]|\d+\.)\s")


@dataclass(frozen=True, slots=True)
class Block:
    """One block: where it stands, its language, its text and what the comment above it says."""

    page: Path
    line: int
    language: str
    text: str
    reason: str | None = None
    slow: bool = False
    file: str | None = None

    @property
    def label(self) -> str:
        return f"{self.page.stem}-{self.line}"


def blocks(page: Path) -> Iterator[Block]:
    """The fenced blocks of a page in order; raises `ValueError` for one that is only indented, since nothing says what that is."""
    lines = page.read_text(encoding="utf-8").splitlines()
    comment: re.Match[str] | None = None
    in_list = False
    number = 0
    while number < len(lines):
        line = lines[number]
        fence = _FENCE.match(line)
        if fence is not None:
            end = next(k for k in range(number + 1, len(lines)) if lines[k].strip() == fence[2])
            text = "".join(inner.removeprefix(fence[1]) + "\n" for inner in lines[number + 1 : end])
            yield _block(page, number + 1, fence[3].strip(), text, comment)
            number, comment = end + 1, None
            continue
        if line.startswith("    ") and not lines[number - 1].strip() and not in_list:
            raise ValueError(f"{page.name}:{number + 1}: a block of code that is only indented; put it between fences")
        if line.strip():
            comment = _COMMENT.match(line)
            in_list = bool(_LIST.match(line)) or (in_list and line.startswith(" "))
        number += 1


def _block(page: Path, line: int, language: str, text: str, comment: re.Match[str] | None) -> Block:
    if comment is None:
        return Block(page, line, language, text)
    return Block(page, line, language, text, comment["reason"], comment["slow"] is not None, comment["file"])


ALL = [block for page in PAGES for block in blocks(page)]


def in_language(language: str) -> list[Block]:
    """The blocks of a language that a test runs as they stand."""
    return [b for b in ALL if b.language == language and b.reason is None and b.file is None]
