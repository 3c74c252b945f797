"""Names that hurt whoever shows them as they are: markup, quotes, marks that turn the direction of text, control characters, and long ones.

Graphs and results are plain values, so a file may hold any name in them, also such as no program of ours has.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Any

HOSTILE = {
    "script": "</script><script>window.hurt = 1</script>",
    "attribute": "\"'><img src=x onerror='window.hurt=1'>",
    "right to left": "\u200f\u202egnp\u2066",
    "control": "\x07\x1b[31m\x1b]0;title\x07\ud800",
    "template": "{{ 7 * 7 }}{% raw %}",
    "long": "n" * 10_000,
}
OBEYED = "\u200f\u202e\u2066\x07\x1b"
"""The characters of these names that terminals and browsers obey."""


def renamed(value: Any, names: Mapping[str, str]) -> Any:
    """Return a value in which each of `names` is called otherwise, wherever it stands: in texts, keys, tuples and dataclasses."""
    match value:
        case str():
            return re.sub(r"(?<![\w.])(" + "|".join(map(re.escape, names)) + r")(?!\w)", lambda m: names[m[1]], value)
        case Mapping():
            return {renamed(key, names): renamed(inner, names) for key, inner in value.items()}
        case list():
            return [renamed(inner, names) for inner in value]
        case tuple() if hasattr(value, "_fields"):
            return type(value)(*(renamed(inner, names) for inner in value))
        case tuple():
            return tuple(renamed(inner, names) for inner in value)
        case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
            fields = {f.name: renamed(getattr(value, f.name), names) for f in dataclasses.fields(value) if f.init}
            return dataclasses.replace(value, **fields)
    return value
