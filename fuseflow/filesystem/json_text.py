"""Reading JSON, whose texts may come from anywhere, and writing it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from fuseflow.errors import FileError
from fuseflow.filesystem.reading import MOST_TEXT_BYTES, read_bytes

MOST_VALUES: Final = 5_000_000
"""The most values of a text. An empty list of two characters takes fifty bytes of memory."""


def read_json(path: str | Path, kind: str = "", *, hint: str = "") -> Any:
    """Return the value in a JSON file. Raise `FileError` if the file cannot be read or is not JSON; the message calls the file `kind`."""
    return parse_json(read_bytes(path, kind, MOST_TEXT_BYTES), f"`{path}`", hint=hint)


def json_text(values: dict[str, Any]) -> str:
    """Return plain values as JSON that every reader accepts. Raises `ValueError` for NaN and infinity."""
    return json.dumps(values, indent=1, allow_nan=False) + "\n"


def parse_json(text: str | bytes, name: str, *, hint: str = "") -> Any:
    """Return the value of a JSON text. Raise `FileError` if it is not JSON, is nested deeper than can be read, has more than `MOST_VALUES`
    values, or a number of thousands of digits; the message calls the text `name`."""
    if len(text) > MOST_VALUES and _most_values(text) > MOST_VALUES:
        raise FileError(f"{name} is not JSON that can be read: it has more than {MOST_VALUES:,} values", hint=hint)
    try:
        return json.loads(text)
    except RecursionError:
        raise FileError(f"{name} is not JSON that can be read: it is nested too deep", hint=hint) from None
    except json.JSONDecodeError as error:
        raise FileError(f"{name} is not JSON, or not whole: {error}", hint=hint) from error
    except UnicodeDecodeError:
        raise FileError(f"{name} is not JSON: it is not UTF-8 text", hint=hint) from None
    except ValueError:  # Python reads no whole number of more than 4,300 digits
        raise FileError(f"{name} is not JSON that can be read: a number has too many digits", hint=hint) from None


def _most_values(text: str | bytes) -> int:
    """Return an upper bound for the number of values in a JSON text."""
    if isinstance(text, bytes):
        return sum(text.count(mark) for mark in (b",", b"[", b"{"))
    return sum(text.count(mark) for mark in (",", "[", "{"))
