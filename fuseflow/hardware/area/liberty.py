"""A library of cells of the user, in the Liberty format, of a bounded size. Yosys reads the cells and their areas."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fuseflow.errors import FileError
from fuseflow.filesystem import read_text

MOST_BYTES = 64 * 1024 * 1024
"""The largest size of a library file."""
_CELL = re.compile(r"\bcell\s*\(\s*\"?([\w.$\[\]]+)\"?\s*\)\s*\{")
_FLIP_FLOP = re.compile(r"\bff\s*\(")
_LIBRARY = re.compile(r"\blibrary\s*\(\s*\"?([\w.$-]+)\"?\s*\)\s*\{")
_AREA = re.compile(r"\barea\s*:\s*\"?([0-9.eE+-]+)\"?\s*;")


@dataclass(frozen=True, slots=True)
class Liberty:
    """The text of a library that has at least one cell with an area, and a flip-flop. `name` is the library's name in the text.
    `flip_flops` are the names of the cells that are flip-flops."""

    path: Path
    name: str
    text: str
    flip_flops: frozenset[str]


def read_liberty(path: Path) -> Liberty:
    """Read a library of cells. Raises `FileError` if it cannot be read, is too large, or lacks cells, areas or a flip-flop."""
    text = read_text(path, "the liberty file", MOST_BYTES)
    library = _LIBRARY.search(text)
    if library is None:
        raise FileError(
            f"`{path}` is no liberty file: it has no `library (NAME) {{`", hint="a library of cells in the Liberty format"
        )
    if not _CELL.search(text) or not _AREA.search(text):
        raise FileError(f"liberty file `{path}` has no cell with an `area`", hint="areas are what it is read for")
    flip_flops = frozenset(_flip_flops(text))
    if not flip_flops:
        raise FileError(
            f"liberty file `{path}` has no flip-flop, a cell with an `ff (...)` group",
            hint="take the library of sequential and combinational cells together",
        )
    return Liberty(path, library[1], text, flip_flops)


def _flip_flops(text: str) -> Iterator[str]:
    cells = list(_CELL.finditer(text))
    for cell, behind in zip(cells, (*(other.start() for other in cells[1:]), len(text)), strict=True):
        if _FLIP_FLOP.search(text, cell.end(), behind):
            yield cell[1]
