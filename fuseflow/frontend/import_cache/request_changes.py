"""What differs between two requests for a model file, in words: why the second one is not answered from the cache."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

MOST_CHANGES = 4
"""The most differences that are told."""


def file_changes(paths: Sequence[str]) -> str:
    """Return words about files that changed, were added or removed since the import that is kept."""
    told = [f"`{os.path.relpath(path)}` {'changed' if os.path.exists(path) else 'is gone'}" for path in paths]
    return _joined(told)


def request_changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Return words about what is asked for now and was not, or was not so, in the request before.

    >>> request_changes({"seed": 0, "options": {"hidden": 16}}, {"seed": 0, "options": {"hidden": 32}})
    '`options hidden` is 32, and was 16'
    >>> request_changes({"path": ["torch-2.12.dist-info"]}, {"path": ["torch-2.13.dist-info"]})
    '`path` has `torch-2.13.dist-info`, and had `torch-2.12.dist-info`'
    """
    return _joined([*_differences((), before, now)]) or "what was kept for this request is gone"


def _joined(told: Sequence[str]) -> str:
    more = f"; and {len(told) - MOST_CHANGES} more" if len(told) > MOST_CHANGES else ""
    return "; ".join(told[:MOST_CHANGES]) + more


def _differences(name: tuple[str, ...], before: Any, now: Any) -> Iterator[str]:
    if before == now:
        return
    if isinstance(before, dict) and isinstance(now, dict):
        for key in (*before, *(key for key in now if key not in before)):
            yield from _differences((*name, key), before.get(key), now.get(key))
    elif isinstance(before, list) and isinstance(now, list):
        added, gone = ([each for each in one if each not in other] for one, other in ((now, before), (before, now)))
        has = f"has {_listed(added)}" if added else ""
        had = f"had {_listed(gone)}" if gone else ""
        yield f"`{' '.join(name)}` {', and '.join(filter(None, (has, had))) or 'has another order'}"
    elif name[-1:] == ("fuseflow",):
        yield "the sources of fuseflow changed"
    else:
        yield f"`{' '.join(name)}` is {_value(now)}, and was {_value(before)}"


def _listed(values: Sequence[Any]) -> str:
    named = ", ".join(f"`{value}`" for value in values[:MOST_CHANGES])
    return f"{named} and {len(values) - MOST_CHANGES} more" if len(values) > MOST_CHANGES else named


def _value(value: Any) -> str:
    return "not given" if value is None else str(value) if len(str(value)) <= 60 else "another"
