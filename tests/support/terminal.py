"""A terminal for tests: the command runs in a process of its own, on a pseudo-terminal of some columns, or here, where it is told that it
has one."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from click.testing import CliRunner
from rich.progress import Progress

from fuseflow.cli.main import main


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


def messages_here(patch: pytest.MonkeyPatch, *words: str) -> str:
    """Return the messages and bars of a command that runs in this process and takes standard error for a terminal. Bars are drawn at every
    change: here, where all is imported, most commands end before they are drawn by the clock."""
    for change in ("update", "reset"):
        patch.setattr(Progress, change, _drawn(getattr(Progress, change)))
    result = CliRunner().invoke(main, words, env={"FORCE_COLOR": "1", "TERM": "xterm", "COLUMNS": "60"})
    assert result.exit_code == 0, result.output
    return result.stderr


def _drawn(change: Callable[..., None]) -> Callable[..., None]:
    def changed(bar: Progress, *values: Any, **named: Any) -> None:
        change(bar, *values, **named)
        bar.refresh()

    return changed


def plain(text: str) -> str:
    """Return a text without the escape sequences that style it and move the cursor."""
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text)
