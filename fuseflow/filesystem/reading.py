"""Reading whole files, which must not be larger than is sensible for files of their kind, and JSON, which may come from anywhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import IO, Any, Final

from fuseflow.errors import FileError

MOST_BYTES: Final = 4 << 30
"""The most bytes of a file that is read as a whole."""
MOST_TEXT_BYTES: Final = 256 << 20
"""The most bytes of a text. A device such as /dev/zero has no end, and would fill the memory."""

_PART: Final = 1 << 20


def read_bytes(path: str | Path, kind: str = "", most: int = MOST_BYTES) -> bytes:
    """Return the bytes of a file. Raise `FileError` if it cannot be read or has more than `most` bytes; the message calls the file `kind`,
    such as "the model file"."""
    name = f"{kind} `{path}`".strip()
    try:
        with open(path, "rb") as stream:
            content = _read(stream, most)
    except OSError as error:
        raise FileError(f"cannot read {name}: {error.strerror}") from error
    except ValueError as error:  # a name with a null character
        raise FileError(f"cannot read {name}: {error}") from error
    if len(content) > most:
        raise FileError(f"cannot read {name}: it has more than {most:,} bytes")
    return content


def _read(stream: IO[bytes], most: int) -> bytes:
    """Return the content of a stream, or more than `most` bytes of it. (To read `most` bytes at once would take that much memory.)"""
    parts, length = list[bytes](), 0
    while length <= most and (part := stream.read(_PART)):
        parts.append(part)
        length += len(part)
    return b"".join(parts)


def read_text(path: str | Path, kind: str = "", most: int = MOST_TEXT_BYTES) -> str:
    """Return the UTF-8 text of a file, with line breaks as in Python. Raise `FileError` if it cannot be read or has more than `most` bytes;
    the message calls the file `kind`."""
    content = read_bytes(path, kind, most)
    try:
        return content.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        raise FileError(f"cannot read {f'{kind} `{path}`'.strip()}: it is not UTF-8 text") from error


MOST_VALUES: Final = 5_000_000
"""The most values of a text. An empty list of two characters takes fifty bytes of memory."""


def read_json(path: str | Path, kind: str = "", *, hint: str = "") -> Any:
    """Return the value in a JSON file. Raise `FileError` if the file cannot be read or is not JSON; the message calls the file `kind`."""
    return parse_json(read_bytes(path, kind, MOST_TEXT_BYTES), f"`{path}`", hint=hint)


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
