"""Elements of HTML and SVG, tables, and the places of figures, which the scripts of a page draw from plain values.

Names are escaped, and numbers have at most two decimal places, so that the same values give the same bytes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from markupsafe import Markup, escape

from fuseflow.errors import INVISIBLE
from fuseflow.report.page.things import Thing, number_of


def number(value: float) -> str:
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def element(name: str, content: object = "", /, **attributes: object) -> Markup:
    """Return an element. `class_` is the attribute `class`, and `data_t` is `data-t`."""
    pairs = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(number(v) if isinstance(v, int | float) else v)}"'
        for key, v in attributes.items()
        if v is not None
    )
    return Markup(f"<{name}{pairs}>{escape(content)}</{name}>")  # `Markup.format` takes several times as long


def shorten(name: str, letters: int) -> str:
    """Return a name with at most `letters` letters."""
    return name if len(name) <= letters else f"{name[: letters - 1]}…"


def shorten_middle(name: str, letters: int) -> str:
    """Return a name with at most `letters` letters. Names of one model differ at their ends, so the middle is left out.

    >>> shorten_middle("decoders.0.attn.query.weight_val", 20)
    'decod…ery.weight_val'
    """
    if len(name) <= letters:
        return name
    head = max(letters // 4, 1)
    return f"{name[:head]}…{name[len(name) - (letters - head - 1) :]}"


FigureKind: TypeAlias = Literal["graph", "order", "roofline", "pareto", "losses"]


def figure(kind: FigureKind, values: Any, label: str) -> Markup:
    """Return the place of a figure, with the values that it shows. Screen readers read its `label`."""
    data = element("script", script_json(values), type="application/json")
    return element("div", data, class_=f"figure {kind}", data_figure=kind, data_label=printable_text(label))


def printable_text(text: str) -> str:
    """Return a text in which a replacement stands for characters that a browser would obey, or could not show: control
    characters, marks that turn the direction of the text around them, and halves of pairs."""
    return INVISIBLE.sub("\N{REPLACEMENT CHARACTER}", text)


def script_json(values: Any) -> Markup:
    """Return values as JSON that may stand inside of a `script` element: no letter of it ends the element or begins a comment. Its texts
    are printable, since scripts show them."""
    text = json.dumps(_printable(values), separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def _printable(value: Any) -> Any:
    match value:
        case str():
            return printable_text(value)
        case dict():
            return {_printable(key): _printable(inner) for key, inner in value.items()}
        case list() | tuple():
            return [_printable(inner) for inner in value]
    return value


@dataclass(frozen=True, slots=True)
class Column:
    """A column with its head, its meaning in a sentence, and whether it holds words. `below` stands below the head."""

    head: str
    meaning: str = ""
    words: bool = False
    below: str = ""


@dataclass(frozen=True, slots=True)
class Link:
    """A cell with a name, which leads to the thing of the page with that name, if there is one."""

    text: str
    thing: Thing | None


@dataclass(frozen=True, slots=True)
class Bar:
    """A cell that shows a share between 0 and 100 as a bar, coloured as `state`."""

    percent: float
    state: str = "busy"


Cell = str | int | float | Markup | Link | Bar | None


def html_table(columns: Sequence[Column], rows: Iterable[Sequence[Cell]], sortable: bool = True) -> Markup:
    """Return a table with a row for each of `rows`. A click on a head sorts it if it is `sortable`. A row is marked as the thing
    that its first link names."""
    heads = (
        element("th", escape(c.head) + c.below, scope="col", title=c.meaning or None, class_="name" if c.words else None)
        for c in columns
    )
    head = element("thead", element("tr", Markup("").join(heads)))
    lines = []
    for row in rows:
        cells = (_cell(value, column.words) for value, column in zip(row, columns, strict=True))
        thing = next((value.thing for value in row if isinstance(value, Link)), None)
        lines.append(element("tr", Markup("").join(cells), data_t=number_of(thing)))
    body = element("tbody", Markup("").join(lines))
    return element("table", head + body, class_="sortable" if sortable else None)


def _cell(value: Cell, words: bool) -> Markup:
    match value:
        case Markup():
            return element("td", value, class_="drawn")
        case Link(text, thing):
            content = text if thing is None else element("a", text, href=f"#{thing.key}", data_t=thing.number)
            return element("td", content, class_="name")
        case Bar(percent, state):
            share = min(max(percent, 0.0), 100.0)
            bar = element("span", class_=f"bar fill-{state}", style=f"width:{share:.1f}%")
            return element("td", bar, class_="bars", data_value=percent)
        case str():
            return element("td", value, class_="name" if words else None)
        case None:
            return element("td")
        case int() | float():
            return element("td", number_text(value), data_value=value)


def number_text(value: float) -> str:
    """Return a number as pages show it: whole ones with commas, others with one decimal place.

    >>> number_text(1234), number_text(0.25)
    ('1,234', '0.2')
    """
    return f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"


_STREAM = re.compile(r"<([^<>]+)>")

Mark = Callable[[str], Thing | None]
"""A function from a name to the thing (node, tensor, Einsum) of the page with that name, or None."""


def fusion_table(table: Any, node: Mark, column: Mark) -> Markup:
    """Return a fusion table, as `region.json` has it. `node` gives the makers of streams in cells, and `column` the things of heads."""
    heads = [element("th", scope="col")]
    heads += [element("th", c["name"], scope="col", data_t=number_of(column(c["name"]))) for c in table["columns"]]
    rows = []
    for k, name in enumerate(table["rows"]):
        parts = (Markup("").join(element("div", _part(part, node)) for part in c["cells"][k]) for c in table["columns"])
        cells = (element("td", part) for part in parts)
        rows.append(element("tr", element("th", name, scope="row") + Markup("").join(cells)))
    body = element("tbody", Markup("").join(rows))
    return element("table", element("thead", element("tr", Markup("").join(heads))) + body, class_="fusion")


def _part(text: str, node: Mark) -> Markup:
    """Return a primitive of a cell as HTML, where each stream, called `node` or `node.port`, has the number of the node that makes it."""
    pieces = []
    for k, piece in enumerate(_STREAM.split(text)):
        if k % 2 == 0:
            pieces.append(Markup.escape(piece))
        else:
            maker = node(piece) or (node(piece.rpartition(".")[0]) if "." in piece else None)
            pieces.append(element("span", piece, class_="stream", data_t=number_of(maker)))
    return Markup("").join(pieces)
