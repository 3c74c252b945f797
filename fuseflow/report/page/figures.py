"""Figures, which the scripts of a page draw from plain values, and JSON that may stand inside of a page."""

from __future__ import annotations

import json
from typing import Any, Literal, TypeAlias

from fuseflow.errors import INVISIBLE
from fuseflow.report.page.svg import Markup, element

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
