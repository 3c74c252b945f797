"""Lists of edges in text files: a line for each edge, with the numbers of its two nodes and, after them, its weight.

Numbers of nodes count from 0. Blanks or commas stand between the numbers, and lines that begin with `#` or `%` are comments. The first line
of a table, `.csv` or `.tsv`, may name its columns. SNAP (https://snap.stanford.edu/data) and the GAP benchmark have such lists.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from fuseflow.errors import DataError
from fuseflow.filesystem import read_bytes
from fuseflow.frontend.datasets.files import read_packed
from fuseflow.tensors.number_text import NotARow, read_columns, row_lines

_COMMENT: Final = re.compile(rb"^[ \t]*[#%].*$", re.MULTILINE)
_FIRST_ROW: Final = re.compile(rb"^.*\S.*$", re.MULTILINE)
_NAMES: Final = re.compile(rb"[A-Za-z_]")
_GAP: Final = re.compile(rb"^[ \t]*,|,[ \t]*(?:,|$)", re.MULTILINE)
"""A comma beside which a number is missing."""
_BEHIND_NODES: Final = {2: "nothing else, as in the first line", 3: "a weight, as the first line has one"}
_FREE_NODES: Final = 1 << 20
_MOST_NODES: Final = 32
"""A graph may have this many nodes for each edge, or `_FREE_NODES`: one line must not fill the memory."""


class EdgeList(NamedTuple):
    """The rows, columns and weights of edges, and the number of nodes. The weights are None if the list has none."""

    rows: npt.NDArray[np.int64]
    columns: npt.NDArray[np.int64]
    weights: npt.NDArray[np.float64] | None
    nodes: int


def most_nodes(edges: int) -> int:
    """Return the most nodes that a graph with this number of edges may have."""
    return max(_MOST_NODES * edges, _FREE_NODES)


def read_edge_list(path: Path) -> EdgeList:
    """Return the edges in a text file. The number of nodes is one more than the largest number in the list. Raise `DataError`
    with the line that is no edge."""
    text = read_packed(path) if path.suffix == ".gz" else read_bytes(path)
    text = _COMMENT.sub(b"", text.removeprefix(BOM_UTF8).replace(b"\r\n", b"\n"))
    if {".csv", ".tsv"} & set(path.suffixes[-2:]):
        text = _without_names(path, text)
    first = _FIRST_ROW.search(text)
    width = 2 if first is None else len(first.group().replace(b",", b" ").split())
    types: tuple[type[np.generic], ...] = (np.int64, np.int64, np.float64)
    try:
        if gap := _GAP.search(text):
            raise NotARow(text.count(b"\n", 0, gap.start()))
        columns = read_columns(text.replace(b",", b" "), types[: max(width, 2)])
    except NotARow as error:
        expected = f"expected the numbers of two nodes, and {_BEHIND_NODES.get(width, 'a weight or nothing')}"
        raise _refused(path, text, error.line, expected, "blanks or commas stand between plain numbers") from None
    rows, ends, *weights = columns
    nodes = int(max(rows.max(initial=-1), ends.max(initial=-1))) + 1
    most = most_nodes(len(rows))
    for wrong, why in (
        ((rows < 0) | (ends < 0), "a node has a negative number"),
        ((rows >= most) | (ends >= most), f"a node has the number {nodes - 1:,}, of a list of {len(rows):,} edges"),
    ):
        if wrong.any():
            line = row_lines(text)[int(np.argmax(wrong))]
            raise _refused(path, text, line, why, "number the nodes 0, 1, 2, ... without large gaps")
    return EdgeList(rows, ends, weights[0] if weights else None, nodes)


def _without_names(path: Path, text: bytes) -> bytes:
    """Return the text of a table without its first line if that names the columns."""
    first = _FIRST_ROW.search(text)
    if first is None or not _NAMES.search(first.group()) or any(map(_is_number, re.split(rb"[,\s]+", first.group().strip()))):
        return text
    if _GAP.search(first.group()):
        line = text.count(b"\n", 0, first.start())
        raise _refused(path, text, line, "a column has no name", "leave the numbers of the rows out: `to_csv(FILE, index=False)`")
    return text[: first.start()] + text[first.end() :]


def _is_number(word: bytes) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _refused(path: Path, text: bytes, line: int, why: str, hint: str = "") -> DataError:
    shown = text.split(b"\n")[line].decode("latin-1").strip()
    return DataError(f"`{path}`, line {line + 1}: `{shown[:40]}`: {why}", hint=hint)
