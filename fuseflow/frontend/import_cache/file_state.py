"""The state of a file or of a directory: if two states are equal, it was not changed between them."""

from __future__ import annotations

import hashlib
import os
import stat
from typing import Final

HASHED_BYTES: Final = 1 << 24
"""Up to this size, the state of a file is a digest of its content. It takes 10 ms. A larger file is known by its size and its times."""

ABSENT = "absent"
"""The state of a file that is not there."""


def file_state(path: str) -> str | None:
    """Return the state of a file, or of a directory, which is the names in it. Return None for a path that is neither or cannot be read."""
    try:
        status = os.stat(path)
        if stat.S_ISDIR(status.st_mode):
            names = sorted(name for name in os.listdir(path) if name != "__pycache__")
            return hashlib.sha256("\0".join(names).encode("utf-8", "surrogateescape")).hexdigest()
        if not stat.S_ISREG(status.st_mode):
            return None
        if status.st_size > HASHED_BYTES:
            return f"size {status.st_size}, changed {status.st_mtime_ns} {status.st_ctime_ns}"
        with open(path, "rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except (FileNotFoundError, NotADirectoryError):
        return ABSENT
    except (OSError, ValueError):
        return None


def last_change(path: str) -> int:
    """Return the time at which a file was changed or replaced, in nanoseconds, or 0 if there is no such file."""
    try:
        status = os.stat(path)
        return status.st_ctime_ns if stat.S_ISREG(status.st_mode) else 0
    except (OSError, ValueError):
        return 0
