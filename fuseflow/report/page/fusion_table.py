"""The fusion table of a region in HTML, whose cells name the streams that they read and make."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from fuseflow.report.page.svg import Markup, element

_STREAM = re.compile(r"<([^<>]+)>")

Mark = Callable[[str], int | None]
"""A function from a name to the number of the thing (node, tensor, Einsum) of the page with that name, or None."""


def fusion_table(table: Any, node: Mark, column: Mark) -> Markup:
    """Return a fusion table, as `region.json` has it. `node` gives the numbers of the nodes that make the streams in cells, and
    `column` the numbers of heads."""
    heads = [element("th", scope="col")]
    heads += [element("th", c["name"], scope="col", data_t=column(c["name"])) for c in table["columns"]]
    rows = [element("tr", _row(k, name, table["columns"], node)) for k, name in enumerate(table["rows"])]
    body = element("tbody", Markup("").join(rows))
    return element("table", element("thead", element("tr", Markup("").join(heads))) + body, class_="fusion")


def _row(k: int, name: str, columns: Sequence[Any], node: Mark) -> Markup:
    cells = [element("td", Markup("").join(element("div", _part(part, node)) for part in c["cells"][k])) for c in columns]
    return element("th", name, scope="row") + Markup("").join(cells)


def _part(text: str, node: Mark) -> Markup:
    """Return a primitive of a cell as HTML, where each stream has the number of the node that makes it."""
    pieces = _STREAM.split(text)
    return Markup("").join(
        element("span", piece, class_="stream", data_t=_maker(piece, node)) if k % 2 else Markup.escape(piece)
        for k, piece in enumerate(pieces)
    )


def _maker(stream: str, node: Mark) -> int | None:
    """Return the number of the node that makes a stream, which is called `node` or `node.port`."""
    number = node(stream)
    return node(stream.rpartition(".")[0]) if number is None and "." in stream else number
