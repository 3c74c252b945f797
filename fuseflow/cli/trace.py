"""The options `--trace` and `--trace-window`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from fuseflow.cli.common import FILE, bundled

if TYPE_CHECKING:
    from fuseflow.cli.trace_request import TraceRequest


def _request(trace: Path | None, trace_window: str | None) -> TraceRequest | None:
    if trace is None and trace_window is None:
        return None
    from fuseflow.cli.trace_request import trace_request  # takes long to load, and a run without a trace does without

    return trace_request(trace, trace_window)


trace_options = bundled(
    "trace",
    _request,
    click.option("--trace", metavar="FILE", type=FILE, help="Write a trace that Perfetto opens: t.json.gz, or t.json."),
    click.option("--trace-window", metavar="START:END", help="Trace these cycles alone, firing by firing if they are few."),
)
"""Adds the options of a trace, and passes them on as `trace`, a `TraceRequest` or None."""
