"""A run as a trace that Perfetto and Chrome open. A region is a process, a node is a track, and FIFOs and memory are counters.

The file follows the Trace Event Format: it has metadata, complete events that do not overlap in a thread, and counters of a process. One
microsecond of the viewer is one cycle. The same run gives the same bytes.
"""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

from fuseflow.errors import UsageError
from fuseflow.explain.region_timelines import TracedRegion, Tracer

Event = dict[str, Any]


def trace_file(tracer: Tracer, model: str, compress: bool) -> bytes:
    """Return the trace of a tracer as the bytes of a file, packed if `compress`, that names the model. Raises `UsageError` if
    nothing runs in its cycles."""
    if not tracer.regions:
        raise UsageError(
            f"nothing runs in cycles {tracer.span.start:,} to {tracer.span.end:,}",
            hint=f"the run takes {tracer.cycles:,} cycles",
        )
    return trace_bytes(tracer.regions, {"model": model, "machine": tracer.machine.name}, compress)


def trace_bytes(regions: Sequence[TracedRegion], settings: Mapping[str, str], compress: bool = True) -> bytes:
    """Return the trace as a file, with `settings` as the metadata of the run."""
    out = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=out, mtime=0) if compress else nullcontext(out) as file:
        head = json.dumps({**settings, "unit": "1 us is 1 cycle"})
        file.write(f'{{"displayTimeUnit":"ms","otherData":{head},"traceEvents":[\n'.encode())
        for k, event in enumerate(trace_events(regions)):
            file.write((",\n" if k else "").encode() + json.dumps(event, separators=(",", ":")).encode())
        file.write(b"\n]}\n")
    return out.getvalue()


def trace_events(regions: Sequence[TracedRegion]) -> Iterator[Event]:
    """Yield the events of the trace format, region after region."""
    first = len(regions) + 1  # a thread that has the number of a process would be its main one, and stand above all others
    for pid, region in enumerate(regions, start=1):
        yield from _names(pid, first, region)
        yield from _firings(pid, first, region)
        yield from _fifos(pid, region)
        yield from _memory(pid, region)


def _names(pid: int, first: int, region: TracedRegion) -> Iterator[Event]:
    yield _about(pid, 0, "process_name", name=f"{region.name}: {region.timeline.cycles:,} cycles")
    yield _about(pid, 0, "process_sort_index", sort_index=pid)
    for tid, track in enumerate(region.timeline.topology.tracks, start=first):
        if track.relay:
            continue
        yield _about(pid, tid, "thread_name", name=track.name)
        yield _about(pid, tid, "thread_sort_index", sort_index=tid)


def _about(pid: int, tid: int, event: str, **args: Any) -> Event:
    return {"ph": "M", "name": event, "pid": pid, "tid": tid, "ts": 0, "args": args}


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
        into = region.timeline.topology.edges[edge]
        for cycle, level in zip(cycles.tolist(), levels.tolist(), strict=True):
            yield _counter(pid, f"FIFO {into.node}.{into.input}", region.start + cycle, tokens=level)


def _memory(pid: int, region: TracedRegion) -> Iterator[Event]:
    if not region.timeline.topology.ports:
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
    """Return a line about the content of the trace."""
    coarse = [r for r in regions if not r.timeline.exact]
    if not coarse:
        return f"trace of every firing: {file}"
    where = ", ".join(f"{r.name} {r.timeline.window:,}" for r in coarse)
    return f"trace in windows of cycles ({where}): {file}; `--trace-window START:END` shows every firing of a short one"
