"""The templates, styles and scripts of pages, which stand in files beside this one and are written into every page."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from fuseflow.errors import INVISIBLE
from fuseflow.report.page.html_tables import number_text
from fuseflow.report.page.svg import element
from fuseflow.report.page.things import Things

SCRIPTS = (
    "things.js", "address.js", "marks.js", "inspector.js", "runs.js", "views.js", "graph.js", "panning.js", "search.js", "tables.js",
    "keyboard.js", "start.js",
)  # fmt: skip
"""The scripts of a page, in the order in which they are run. Each may use definitions of the scripts before it."""


def render(template: str, things: Things, **values: Any) -> str:
    """Return a page about things. Its template may use the styles and the scripts of pages as `style` and `script`, and the things, which
    the scripts show, as `data`."""
    data = _script_json({"things": things.values()})
    return _environment().get_template(template).render(data=data, **values) + "\n"


def printable_text(text: str) -> str:
    """Return a text in which a replacement stands for characters that a browser would obey, or could not show: control
    characters, marks that turn the direction of the text around them, and halves of pairs."""
    return INVISIBLE.sub("\N{REPLACEMENT CHARACTER}", text)


def _script_json(values: Any) -> Markup:
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


def _text(name: str) -> str:
    return files("fuseflow.report.page").joinpath(name).read_text(encoding="utf-8")


@cache
def _environment() -> Environment:
    loader = PackageLoader("fuseflow.report.page", ".")
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {"cell": cell, "compact": compact, "quoted": quoted}
    scripts = "\n".join(_text(f"scripts/{name}") for name in SCRIPTS)
    script = Markup(f'"use strict";\n(() => {{\n{scripts}}})();\n')
    environment.globals.update(style=Markup(_text("style.css")), script=script)
    return environment


def cell(value: object) -> str:
    """Return a value as the page prints it: whole numbers with commas, others with one decimal place."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return number_text(value)
    return "" if value is None else str(value)


def quoted(sentence: str) -> Markup:
    """Return a sentence as HTML, where names between backquotes are code.

    >>> quoted("`a<b` works")
    Markup('<code>a&lt;b</code> works')
    """
    parts = sentence.split("`")
    return Markup("").join(element("code", part) if k % 2 else escape(part) for k, part in enumerate(parts))


def compact(values: Any) -> str:
    """Return settings as text: `key=value`, separated by commas."""
    return ", ".join(f"{key}={value}" for key, value in values.items())
