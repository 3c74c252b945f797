"""Writing files in one step: a reader sees the old file or the new one, never half of it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fuseflow.errors import FileError
from fuseflow.filesystem.temporary_names import leftovers, temporary_name


@contextmanager
def replace_file(path: str | Path) -> Iterator[Path]:
    """Yield a temporary file name that replaces `path` at the end of the block.

    The directory of `path` is created if it does not exist. If the block fails, the temporary file is removed, and so are
    temporary files that killed processes left behind. A link stays and its target is replaced; a device or a pipe is written to.
    Raise `FileError` where the file cannot be written.
    """
    destination, target = Path(path), real_path(path)
    try:
        if destination.exists() and not (destination.is_file() or destination.is_dir()):
            with tempfile.TemporaryDirectory() as folder:
                yield Path(folder) / "content"
                destination.write_bytes((Path(folder) / "content").read_bytes())
            return
        temporary = temporary_name(target)
        target.parent.mkdir(parents=True, exist_ok=True)
        for left in leftovers(target):
            if left.is_file():
                left.unlink(missing_ok=True)
        try:
            yield temporary
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise FileError(f"cannot write `{path}`: {error.strerror or error}") from error
    except ValueError as error:
        if "\0" not in str(path):
            raise
        raise FileError(f"cannot write `{path!s}`: {error}") from error


def write_text(path: str | Path, text: str) -> None:
    """Write a text file in one step. Raise `FileError` where it cannot be written."""
    with replace_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def real_path(path: str | Path) -> Path:
    """Return the path of a file or directory without links, so that a link stays when its target is replaced."""
    return Path(os.path.realpath(path))
