"""The page of a stored run, rendered through the templates beside this file. The same run gives the same bytes."""

from __future__ import annotations

import json
import zlib
from base64 import b64encode
from collections.abc import Callable

import networkx as nx
from jinja2 import TemplateError

from fuseflow.counted_loops import counted
from fuseflow.errors import FileError
from fuseflow.report.page.assets import printable_text, render, script_json
from fuseflow.report.page.catalog import catalog
from fuseflow.report.page.overview import Overview, overview
from fuseflow.report.page.regions import region_page
from fuseflow.report.page.run_directory import AGAIN, StoredRun

MALFORMED = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TemplateError,
    TypeError,
    ValueError,
    nx.NetworkXException,
)
"""The errors that drawing raises for values that are not the values of a run."""


def page(stored: StoredRun, baseline: tuple[str, StoredRun] | None = None) -> str:
    """Return the page of a run, which is compared region by region with a `baseline` if there is one: its name, and the run. Raises
    `FileError` if fuseflow would not write such values of a run."""
    return printable(lambda: _page(stored, baseline))


def printable(make: Callable[[], str]) -> str:
    """Return the text of a page without unprintable characters. Raises `FileError` for values that are not as fuseflow writes them."""
    try:
        text = make()
    except MALFORMED as error:
        raise FileError(f"the run is not as fuseflow writes it: {type(error).__name__} {error}", hint=AGAIN) from error
    return printable_text(text)


def packed_page(text: str) -> str:
    """Return a page as a text that may stand inside of another, whose script `runs.js` opens it: compressed, in base 64."""
    return b64encode(zlib.compress(text.encode(), 9)).decode()


def _page(stored: StoredRun, baseline: tuple[str, StoredRun] | None) -> str:
    things = catalog(stored)
    run = counted(stored.result["regions"], "laying out graphs")
    regions = [region_page(k, values, stored, things) for k, values in enumerate(run, 1)]
    whole: Overview = overview(stored, regions, things, baseline)
    return render(
        "page.html.jinja",
        run=stored.result,
        regions=regions,
        overview=whole,
        explained=stored.cycles is not None,
        settings=json.dumps(stored.result["machine_settings"], indent=1),
        data=script_json({"things": things.values()}),
    )
