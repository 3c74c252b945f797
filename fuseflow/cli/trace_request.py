"""The file that `--trace` and `--trace-window` write."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fuseflow.cli.common import require_writable, write_out
from fuseflow.errors import UsageError
from fuseflow.explain.region_timelines import Tracer
from fuseflow.report.trace import trace_file, trace_line
from fuseflow.sim.events.log import CycleSpan

if TYPE_CHECKING:
    from fuseflow.machine.machine import Machine
    from fuseflow.run.callback_types import ProgressCallback


@dataclass(frozen=True, slots=True)
class TraceRequest:
    """The file of a trace, and the cycles that it should hold."""

    file: Path
    span: CycleSpan

    def tracer(self, machine: Machine, regions: int, progress: ProgressCallback | None) -> Tracer:
        return Tracer(machine, regions, self.span, progress)

    def write(self, tracer: Tracer, model: str) -> str:
        """Write the trace of a tracer to the file, and return a line about it. `model` is the name of the model in the trace."""
        write_out(trace_file(tracer, model, compress=self.file.suffix == ".gz"), self.file)
        return trace_line(tracer.regions, str(self.file))


def trace_request(file: Path | None, window: str | None) -> TraceRequest:
    if file is None:
        raise UsageError("`--trace-window` without `--trace`", hint="name the file: `--trace t.json.gz`")
    if not file.name.endswith((".json", ".json.gz")):
        raise UsageError(
            f"`--trace {file}` is no name of a trace", hint="it ends in .json.gz, or in .json to be left uncompressed"
        )
    require_writable(file, directory=False)
    return TraceRequest(file, CycleSpan() if window is None else _span(window))


def _span(text: str) -> CycleSpan:
    start, colon, end = text.replace(",", "").replace("_", "").partition(":")
    if not (colon and start.isdecimal() and end.isdecimal() and int(start) < int(end)):
        raise UsageError(f"`--trace-window {text}` is no span of cycles", hint="START:END, as in `--trace-window 1000:2000`")
    return CycleSpan(int(start), int(end))
