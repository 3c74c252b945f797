"""A store of values that are kept from run to run, one file for each request. Files that were not used for the longest time are removed.

Imports of models are kept, and the cuts that were chosen for programs.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fuseflow.errors import UsageError
from fuseflow.private_files import cache_root, private_directory, read_private, write_private

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
        """Remove the files that were not used for the longest time, until the rest fits the limit. Another process may remove
        them, too."""
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
