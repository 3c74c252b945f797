"""The options `--trace` and `--trace-window`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from fuseflow.cli.common import FILE


def trace_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a trace, and pass them on as `trace`, a `TraceRequest` or None."""

    @click.option("--trace", metavar="FILE", type=FILE, help="Write a trace that Perfetto opens: t.json.gz, or t.json.")
    @click.option("--trace-window", metavar="START:END", help="Trace these cycles alone, firing by firing if they are few.")
    @functools.wraps(command)
    def build(*args: Any, trace: Path | None, trace_window: str | None, **kwargs: Any) -> Any:
        from fuseflow.cli.trace_request import trace_request  # `--help` does without

        return command(*args, trace=trace_request(trace, trace_window), **kwargs)

    return build
