"""What benchmarks share: a timer, the machine on which one ran, its figures as JSON, and a summary."""

from __future__ import annotations

import json
import os
import platform
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import click

JSON = click.option("--json", "output", help="Write the figures as JSON to a file, or `-`.")


def seconds(run: Callable[[], object], clock: Callable[[], float] = time.process_time) -> float:
    """Return the processor time that something takes, or its time on another clock."""
    start = clock()
    run()
    return clock() - start


def host() -> dict[str, Any]:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    cpu = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.processor())
    return {"cpu": cpu, "cores": os.cpu_count(), "python": platform.python_version(), "system": platform.system()}


def finish(benchmark: str, output: str | None, lines: Iterable[str], figures: dict[str, Any], slow: Sequence[str] = ()) -> None:
    """Write the figures to a file, and print the lines, or the figures for `-`. What is slow ends the process with status 1."""
    text = json.dumps({"benchmark": benchmark, "machine": host(), **figures}, indent=1)
    if output not in (None, "-"):
        Path(output).write_text(f"{text}\n", encoding="utf-8")
    for line in [text] if output == "-" else lines:
        click.echo(line)
    for line in slow:
        click.echo(line, err=True)
    if slow:
        sys.exit(1)
