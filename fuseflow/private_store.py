"""A store of values that are kept from run to run, one file for each request, which only the user can have written.

Imports of models are kept, and the cuts and layouts that were chosen for programs. Files that were not used for the longest time are
removed.

Files of caches are trusted only if nobody else could change them. A directory is private if the user owns it and neither its group nor
others can write in it. The same holds for a file. A private file begins with the SHA-256 digest of the rest, so a file that was damaged
or edited is not read.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fuseflow.errors import UsageError

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


LIMIT_VARIABLE: Final = "FUSEFLOW_MODEL_CACHE_MB"
DEFAULT_MEGABYTES: Final = 1024
_SHARE: Final = 4
"""A file may take the whole cache divided by this number, so that one large model does not drive out all others."""


@dataclass(frozen=True, slots=True)
class PrivateStore:
    """A private directory, the suffix of the files in it, and the most bytes that these may take together."""

    directory: Path
    suffix: str
    limit: int

    @classmethod
    def open(cls, folder: str, suffix: str) -> PrivateStore | None:
        """Return a store of this user. Return None if the user turned caches off, or if its directory is not private or not writable."""
        limit = _limit()
        directory = private_directory(cache_root() / folder) if limit else None
        return None if directory is None else cls(directory, suffix, limit)

    def read(self, digest: str) -> bytes | None:
        """Return the content that was written under a digest, or None if there is none that can be trusted."""
        path = self._path(digest)
        content = read_private(path)
        if content is not None:
            with suppress(OSError):
                os.utime(path)  # it was used last
        return content

    def admits(self, size: int) -> bool:
        """Return whether a content of `size` bytes may be kept."""
        return size <= self.limit // _SHARE

    def write(self, digest: str, content: bytes) -> bool:
        """Keep a content under a digest, and remove old files above the limit. Return False if it is too large or cannot be written."""
        if not self.admits(len(content)):
            return False
        try:
            write_private(self._path(digest), content)
        except OSError:
            return False
        self._shrink()
        return True

    def _path(self, digest: str) -> Path:
        return self.directory / (digest + self.suffix)

    def _shrink(self) -> None:
        """Remove the files that were not used for the longest time, until the rest fits. Another process may remove them, too."""
        ages: list[tuple[int, int, str]] = []
        with os.scandir(self.directory) as files:
            for file in files:
                with suppress(FileNotFoundError):
                    status = file.stat(follow_symlinks=False)
                    ages.append((status.st_mtime_ns, status.st_size, file.path))
        total = sum(size for _, size, _ in ages)
        for _, size, path in sorted(ages):
            if total <= self.limit:
                return
            with suppress(OSError):
                os.unlink(path)
            total -= size


def _limit() -> int:
    """Return the most bytes that the files of a store may take together. It is 0 if the user turned the cache off."""
    text = os.environ.get(LIMIT_VARIABLE) or str(DEFAULT_MEGABYTES)
    if not text.isascii() or not text.isdigit():
        raise UsageError(f"{LIMIT_VARIABLE} is `{text}`", hint="give the megabytes of the cache, or 0 for no cache")
    return int(text) << 20
