"""The site: `make docs` builds it from the Markdown of this folder and the docstrings of the package, with no network."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tools")]

project = "fuseflow"
author = "the fuseflow authors"
extensions = ["myst_parser", "sphinx.ext.apidoc", "sphinx.ext.autodoc"]
exclude_patterns = ["example", "modules/modules.rst"]

# Markdown: anchors as GitHub makes them, so that one link serves both.
myst_heading_anchors = 4

# The modules: one page for each package, by walking it, so that a new module needs no entry here.
apidoc_modules = [
    {
        "path": "../fuseflow",
        "destination": "modules",
        "exclude_patterns": ["**/*_pb2.py"],
        "separate_modules": True,
        "follow_links": True,
        "module_first": True,
        "automodule_options": {"members"},
    }
]
autodoc_default_options = {"ignore-module-all": True}  # each name once, in the module that defines it
suppress_warnings = ["ref.python"]  # two classes of one short name, each documented where it is
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True  # as they stand in the source
python_maximum_signature_line_length = 100
autodoc_inherit_docstrings = False  # those of other libraries are written for their own sites
autodoc_typehints = "signature"
default_role = "literal"  # docstrings quote code with single backticks

html_theme = "furo"
html_search_scorer = str(ROOT / "docs" / "search_scores.js")
html_title = "fuseflow"


def show_indented_lines(app: object, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Docstrings are plain text, in which lines that are indented by four spaces are code or a diagram, as they are in Markdown."""
    shown: list[str] = []
    inside = False
    for line in lines:
        indented = line.startswith("    ")
        if indented and not inside:
            shown += ["", "::", ""]
        elif inside and line and not indented:
            shown.append("")
        inside = indented or (inside and not line)
        shown.append(line)
    lines[:] = shown


def collapse_navigation(app: object, page: str, template: str, context: dict[str, Any], document: object) -> None:
    """Of the thousand pages, the side bar of one lists only those around it: the theme would parse the whole tree anew for each page."""
    if whole := context.get("toctree"):
        context["toctree"] = lambda **options: whole(**options | {"collapse": True})


def insert_commands(app: object, page: str, content: list[str]) -> None:
    """The block `{command-reference}` of a page is all commands with their options, as the program has them."""
    if "{command-reference}" in content[0]:
        from command_reference import reference

        content[0] = content[0].replace("```{command-reference}\n```", reference())


def setup(app: Sphinx) -> None:
    app.connect("source-read", insert_commands)
    app.connect("autodoc-process-docstring", show_indented_lines)
    app.connect("html-page-context", collapse_navigation, priority=100)  # before the theme's own
