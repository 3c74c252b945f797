"""Traces: what the format asks for, that bars do not overlap, that they add up to the statistics, and that bytes repeat."""

from __future__ import annotations

import gzip
import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

import fuseflow as ff
from fuseflow.errors import UsageError
from fuseflow.explain.region_timelines import Tracer
from fuseflow.report.trace import trace_bytes, trace_file, trace_line
from fuseflow.run.result import Result
from fuseflow.schedule import Schedule
from fuseflow.sim.events import timeline
from fuseflow.sim.events.log import CycleSpan

EXAMPLE = Path(__file__).parents[2] / "docs" / "example"


def traced(machine: str = "rda", span: CycleSpan | None = None, fuse: str = "none") -> tuple[Result, Tracer]:
    schedule = Schedule.fuse(fuse)
    compiled = ff.compile(EXAMPLE / "spmm.ein", tensors=EXAMPLE / "tensors.yaml", machine=machine, schedule=schedule)
    tracer = Tracer(compiled.machine, len(compiled.regions), span)
    return compiled.run(check=False, watch=tracer.watch), tracer


def events(tracer: Tracer) -> list[dict[str, Any]]:
    return json.loads(gzip.decompress(trace_file(tracer, "spmm", compress=True)))["traceEvents"]


@pytest.mark.parametrize("detail", [timeline.DETAIL, 0])
@pytest.mark.parametrize("machine", ["ideal", "rda", "comal"])
def test_every_event_is_of_the_format(machine: str, detail: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(timeline.Timeline.__init__, "__defaults__", (1, detail))
    result, tracer = traced(machine)
    names: dict[tuple[int, int], str] = {}
    busy, ends = Counter[tuple[int, str]](), defaultdict[tuple[int, int], int](int)
    for event in events(tracer):
        assert event.keys() >= {"ph", "ts", "pid", "tid", "name"} and event["ph"] in ("M", "X", "C")
        assert isinstance(event["ts"], int) and event["ts"] >= 0
        track = event["pid"], event["tid"]
        if event["name"] == "thread_name":
            names[track] = event["args"]["name"]
        if event["ph"] == "X":
            assert event["ts"] >= ends[track] and event["dur"] > 0, "bars of a track overlap"
            ends[track] = event["ts"] + event["dur"]
            if "asks" not in names[track]:
                busy[event["pid"], names[track].split(" ")[0]] += event["args"]["firings"]
        if event["ph"] == "C":
            assert all(isinstance(value, int | float) and value >= 0 for value in event["args"].values())
    expected = {(pid, n.name): n.busy for pid, r in enumerate(result.regions, 1) for n in r.simulation.nodes}
    assert busy == expected
    assert {r.timeline.exact for r in tracer.regions} == {detail > 0}


@pytest.mark.parametrize("detail", [timeline.DETAIL, 0])
@pytest.mark.parametrize("machine", ["ideal", "rda", "comal"])
def test_viewers_show_nodes_in_graph_order_and_nothing_outside_its_region(
    machine: str, detail: int, monkeypatch: pytest.MonkeyPatch
):
    """Perfetto orders threads by number, and takes one with the number of a process for its main thread, which it puts first."""
    monkeypatch.setattr(timeline.Timeline.__init__, "__defaults__", (1, detail))
    result, tracer = traced(machine, fuse="none")
    ends = {pid: (r.start, r.start + r.timeline.cycles) for pid, r in enumerate(tracer.regions, 1)}
    assert len(ends) > 1
    counters = defaultdict[tuple[int, str], int](int)
    threads, named = set[tuple[int, int]](), set[tuple[int, int]]()
    for event in events(tracer):
        pid, tid = event["pid"], event["tid"]
        if event["name"] == "thread_name":
            assert tid not in ends and (pid, tid) not in named
            named.add((pid, tid))
        if event["ph"] == "M":
            continue
        start, end = ends[pid]
        end += machine == "comal"  # whose count leaves the last firing out
        assert start <= event["ts"] <= event["ts"] + event.get("dur", 0) <= end
        if event["ph"] == "X":
            threads.add((pid, tid))
        else:
            assert event["ts"] >= counters[pid, event["name"]], "a counter goes back in time"
            counters[pid, event["name"]] = event["ts"]
    assert threads <= named
    assert result.cycles == max(end for _, end in ends.values())
    for pid, region in enumerate(result.regions, 1):
        names = [e["args"]["name"] for e in events(tracer) if e["name"] == "thread_name" and e["pid"] == pid]
        nodes = [node.name for node in region.simulation.nodes]
        assert [n for n in dict.fromkeys(name.split(" ")[0] for name in names) if n in nodes] == nodes


def test_regions_follow_each_other():
    result, tracer = traced()
    assert [r.start for r in tracer.regions] == [sum(r.cycles for r in result.regions[:k]) for k in range(len(result.regions))]


def test_the_same_run_gives_the_same_bytes():
    assert trace_file(traced()[1], "spmm", compress=True) == trace_file(traced()[1], "spmm", compress=True)


def test_a_window_may_leave_regions_out():
    _, whole = traced()
    second = whole.regions[1]
    _, tracer = traced(span=CycleSpan(second.start + 5, second.start + 9))
    assert [r.name for r in tracer.regions] == [second.name]
    assert all(second.start + 5 <= e["ts"] and e["ts"] + e["dur"] <= second.start + 9 for e in events(tracer) if e["ph"] == "X")


def test_a_window_behind_the_run_is_refused():
    result, tracer = traced(span=CycleSpan(10**6, 10**6 + 1))
    with pytest.raises(UsageError, match=f"(?s)nothing runs .*{result.cycles:,} cycles"):
        trace_file(tracer, "spmm", compress=True)


def test_what_is_said_of_it():
    _, tracer = traced()
    assert trace_line(tracer.regions, "t.json") == "trace of every firing: t.json"
    for region in tracer.regions:
        region.timeline.count = timeline.DETAIL + 1
    assert "in windows of cycles (" in trace_line(tracer.regions, "t.json")


def test_without_compression_it_is_plain_json():
    _, tracer = traced()
    assert json.loads(trace_bytes(tracer.regions, {}, compress=False))["traceEvents"] == events(tracer)
