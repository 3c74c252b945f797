"""The page of a stored run, rendered through the template beside this file. The same run gives the same bytes."""

from __future__ import annotations

import json
import re
from typing import Any

import networkx as nx
from jinja2 import Environment, PackageLoader, StrictUndefined, TemplateError
from markupsafe import Markup, escape

from fuseflow.errors import FileError
from fuseflow.report.page.regions import RegionPage, region_page
from fuseflow.report.page.roofline import roofline
from fuseflow.report.page.run_directory import AGAIN, StoredRun
from fuseflow.report.page.svg import element

UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")


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
"""What values raise that are not those of a run, where they are drawn."""


def page(stored: StoredRun) -> str:
    """Return the page of a run. Raises `FileError` if the values of the run are not those that fuseflow writes."""
    try:
        regions = [region_page(k, values, stored) for k, values in enumerate(stored.result["regions"], 1)]
        text = (
            _environment()
            .get_template("page.html.jinja")
            .render(
                run=stored.result,
                explained=stored.cycles,
                regions=regions,
                repeated=sum(region.values["times"] > 1 for region in regions),
                roofline=roofline([region.point for region in regions], _peak(regions)),
                settings=json.dumps(stored.result["machine_settings"], indent=1),
            )
        )
    except MALFORMED as error:
        raise FileError(f"the run is not as fuseflow writes it: {type(error).__name__} {error}", hint=AGAIN) from error
    return UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", text)


def _peak(regions: list[RegionPage]) -> float | None:
    """Return the bytes that the memory moves in a cycle at most, or None if it answers at once."""
    return next((float(r.memory["peak_bytes_per_cycle"]) for r in regions if r.memory is not None), None)


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("fuseflow.report.page", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["cell"] = cell
    environment.filters["compact"] = compact
    environment.filters["quoted"] = quoted
    return environment


def cell(value: object) -> str:
    """Return a value as the page prints it: whole numbers with commas, others with one decimal place."""
    match value:
        case bool() | str():
            return str(value)
        case int():
            return f"{value:,}"
        case float():
            return f"{value:.1f}"
        case _:
            return "" if value is None else str(value)


def quoted(sentence: str) -> Markup:
    """Return a sentence as HTML, where names between backquotes are code.

    >>> quoted("`a<b` works")
    Markup('<code>a&lt;b</code> works')
    """
    parts = sentence.split("`")
    return Markup("").join(element("code", part) if k % 2 else escape(part) for k, part in enumerate(parts))


def compact(values: Any) -> str:
    """Return options as on the command line."""
    return ", ".join(f"{key}={value}" for key, value in values.items())
