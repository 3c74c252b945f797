"""The templates, styles and scripts of pages, which stand in files beside this one and are written into every page."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from fuseflow.report.page.html_elements import element, number_text, script_json
from fuseflow.report.page.things import Things
from fuseflow.yaml_text import block_yaml

SCRIPTS = (
    "things.js", "address.js", "marks.js", "inspector.js", "runs.js", "figures.js", "charts.js", "graphs.js", "timelines.js", "views.js",
    "search.js", "tables.js", "copy.js", "keyboard.js", "start.js",
)  # fmt: skip
"""The scripts of a page, in the order in which they are run. Each may use definitions of the scripts before it."""


def render(template: str, things: Things, **values: Any) -> str:
    """Return a page about things. Its template may use the styles and the scripts of pages as `style` and `script`, and the things, which
    the scripts show, as `data`."""
    data = script_json({"things": things.values()})
    return _environment().get_template(template).render(**{"bare": False, **values}, data=data) + "\n"


def _text(name: str) -> str:
    return files("fuseflow.report.page").joinpath(name).read_text(encoding="utf-8")


@cache
def _environment() -> Environment:
    loader = PackageLoader("fuseflow.report.page", ".")
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {"cell": cell, "compact": compact, "quoted": quoted, "worded": worded, "yaml": block_yaml}
    scripts = "\n".join(_text(f"scripts/{name}") for name in SCRIPTS)
    script = Markup(f'"use strict";\n(() => {{\n{scripts}}})();\n')
    libraries = Markup(_text("scripts/libraries.js"))
    environment.globals.update(style=Markup(_text("style.css")), libraries=libraries, script=script)
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


def worded(command: str) -> Markup:
    """Return a command as HTML whose lines break between its words, and not inside of `--option`."""
    lines = (Markup(" ").join(element("span", word, class_="word") for word in line.split(" ")) for line in command.split("\n"))
    return Markup("\n").join(lines)


def compact(values: Any) -> str:
    """Return settings as text: `key=value`, separated by commas."""
    return ", ".join(f"{key}={value}" for key, value in values.items())
