"""The entries of a schedule: values by name, and functions that read the names."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TypeVar

from fuseflow.errors import ScheduleError, UsageError

T = TypeVar("T")
KEYWORDS = ("none", "layerwise", "full", "best", "auto")
"""The names that say what is fused in the whole model; no region can have such a name."""
Entries = tuple[tuple[str, T], ...]
"""The entries of a section of a schedule: names with values, sorted by name."""


def check_name(section: str, name: str) -> None:
    """Raise `ScheduleError` for a text that is not a name, in the section `section`."""
    if not name or re.search(r"[\s,=]", name):
        hint = "give several names by repeating the flag" if "," in name else ""
        raise ScheduleError(f"{section} `{name}`: not a name", hint=hint)


def split_lanes(name: str) -> tuple[str, str, str]:
    """Return the region, the stage and the index that a name in the section `par` means. A part that the name lacks is empty.

    >>> split_lanes("layer1/T1.i"), split_lanes("layer1.i"), split_lanes("i")
    (('layer1', 'T1', 'i'), ('layer1', '', 'i'), ('', '', 'i'))
    """
    place, _, index = name.rpartition(".")
    region, _, stage = place.partition("/")
    return region, stage, index


def split_fifo(name: str) -> tuple[str, str]:
    """Return the region and the FIFO that a name in the section `depth` means. For a whole region the second is empty.

    >>> split_fifo("layer1/sub/k0.1"), split_fifo("layer1")
    (('layer1', 'sub/k0.1'), ('layer1', ''))
    """
    region, _, fifo = name.partition("/")
    return region, fifo


def parse_assignments(flag: str, texts: Iterable[str], example: str, otherwise: str = "") -> dict[str, str]:
    """Return the texts `NAME=VALUE` of a flag as a dictionary. Raises `UsageError` for another form, and for two values of one
    name. The message shows an `example`, and `otherwise` adds another form of the flag."""
    values: dict[str, str] = {}
    for text in texts:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not (name and equals and value):
            raise UsageError(f"cannot read `{flag} {text}`", hint=f"write `{flag} {example}`" + ("" if equals else otherwise))
        if values.setdefault(name, value) != value:
            raise UsageError(f"`{flag}` gives `{name}` twice: {values[name]} and {value}")
    return values
