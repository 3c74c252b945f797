"""A run as a trace that Perfetto and Chrome open: one process a region, one track a node, counters for FIFOs and memory.

The Trace Event Format: metadata, complete events that do not overlap in a thread, counters of a process. One microsecond of the viewer is
one cycle. The same run gives the same bytes.
"""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

from fuseflow.compiler import CompiledRegion, Progress
from fuseflow.errors import UsageError
from fuseflow.samml.nodes import Graph
from fuseflow.sim import Machine, Simulation
from fuseflow.sim.events.log import NEVER, CycleSpan
from fuseflow.sim.events.timeline import Timeline
from fuseflow.sim.replay import find_timeline
from fuseflow.tensors import Tensor

Event = dict[str, Any]


@dataclass(frozen=True, slots=True)
class TracedRegion:
    """The timeline of a region that begins in cycle `start` of the trace."""

    name: str
    start: int
    timeline: Timeline


class Tracer:
    """Traces region after region as they run; one that repeats stands once. `span`: the cycles to show, from the first region's start on;
    `regions`: how many there are at most."""

    def __init__(
        self, machine: Machine, regions: int = 1, span: CycleSpan | None = None, progress: Progress | None = None
    ) -> None:
        self.machine, self.count, self.span, self.progress = machine, regions, span or CycleSpan(), progress
        self.cycles = 0
        self.regions: list[TracedRegion] = []

    def watch(self, region: CompiledRegion, read: Mapping[str, Tensor], simulation: Simulation) -> None:
        self.add(region.name, region.graph, read, simulation)

    def add(self, name: str, graph: Graph, read: Mapping[str, Tensor], simulation: Simulation) -> None:
        """Run a graph again that has run, if it runs in a cycle that is to be shown."""
        start = self.cycles
        self.cycles += simulation.cycles
        span = CycleSpan(max(self.span.start - start, 0), self.span.end - start if self.span.end < self.cycles else NEVER)
        if self.span.end <= start or span.start >= simulation.cycles:
            return
        report = None if self.progress is None else partial(self.progress, f"{name} (trace)")
        timeline = find_timeline(graph, read, self.machine, simulation, lambda: Timeline(span, self.count), report)
        self.regions.append(TracedRegion(name, start, timeline))

    def bytes(self, model: str, compress: bool) -> bytes:
        """The trace as a file. Raises `UsageError` if nothing runs in the cycles that it is of."""
        if not self.regions:
            raise UsageError(
                f"nothing runs in cycles {self.span.start:,} to {self.span.end:,}", hint=f"the run takes {self.cycles:,} cycles"
            )
        return trace_bytes(self.regions, {"model": model, "machine": self.machine.name}, compress)


def trace_bytes(regions: Sequence[TracedRegion], settings: Mapping[str, str], compress: bool = True) -> bytes:
    """The trace as a file. `settings`: what to say about the run."""
    out = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=out, mtime=0) if compress else nullcontext(out) as file:
        head = json.dumps({**settings, "unit": "1 us is 1 cycle"})
        file.write(f'{{"displayTimeUnit":"ms","otherData":{head},"traceEvents":[\n'.encode())
        for k, event in enumerate(trace_events(regions)):
            file.write((",\n" if k else "").encode() + json.dumps(event, separators=(",", ":")).encode())
        file.write(b"\n]}\n")
    return out.getvalue()


def trace_events(regions: Sequence[TracedRegion]) -> Iterator[Event]:
    """The events of the trace format, region after region."""
    first = len(regions) + 1  # a thread that has the number of a process would be its main one, and stand above all others
    for pid, region in enumerate(regions, start=1):
        yield from _names(pid, first, region)
        yield from _firings(pid, first, region)
        yield from _fifos(pid, region)
        yield from _memory(pid, region)


def _names(pid: int, first: int, region: TracedRegion) -> Iterator[Event]:
    yield _about(pid, 0, "process_name", name=f"{region.name}: {region.timeline.cycles:,} cycles")
    yield _about(pid, 0, "process_sort_index", sort_index=pid)
    for tid, track in enumerate(region.timeline.cast.tracks, start=first):
        if track.relay:
            continue
        yield _about(pid, tid, "thread_name", name=track.name)
        yield _about(pid, tid, "thread_sort_index", sort_index=tid)


def _about(pid: int, tid: int, what: str, **args: Any) -> Event:
    return {"ph": "M", "name": what, "pid": pid, "tid": tid, "ts": 0, "args": args}


def _firings(pid: int, first: int, region: TracedRegion) -> Iterator[Event]:
    for track, burst in region.timeline.bursts():
        args = {"firings": burst.firings}
        name = "busy"
        if burst.step == 0:
            name = f"{100 * burst.firings / burst.cycles:.0f} % busy"
        elif burst.step > 1:
            args["interval"] = burst.step
        yield {
            "ph": "X", "name": name, "pid": pid, "tid": first + track, "ts": region.start + burst.start, "dur": burst.cycles,
            "args": args,
        }  # fmt: skip


def _fifos(pid: int, region: TracedRegion) -> Iterator[Event]:
    for edge, cycles, levels in region.timeline.levels():
        into = region.timeline.cast.edges[edge]
        for cycle, level in zip(cycles.tolist(), levels.tolist(), strict=True):
            yield _counter(pid, f"FIFO {into.node}.{into.input}", region.start + cycle, tokens=level)


def _memory(pid: int, region: TracedRegion) -> Iterator[Event]:
    if not region.timeline.cast.ports:
        return
    for direction, width, counts in region.timeline.rates():
        last = 0
        for window, moved in enumerate([*counts.tolist(), 0]):
            if moved != last:
                start = min(region.timeline.span.start + window * width, region.timeline.end)
                yield _counter(pid, f"bytes {direction} a cycle", region.start + start, bytes=round(moved / width, 3))
            last = moved


def _counter(pid: int, name: str, cycle: int, **args: float) -> Event:
    return {"ph": "C", "name": name, "pid": pid, "tid": 0, "ts": cycle, "args": args}


def trace_line(regions: Sequence[TracedRegion], file: str) -> str:
    """What the trace holds, in one line."""
    coarse = [r for r in regions if not r.timeline.exact]
    if not coarse:
        return f"trace of every firing: {file}"
    where = ", ".join(f"{r.name} {r.timeline.window:,}" for r in coarse)
    return f"trace in windows of cycles ({where}): {file}; `--trace-window START:END` shows every firing of a short one"
