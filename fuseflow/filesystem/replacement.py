"""Writing files in one step: a reader sees the old file or the new one, never half of it.

A temporary file or directory is called `.TARGET.PID.PLACE.CHANCE`. `PLACE` identifies the machine and, in a container, the container: the
number of a process means nothing elsewhere. So the next process can remove the files that a killed process left behind, and no others.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from fuseflow.errors import FileError

_NAME = re.compile(r"\.(?P<stem>.+)\.(?P<pid>\d+)\.(?P<place>[0-9a-f]{8})\.[0-9a-f]{8}(\.old)?", re.DOTALL)
_STEM_BYTES = 150  # file systems allow names of 255 bytes


def temporary_name(target: Path) -> Path:
    """Return a new name beside `target`, for the file that will replace it."""
    return target.with_name(f".{_stem(target)}.{os.getpid()}.{_place()}.{secrets.token_hex(4)}")


def leftovers(target: Path) -> Iterator[Path]:
    """Yield the temporary files beside `target` of processes that have ended before they could replace it."""
    with suppress(OSError):
        for path in sorted(target.parent.iterdir()):
            match = _NAME.fullmatch(path.name)
            if match is not None and match["stem"] == _stem(target) and is_leftover(path.name):
                yield path


def is_leftover(name: str) -> bool:
    """Return whether a file has a temporary name of a process that has ended."""
    match = _NAME.fullmatch(name)
    if match is None or match["place"] != _place():
        return False
    try:
        os.kill(int(match["pid"]), 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):  # it runs, as another user
        return False
    return False


def _stem(target: Path) -> str:
    name = os.fsencode(target.name)
    return target.name if len(name) <= _STEM_BYTES else hashlib.sha256(name).hexdigest()


def _place() -> str:
    """Return eight digits that stand for this machine and its numbering of processes."""
    numbering = ""
    with suppress(OSError):
        numbering = os.readlink("/proc/self/ns/pid")
    return hashlib.sha256(f"{socket.gethostname()} {numbering}".encode()).hexdigest()[:8]


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


def json_text(values: dict[str, Any]) -> str:
    """Return plain values as JSON that every reader accepts. Raises `ValueError` for NaN and infinity."""
    return json.dumps(values, indent=1, allow_nan=False) + "\n"


def real_path(path: str | Path) -> Path:
    """Return the path of a file or directory without links, so that a link stays when its target is replaced."""
    return Path(os.path.realpath(path))
