"""Names of temporary files and directories, which tell whether the process that made them still runs.

A name is `.TARGET.PID.PLACE.CHANCE`. `PLACE` identifies the machine and, in a container, the container: the number of a process
means nothing elsewhere. So the next process can remove the files that a killed process left behind, and no others.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

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
