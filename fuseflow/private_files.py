"""Files that only the user can have written. Files of caches are trusted only if nobody else could change them.

A directory is private if the user owns it and neither its group nor others can write in it. The same holds for a file. A private file
begins with the SHA-256 digest of the rest, so a file that was damaged or edited is not read.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path

_DIGEST_BYTES = 32
_FOREIGN_WRITE = stat.S_IWGRP | stat.S_IWOTH


def cache_root() -> Path:
    """Return the directory of all caches of fuseflow: `FUSEFLOW_CACHE_DIR`, or else `fuseflow` in the user's cache directory."""
    root = os.environ.get("FUSEFLOW_CACHE_DIR")
    return Path(root) if root else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fuseflow"


def private_directory(path: Path) -> Path | None:
    """Return a directory that is private, or None if it is not or cannot be written. It is created if it does not exist."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            path.mkdir(mode=0o700)
        status = path.lstat()  # a link could point to a directory of someone else
    except OSError:
        return None
    trusted = stat.S_ISDIR(status.st_mode) and _is_private(status)
    return path if trusted and os.access(path, os.R_OK | os.W_OK | os.X_OK) else None


def read_private(path: Path) -> bytes | None:
    """Return the content of a private file. Return None if there is no such file, if it is not private, or if its digest is not
    the digest of its content."""
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as stream:
            status = os.fstat(stream.fileno())
            if not (stat.S_ISREG(status.st_mode) and _is_private(status)):
                return None
            digest, content = stream.read(_DIGEST_BYTES), stream.read()
    except OSError:
        return None
    return content if hashlib.sha256(content).digest() == digest else None


def write_private(path: Path, content: bytes) -> None:
    """Write a private file in one step: a reader sees the old file or the new one. Raise `OSError` where it cannot be written."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "wb") as stream:
            stream.write(hashlib.sha256(content).digest())
            stream.write(content)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _is_private(status: os.stat_result) -> bool:
    return status.st_uid == os.geteuid() and not status.st_mode & _FOREIGN_WRITE
