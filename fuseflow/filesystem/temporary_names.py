"""Names of temporary files and directories, which tell whether the process that made them still runs.

A name is `.TARGET.PID.PLACE.CHANCE`. `PLACE` stands for the machine and, in a container, for the container: a number of a process means
nothing elsewhere. So what a killed process left behind can be removed by the next one, and nothing else can.
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
    """Yield what processes that have ended left beside `target`, when they were about to replace it."""
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
