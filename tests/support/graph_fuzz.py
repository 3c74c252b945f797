"""Random graphs on both simulators, by the seed: what each said, and the differing ones made smaller."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import hop_stages
import narrows
import nm_levels
import port_turns
import preloads
import reuse_buffers
import scratchpads
import single_floats
from bitmaps import in_graph
from engines import LIMITS, Found, differences, on_engine, on_reference
from lane_written import random_lane_case
from memories import at_dram, at_memory, contradictions
from random_graphs import Case, Size, describe, random_case, shrink

from fuseflow.errors import SimulationError
from fuseflow.samml.verify import verify
from fuseflow.sim.outcome.deadlock import Deadlock
from fuseflow.sim.outcome.statistics import Outcome

CHUNK = 25
"""Graphs that a job takes at a time."""


@dataclass(frozen=True)
class Seen:
    """What both said of one seed."""

    seed: int
    firings: int
    deadlock: bool
    lines: tuple[str, ...]


KINDS = ("bitmap", "nm", "select", "narrow", "single", "lanes", "dram", "hops", "turns")
"""What graphs may have beside what all have."""


def drawn(seed: int, size: Size | None = None, **kinds: bool) -> Case:
    """The case of a seed; of two one has a memory that takes time, and of these every second has reuse buffers, every fourth preloads,
    and another fourth places in a scratchpad.
    Of `KINDS`, `bitmap`: with bitmap levels (`bitmaps`). `nm`: with n:m levels (`nm_levels`). `select`: with a `select`. `narrow`: with
    narrow element types (`narrows`). `single`: on a machine that computes in 32-bit floats (`single_floats`). `lanes`: instead of all
    that, a dense result that is written in lanes (`lane_written`). `dram`: each at a DRAM of any preset or table. `hops`: with hops on its
    edges (`hop_stages`). `turns`: with turns at ports (`port_turns`)."""
    assert kinds.keys() <= {*KINDS}, kinds
    on = {kind for kind in kinds if kinds[kind]}
    if "lanes" in on:
        return random_lane_case(seed)
    case = random_case(seed, size, "select" in on)
    case = in_graph(case, seed) if "bitmap" in on else case
    case = nm_levels.in_graph(case, seed) if "nm" in on else case
    case = narrows.in_graph(case, seed) if "narrow" in on else case
    case = single_floats.in_graph(case) if "single" in on else case
    case = at_dram(case, seed) if "dram" in on else at_memory(case, seed) if seed % 2 else case
    case = preloads.in_graph(case, seed) if seed % 8 == 5 else case
    case = scratchpads.in_graph(case, seed) if seed % 8 == 1 else case
    case = reuse_buffers.in_graph(case, seed) if seed % 4 == 3 else case
    case = hop_stages.in_graph(case, seed) if "hops" in on else case
    return port_turns.in_graph(case, seed) if "turns" in on else case


def compare(case: Case, seed: int) -> tuple[Found, tuple[str, ...]]:
    """What the reference says, and in what the engine differs, or a run with a process for each hop. A graph that is refused, or ends
    otherwise than in its outputs or a deadlock, is a fault too."""
    verify(case.graph)
    expected = on_reference(case)
    lines = [*differences(case, expected, on_engine(case, LIMITS[seed % len(LIMITS)])), *contradictions(expected)]
    lines += hop_stages.differences_from_stages(case, expected) if case.graph.hops else []
    if isinstance(expected, SimulationError):
        lines.insert(0, f"reference: {expected}")
    return expected, tuple(lines)


def check(seed: int, size: Size | None, **kinds: bool) -> Seen:
    try:
        expected, lines = compare(drawn(seed, size, **kinds), seed)
    except Exception as error:  # the generator itself, or a traceback of a simulator
        return Seen(seed, 0, False, (f"{type(error).__name__}: {error}",))
    firings = sum(node.firings for node in expected.nodes) if isinstance(expected, Outcome) else 0
    return Seen(seed, firings, isinstance(expected, Deadlock), lines)


def outcomes(seeds: range, size: Size | None, jobs: int, **kinds: bool) -> Iterator[Seen]:
    """In the order of the seeds."""
    one = partial(check, size=size, **kinds)
    if jobs == 1:
        yield from map(one, seeds)
        return
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        yield from pool.imap(one, seeds, CHUNK)


def smaller(seed: int, size: Size | None, **kinds: bool) -> str:
    """The case of a seed that differs, as a test to paste."""
    return describe(shrink(drawn(seed, size, **kinds), lambda case: differs(case, seed)))


def differs(case: Case, seed: int) -> bool:
    try:
        return bool(compare(case, seed)[1])
    except Exception:
        return True
