"""This module stores the object code of kernels in files, one for each kernel, named after the digest of the kernel's sources.

A file has the SHA-256 of all that follows in its first line, the version of Python and the digest of the bytecode that were
compiled in the second one, and then the object code. Machine code of other users is never run: a damaged file counts as missing,
and so does, in a user's cache, a file that another user owns or could have written.
"""

from __future__ import annotations

import hashlib
import logging
import os
import stat
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

SUFFIX = ".kernel"
OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH
_MOST_BYTES = 64 << 20
_log = logging.getLogger(__name__)
_FLAGS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)


@dataclass(frozen=True, slots=True)
class ObjectCode:
    """A compiled kernel: `code` is an object file that defines the symbol `symbol_of(digest)`. `bytecode` has the version of
    Python and the digest of the bytecode that were compiled."""

    code: bytes
    bytecode: str

    def to_bytes(self) -> bytes:
        """Return the contents of the kernel's file."""
        body = self.bytecode.encode() + b"\n" + self.code
        return hashlib.sha256(body).hexdigest().encode() + b"\n" + body

    @classmethod
    def from_bytes(cls, data: bytes) -> ObjectCode | None:
        """Return the kernel in the contents of a file, or None if the file has changed since it was written."""
        checksum, _, body = data.partition(b"\n")
        if hashlib.sha256(body).hexdigest().encode() != checksum:
            return None
        bytecode, _, code = body.partition(b"\n")
        return cls(code, bytecode.decode("ascii", "replace"))


def symbol_of(digest: str) -> str:
    """Return the symbol of the kernel whose sources have a digest."""
    return f"fuseflow_kernel_{digest[:32]}"


@dataclass(frozen=True, slots=True)
class ObjectStore:
    """A folder of kernels for one kind of processor. The kernels of a `private` store were written by this user's earlier runs,
    and must belong to the user; other stores are part of the package, and trusted as its modules are."""

    folder: Path
    private: bool

    def read(self, digest: str) -> ObjectCode | None:
        """Return the kernel with a digest, or None if the store has no trusted file of it."""
        path = self.folder / f"{digest}{SUFFIX}"
        try:
            if self.private and not _is_of_this_user_alone(self.folder.lstat()):
                return None
            file = os.open(path, os.O_RDONLY | _FLAGS)
        except OSError:
            return None
        with open(file, "rb") as stream:
            trusted = not self.private or _is_of_this_user_alone(os.fstat(file))
            kernel = ObjectCode.from_bytes(stream.read(_MOST_BYTES)) if trusted else None
        if kernel is None:
            _log.info("the kernel in `%s` is damaged, or others could have written it: it is compiled again", path)
        return kernel

    def write(self, digest: str, kernel: ObjectCode) -> bool:
        """Write a kernel to the store, and return whether that was possible. Other processes see the whole file or none."""
        try:
            if not self.is_writable():
                return False
            handle, name = tempfile.mkstemp(dir=self.folder)  # nobody else may read or write it
        except OSError:
            return False
        temporary = Path(name)
        try:
            with open(handle, "wb") as stream:
                stream.write(kernel.to_bytes())
            if not self.private:
                temporary.chmod(0o644)
            temporary.replace(self.folder / f"{digest}{SUFFIX}")
        except OSError:
            return False
        finally:
            temporary.unlink(missing_ok=True)
        return True

    def keep_only(self, digests: Iterable[str]) -> None:
        """Remove the kernels whose digest is not one of these."""
        names = {f"{digest}{SUFFIX}" for digest in digests}
        for file in self.folder.glob(f"*{SUFFIX}"):
            if file.name not in names:
                file.unlink(missing_ok=True)

    def is_writable(self) -> bool:
        """Return whether kernels can be written to the store so that a later run trusts them."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700 if self.private else 0o777)
            return os.access(self.folder, os.W_OK) and (not self.private or _is_of_this_user_alone(self.folder.lstat()))
        except OSError:
            return False


def _is_of_this_user_alone(status: os.stat_result) -> bool:
    """Return whether a file or folder belongs to this user, is no link, and no other user may write to it."""
    owner = status.st_uid == os.geteuid() if hasattr(os, "geteuid") else True  # Windows has other means, which keep caches apart
    return owner and not stat.S_ISLNK(status.st_mode) and not status.st_mode & OTHERS_MAY_WRITE
