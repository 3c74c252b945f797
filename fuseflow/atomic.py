"""Writing files in one step: a reader sees the old file or the new one, never half of it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fuseflow.errors import FileError


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """A temporary name beside `path`, whose directory is made if need be. It replaces `path` at the end of the block; if the
    block fails it is removed. Raises `FileError` where the file cannot be written."""
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            yield temporary
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise FileError(f"cannot write `{path}`: {error.strerror or error}") from error


def write_text(path: str | Path, text: str) -> None:
    """Write a text file in one step."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
