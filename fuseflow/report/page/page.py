"""The page of a stored run, rendered through the templates beside this file. The same run gives the same bytes."""

from __future__ import annotations

import functools
import zlib
from base64 import b64encode
from collections.abc import Callable
from typing import ParamSpec

import networkx as nx
from jinja2 import TemplateError

from fuseflow.errors import FileError
from fuseflow.loop_progress import counted
from fuseflow.report.page.assets import render
from fuseflow.report.page.catalog import catalog
from fuseflow.report.page.html_elements import printable_text
from fuseflow.report.page.overview import overview
from fuseflow.report.page.regions import region_page
from fuseflow.report.page.run_directory import AGAIN, StoredRun
from fuseflow.yaml_text import write_yaml

MALFORMED = (
    ArithmeticError, AttributeError, LookupError, RecursionError, TemplateError, TypeError, ValueError, nx.NetworkXException,
)  # fmt: skip
"""The errors that drawing raises for values that are not the values of a run."""


P = ParamSpec("P")


def printable(make: Callable[P, str]) -> Callable[P, str]:
    """Let a function that makes a page return no unprintable characters, and raise `FileError` for values that are not as fuseflow writes
    them."""

    @functools.wraps(make)
    def made(*args: P.args, **kwargs: P.kwargs) -> str:
        try:
            text = make(*args, **kwargs)
        except MALFORMED as error:
            raise FileError(f"the run is not as fuseflow writes it: {type(error).__name__} {error}", hint=AGAIN) from error
        return printable_text(text)

    return made


@printable
def page(stored: StoredRun, baseline: tuple[str, StoredRun] | None = None, bare: bool = False) -> str:
    """Return the page of a run, which is compared region by region with a `baseline` if there is one: its name, and the run. A `bare` page
    has no style and no scripts. Raises `FileError` if fuseflow would not write such values of a run."""
    things = catalog(stored)
    run = counted(stored.result["regions"], "laying out graphs")
    regions = [region_page(values, stored, things) for values in run]
    return render(
        "page.html.jinja",
        things,
        run=stored.result,
        regions=regions,
        overview=overview(stored, regions, things, baseline),
        explained=stored.cycles is not None,
        settings=write_yaml(stored.result["machine_settings"]),
        bare=bare,
    )


def packed_page(text: str) -> str:
    """Return a bare page as a text that may stand inside of another, whose script `runs.js` opens it: compressed, in base 64."""
    return b64encode(zlib.compress(text.encode(), 9)).decode()
