"""Tables in HTML. Numbers stand right, and every head has its unit and, under the mouse, the meaning of its numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fuseflow.report.page.svg import Markup, element


@dataclass(frozen=True, slots=True)
class Column:
    """A column with its head, its meaning in a sentence, and whether it holds words."""

    head: str
    meaning: str = ""
    words: bool = False


@dataclass(frozen=True, slots=True)
class Link:
    """A cell that names a thing of the page. `key` is the place in the address bar to which it leads, and `thing` its number."""

    text: str
    key: str | None
    thing: int | None


@dataclass(frozen=True, slots=True)
class Bar:
    """A cell that shows a share between 0 and 100 as a bar, coloured as `state`."""

    percent: float
    state: str = "busy"


Cell = str | int | float | Markup | Link | Bar | None


def html_table(columns: Sequence[Column], rows: Iterable[Sequence[Cell]], sortable: bool = True) -> Markup:
    """Return a table with a row for each of `rows`. A click on a head sorts it if it is `sortable`. A row is marked as the thing
    that its first link names."""
    heads = (element("th", c.head, scope="col", title=c.meaning or None, class_="name" if c.words else None) for c in columns)
    head = element("thead", element("tr", Markup("").join(heads)))
    body = element("tbody", Markup("").join(_row(row, columns) for row in rows))
    return element("table", head + body, class_="sortable" if sortable else None)


def _row(row: Sequence[Cell], columns: Sequence[Column]) -> Markup:
    cells = (_cell(value, column.words) for value, column in zip(row, columns, strict=True))
    thing = next((value.thing for value in row if isinstance(value, Link)), None)
    return element("tr", Markup("").join(cells), data_t=thing)


def _cell(value: Cell, words: bool) -> Markup:
    match value:
        case Markup():
            return element("td", value, class_="drawn")
        case Link(text, None, thing):
            return element("td", text, class_="name", data_t=thing)
        case Link(text, key, thing):
            return element("td", element("a", text, href=f"#{key}", data_t=thing), class_="name")
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
