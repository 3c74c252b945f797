"""Writing files in one step: a reader sees the old file or the new one, never half of it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fuseflow.errors import FileError


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """A temporary name beside `path`, whose directory is made if need be. It replaces `path` at the end of the block; if the
    block fails it is removed. Raises `FileError` where the file cannot be written."""
    path = Path(path).absolute()
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


@contextmanager
def replacing_directory(path: str | Path, marker: str) -> Iterator[Path]:
    """An empty directory beside `path` that replaces it at the end of the block; if the block fails it is removed.

    A directory that is not empty is replaced only if it holds a file `marker`, which says that it was written this way.
    Raises `FileError` where it cannot be written, or must not be.
    """
    path = Path(path).absolute()
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    refuse_foreign(path, marker)
    try:
        temporary.mkdir(parents=True)
        try:
            yield temporary
            if path.is_dir():
                shutil.rmtree(path)
            temporary.replace(path)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
    except OSError as error:
        raise FileError(f"cannot write `{path}`: {error.strerror or error}") from error


def refuse_foreign(path: Path, marker: str) -> None:
    """Raise `FileError` if `path` is a file, or a directory with files but without `marker`."""
    if path.exists() and not path.is_dir():
        raise FileError(f"`{path}` is a file, not a directory")
    if path.is_dir() and any(path.iterdir()) and not (path / marker).is_file():
        raise FileError(f"`{path}` is not empty and holds no `{marker}` of an earlier run", hint="name a new directory")


def write_text(path: str | Path, text: str) -> None:
    """Write a text file in one step."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
