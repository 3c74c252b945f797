"""A terminal for tests: the command runs in a process of its own, on a pseudo-terminal of some columns."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys


def shown(columns: int, *words: str, messages: bool = False, status: int = 0, **environment: str) -> str:
    """Return what `fuseflow` shows on a terminal of so many columns: its results, or its `messages` and bars on standard error."""
    ours, theirs = pty.openpty()
    settings = {**os.environ, "COLUMNS": str(columns), "TERM": "xterm", **environment}
    out, err = (subprocess.DEVNULL, theirs) if messages else (theirs, subprocess.DEVNULL)
    with subprocess.Popen([sys.executable, "-m", "fuseflow", *words], stdout=out, stderr=err, env=settings) as run:
        os.close(theirs)
        parts = list[bytes]()
        while True:
            try:
                part = os.read(ours, 1 << 16)
            except OSError:  # the other side is closed
                break
            if not part:
                break
            parts.append(part)
    os.close(ours)
    assert run.returncode == status
    return b"".join(parts).decode().replace("\r\n", "\n")


def plain(text: str) -> str:
    """Return a text without the escape sequences that style it and move the cursor."""
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text)
