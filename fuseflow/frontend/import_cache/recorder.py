"""The record of the files that a model reads while it is imported: Python tells its audit hooks about every file that Python code opens.

A record is complete for files that are opened by Python code. Three things cannot be kept by it, and are reasons to import the model anew
in every run: requests to the network or to another process, written files, and numbers that it draws from a generator that nobody
seeded. A temporary file that the model made itself is neither read nor written in this sense: its content follows from the rest.
"""

from __future__ import annotations

import hashlib
import importlib
import linecache
import os
import random
import socket
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import cache_from_source, source_from_cache
from itertools import islice
from types import FrameType
from typing import Any, Final

import numpy as np

from fuseflow.frontend.import_cache.request import code_reasons, is_installed

_OUTSIDE: Final = {
    "socket.": "uses the network",
    **dict.fromkeys(("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn"), "starts another program"),
    "sqlite3.connect": "opens a data base",
}
"""The meanings of the events that no record of files can keep, by the beginnings of their names."""
_HARMLESS: Final = frozenset({"socket.__new__", "socket.gethostname"})
_LISTINGS: Final = frozenset({"os.listdir", "os.scandir"})
_SYSTEM: Final = ("/proc/", "/sys/", "/dev/null")
"""The folders in which the system describes the machine to libraries."""
_WRITING: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_IMPORT_SYSTEM: Final = ("<frozen importlib", os.path.dirname(importlib.__file__) + os.sep)
"""Where code of the import system is from. Files that it finds in `sys.path` are part of the installation."""

_HASHED_BYTES: Final = 1 << 24
"""Up to this size, the state of a file is a digest of its content. It takes 10 ms. A larger file is known by its size and its times."""


class Recorder:
    """The paths that were opened or listed so far, each with its last change when it was opened first, and the `reasons` not to keep it.

    `temporary` has the paths of temporary files that were made meanwhile, and of the files that Python compiles from them.
    """

    def __init__(self) -> None:
        self.opened: dict[str, int] = {}
        self.temporary: set[str] = set()
        self.reasons: list[str] = []

    def record(self, event: str, arguments: tuple[Any, ...], frame: FrameType | None) -> None:
        """Record an event of Python's audit hooks that happened below `frame`."""
        if event == "open":
            self._open(arguments[0], arguments[2], frame)
        elif event in _LISTINGS:
            self._list(arguments[0], frame)
        elif event not in _HARMLESS and not _probes_at_import(event, arguments, frame):
            self.reasons += [reason for prefix, reason in _OUTSIDE.items() if event.startswith(prefix)]

    def states(self) -> dict[str, str]:
        """Return the state of every path. A path that changed since it was opened, or that has no state, becomes a reason, and so does
        code that may do something else when it runs again."""
        self.reasons += code_reasons([*self.opened, *sorted(self.temporary)])
        states: dict[str, str] = {}
        for path, change in self.opened.items():
            state = file_state(path)
            if state is None:
                self.reasons.append(f"reads `{path}`, which is no file")
            elif last_change(path) != change:
                self.reasons.append(f"read `{path}`, which was changed meanwhile")
            else:
                states[path] = state
        return states

    def _open(self, opened: object, flags: int, frame: FrameType | None) -> None:
        path = _absolute(opened)
        # PyTorch keeps tracebacks for its own messages, and a file is opened to show its lines in one.
        shows_source = linecache.__file__ in islice(_callers(frame), 4)
        if path is None or is_installed(path) or path.startswith(_SYSTEM) or shows_source:
            return
        if flags & os.O_EXCL and os.path.dirname(path) == tempfile.gettempdir():
            self.temporary |= {path, cache_from_source(path)}
        if path in self.temporary:
            return
        if flags & _WRITING:
            # A directory is opened for writing by who makes a temporary file in it, which is the next to be opened.
            if not _is_compiled(path) and path != tempfile.gettempdir():
                self.reasons.append(f"writes `{path}`")
            return
        self.opened.setdefault(path, last_change(path))
        if path.endswith(".pyc"):
            self._compiled(path)

    def _compiled(self, path: str) -> None:
        """Record the source of the compiled module `path`. Python does not open it while its time and size stay."""
        try:
            source = source_from_cache(path)
        except ValueError:  # a compiled module without a source is a file like others
            return
        del self.opened[path]  # it is written again when only the time of its source changed
        if not is_installed(source):  # it is compiled elsewhere with `PYTHONPYCACHEPREFIX`
            self.opened.setdefault(source, last_change(source))

    def _list(self, listed: object, frame: FrameType | None) -> None:
        path = _absolute("." if listed is None else listed)
        searches = frame is not None and frame.f_code.co_filename.startswith(_IMPORT_SYSTEM)
        searched = searches and path in [os.path.abspath(folder) for folder in sys.path]
        if path is not None and not (searched or is_installed(path + os.sep) or path == tempfile.gettempdir()):
            self.opened.setdefault(path, last_change(path))


@contextmanager
def recording() -> Iterator[Recorder]:
    """Record what happens in this process while the block runs."""
    recorder = Recorder()
    is_installed(tempfile.gettempdir())  # both look around once, which must not be recorded
    _hook()
    before = _global_generators()
    _active.append(recorder)
    try:
        yield recorder
    finally:
        _active.remove(recorder)
    if _global_generators() != before:
        recorder.reasons.append("draws from a generator that `--seed` does not seed: take `numpy.random.default_rng(seed)`")


_active: list[Recorder] = []
"""The recorders of this process. It is the one global value here, because an audit hook belongs to the process and cannot be removed."""


@cache
def _hook() -> None:
    """Install the audit hook of Python, once in a process."""
    sys.addaudithook(_audit)


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if _active and event.startswith(("open", "os.", "socket.", "subprocess.", "sqlite3.")):
        for recorder in list(_active):
            recorder.record(event, arguments, sys._getframe(1))


def _global_generators() -> tuple[object, ...]:
    name, keys, *rest = np.random.get_state()
    return random.getstate(), name, np.asarray(keys).tobytes(), *rest


def _callers(frame: FrameType | None) -> Iterator[str]:
    """Yield the file of the code of a frame, and the files of the frames that called it, the innermost first."""
    while frame is not None:
        yield frame.f_code.co_filename
        frame = frame.f_back


def _probes_at_import(event: str, arguments: tuple[Any, ...], frame: FrameType | None) -> bool:
    """Return whether an installed module, while it is imported, only asks the machine whether it has a kind of address. A stream
    socket yields no data before it is connected, which is another event, or accepts, which no module does at its import."""
    if event != "socket.bind" or arguments[0].type != socket.SOCK_STREAM:
        return False
    return next((file for file in _callers(frame) if not is_installed(file)), "").startswith("<frozen importlib")


def _is_compiled(path: str) -> bool:
    """Return whether a file is a module that Python compiled. `PYTHONPYCACHEPREFIX` says where these go."""
    prefix = sys.pycache_prefix
    return "__pycache__" in path or (prefix is not None and path.startswith(os.path.abspath(prefix) + os.sep))


def _absolute(path: object) -> str | None:
    """Return the absolute path, or None for the number of an open file."""
    if not isinstance(path, str | bytes | os.PathLike):
        return None
    return os.path.abspath(os.fsdecode(path))


def file_state(path: str) -> str | None:
    """Return the state of a file, or of a directory, which is the names in it. Return None for a path that is neither or cannot be read."""
    try:
        status = os.stat(path)
        if stat.S_ISDIR(status.st_mode):
            names = sorted(name for name in os.listdir(path) if name != "__pycache__")
            return hashlib.sha256("\0".join(names).encode("utf-8", "surrogateescape")).hexdigest()
        if not stat.S_ISREG(status.st_mode):
            return None
        if status.st_size > _HASHED_BYTES:
            return f"size {status.st_size}, changed {status.st_mtime_ns} {status.st_ctime_ns}"
        with open(path, "rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except (FileNotFoundError, NotADirectoryError):
        return "absent"
    except (OSError, ValueError):
        return None


def last_change(path: str) -> int:
    """Return the time at which a file was changed or replaced, in nanoseconds, or 0 if there is no such file."""
    try:
        status = os.stat(path)
        return status.st_ctime_ns if stat.S_ISREG(status.st_mode) else 0
    except (OSError, ValueError):
        return 0
