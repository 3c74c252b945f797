"""The cycles of a graph on a machine, put together from its stages, its FIFOs and its load of the memory: the bounds, and the cycles that
are expected from them together.

The *compute* bound is the cycles that the busiest node takes for its firings; no run takes fewer. The *imbalance* is how much
longer the largest stages of all batches take than that node. The *FIFO* bound is the loop of FIFOs that takes longest. The
*memory* bound is the cycles in which the memory moves all lines. The *control* bound is the time before the first tokens of nodes
and after their last: latencies along the graph, and whole workspaces where a reduction emits nothing before its fiber ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

import numpy as np

from fuseflow.estimate.fifo_loops import BusyLoops, LineWait, fewest_batches, hidden_work
from fuseflow.estimate.memory_load import (
    MemoryLoad,
    ScratchpadLoad,
    Writer,
    alternating_cycles,
    first_line_cycles,
    line_latency,
    preload_cycles,
    shared_line_cycles,
    transfer_cycles,
    uneven_lane_cycles,
    write_wait,
)
from fuseflow.estimate.memory_pace import MemoryPace, memory_pace
from fuseflow.estimate.pipeline_stages import Pipeline
from fuseflow.estimate.port_waits import answer_cycles, port_cycles, queue_cycles
from fuseflow.estimate.stream_flow import Number
from fuseflow.machine.machine import Machine
from fuseflow.memory.settings import IdealMemory

A_BATCH = 0.95
"""A graph stands still where FIFOs have room for less than this share of a batch: nodes hold a few tokens of it themselves."""


Limit = Literal["compute", "imbalance", "FIFOs", "control", "memory"]
"""The names of the bounds."""


@dataclass(frozen=True, slots=True)
class Bound:
    """The bounds of a graph, in cycles.

    `node` is the busiest node. `fifo` names the nodes between which FIFOs hold the graph up most, and `lanes` has the cycles of
    the busiest node that is not behind the lanes. `answers` is how long the busiest port waits for answers of the memory, and
    `crowded` how long ports wait for lines that many of them want at once, or for writes that come behind all reads. `behind` is
    the work that is left behind the lanes when these are done. `refresh` is the share of the time for which the graph stands
    still because the memory refreshes itself. `stands_still` says that it is expected never to end: FIFOs lack slots.
    """

    compute: Number
    control: Number
    memory: Number
    node: str
    refresh: float = 0.0
    imbalance: Number = 0
    fifos: Number = 0
    fifo: tuple[str, str] | None = None
    lanes: Number = 0
    answers: Number = 0
    crowded: Number = 0
    behind: Number = 0
    stands_still: bool = False

    @property
    def cycles(self) -> Number:
        """The cycles that the graph is expected to take."""
        work = max(self.stages, self.fifos, self.answers) / (1 - self.refresh)
        return max(work, self.memory, self.crowded) + max(self.control, self.behind)

    @property
    def stages(self) -> Number:
        """The cycles of the largest stages. In a graph with lanes whose batches are even, those of stages behind the lanes do not
        count."""
        return self.compute + self.imbalance if self.imbalance or not self.lanes else self.lanes

    @property
    def waits(self) -> Number:
        """The cycles in which the memory moves all lines, or in which one port or array waits for its lines if these are more."""
        return max(self.memory, self.answers, self.crowded)

    @property
    def limit(self) -> Limit:
        """The name of the largest bound."""
        bounds: dict[Limit, Number] = {
            "compute": self.compute,
            "imbalance": self.imbalance,
            "FIFOs": self.fifos,
            "memory": self.waits,
            "control": self.control,
        }
        return max(bounds, key=lambda name: bounds[name])


@dataclass(frozen=True, slots=True, eq=False)
class SlowestLoop:
    """The loop of FIFOs that holds the graph up most: the stages where its ways begin and end, and the cycles of the whole run by it."""

    begin: int
    end: int
    cycles: float


@dataclass(frozen=True, eq=False)  # without slots: cached properties are stored in the instance
class GraphCycles:
    """A graph on a machine: the latency and the occupied cycles of every stage, its imbalance, and its load of the memory.

    `emission_takes_time` says that stages behind a workspace wait for it to emit. It is False by the rules of `comal`.
    """

    machine: Machine
    pipeline: Pipeline
    latency: Sequence[float]
    occupied: Sequence[Number]
    load: MemoryLoad
    imbalance: Number
    emission_takes_time: bool
    chip: ScratchpadLoad = field(default_factory=ScratchpadLoad)

    @cached_property
    def pace(self) -> MemoryPace:
        """The speed of the memory."""
        return memory_pace(self.machine)

    @cached_property
    def first_tokens(self) -> tuple[list[float], dict[int, int]]:
        """The cycle in which the first token reaches each stage, and for each stage the one from which the last of these comes."""
        return self.pipeline.first_tokens(self.latency, self.occupied)

    @cached_property
    def ends(self) -> list[float]:
        """The cycles from the last firing of each stage to the end."""
        return self.pipeline.last_tokens(self.latency, self.occupied, self.emission_takes_time)

    @cached_property
    def whole(self) -> float:
        """The cycles from the beginning to the end, if each stage works on without a wait once it has its first token."""
        return max(map(sum, zip(self.first_tokens[0], self.occupied, self.ends, strict=True)))

    @cached_property
    def compute(self) -> Number:
        """The cycles that the firings of the busiest stage take."""
        return max(self.occupied)

    @cached_property
    def inside(self) -> Number:
        """The cycles of the busiest stage that is not behind the merge of the lanes; 0 in a graph without lanes."""
        behind = self.pipeline.behind
        return max((cycles for at, cycles in enumerate(self.occupied) if at not in behind), default=0) if behind else 0

    @cached_property
    def loaded_latency(self) -> list[float]:
        """The latency of each stage in the midst of the run, while its port waits for as many lines as it can. Lines that are fetched
        ahead are there."""
        latency = list(self.latency)
        for read in self.load.reads:
            if read.port.in_order:
                latency[read.stage] -= min(latency[read.stage], self.pace.latency)
            else:
                queued = queue_cycles(read, self.compute, self.pace, self.machine.first_depth)
                latency[read.stage] += queued or line_latency(self.load, read, self.pace) - self.pace.latency
        return latency

    @cached_property
    def line_waits(self) -> list[LineWait]:
        """The waits of each stage for lines of the memory that are not fetched ahead."""
        waits = [LineWait()] * len(self.latency)
        for read in self.load.reads:
            if not read.port.in_order:
                (cycles, in_all), latency = waits[read.stage], line_latency(self.load, read, self.pace)
                waits[read.stage] = LineWait(cycles + latency, in_all + latency * read.most)
        return waits

    @cached_property
    def answers(self) -> float:
        """The cycles for which the busiest port waits for answers of the memory."""
        return answer_cycles(self.load, self.written_alone, self.pace)

    @property
    def written_alone(self) -> Number:
        """The lines that are written one by one, in other rows of the memory than the lines that are read. There are none behind
        a workspace: whole rows of a result are written at once there, which finds rows of the memory open."""
        return 0 if self.pipeline.workspace < len(self.pipeline.stages) else self.load.elsewhere

    def bound(self, around: BusyLoops | None, node: str) -> Bound:
        """Return the bounds of the graph, given its loops of FIFOs, or None if no FIFO is ever full. `node` is its busiest node."""
        control = self.whole - self.compute
        ways = () if around is None else (self.slowest_loop(around), self.slowest_turns(around), self.latest_start(around))
        slowest = max((held_up for held_up in ways if held_up), key=lambda held_up: held_up.cycles, default=None)
        fifos = max(0.0, slowest.cycles - control) if slowest else 0.0
        stages = self.pipeline.stages
        first = Bound(
            self.compute,
            control,
            0.0,
            node,
            imbalance=self.imbalance,
            fifos=fifos,
            fifo=(stages[slowest.begin].node.name, stages[slowest.end].node.name) if slowest and fifos else None,
            lanes=self.inside,
            answers=self.answers,
            stands_still=self.machine.fifo_depth != "auto"
            and around is not None
            and fewest_batches(around.shares, around.longest) < A_BATCH,
        )
        whole = self._with_memory(first, around)
        crowded = max(whole.crowded, self.chip.accesses(self.machine))
        control, memory = whole.control + self.chip.transfers(self.machine), whole.memory + self.chip.around(self.machine)
        return replace(whole, control=control, memory=memory, crowded=crowded)

    def slowest_loop(self, around: BusyLoops) -> SlowestLoop | None:
        """Return the loop of FIFOs by which the run takes longest, from the first token of the run to the last. None if there is
        no loop."""
        cycles = around.cycles
        if not cycles.any():
            return None
        whole = np.where(cycles > 0, cycles + np.asarray(self.first_tokens[0]) + np.asarray(self.ends)[:, None], 0.0)
        end, begin = divmod(int(whole.argmax()), len(whole))
        return SlowestLoop(begin, end, float(whole[end, begin]))

    def slowest_turns(self, around: BusyLoops) -> SlowestLoop | None:
        """Return the lanes that wait longest for each other's turns, from the first token at their beginning to the last behind
        their end; None if all have room for their work before their turn."""
        slowest: SlowestLoop | None = None
        for at, stage in enumerate(self.pipeline.stages):
            if stage.turns is None:
                continue
            merges, lanes, turns = at in self.pipeline.merges, stage.turns.lanes, stage.turns.number
            waiting = 0.0 if merges else lanes * turns * float(around.shares[at, self.pipeline.feeder(at)])
            for other in self.pipeline.lanes_at(at):
                begin, end = (other, at) if merges else (at, other)
                ahead, own = waiting + turns * float(around.shares[end, begin]), self.pipeline.stages[other]
                in_turn = float(own.emitted if own.batches and merges else self.occupied[other])  # filling a workspace is outside
                whole = lanes * in_turn * (1 - ahead) + self.first_tokens[0][begin] + self.ends[end]
                if ahead < 1 and (slowest is None or whole > slowest.cycles):
                    slowest = SlowestLoop(begin, end, whole)
        return slowest

    def latest_start(self, around: BusyLoops) -> SlowestLoop | None:
        """Return two stages: the first has most work left when the first token reaches the second on another way. Until then it
        can only fill the FIFOs between them. None if no stage has work left then.

        Example: a sum over all of `A x` is to divide each of its entries, which are computed a second time for that. The second
        time begins behind the first, since 64 slots hold little of it.
        """
        latest: SlowestLoop | None = None
        occupied, (starts, last) = np.asarray(self.occupied, dtype=np.float64), self.first_tokens
        for end, late in last.items():
            if end in self.pipeline.merges:  # it begins with a token of one input
                continue
            ahead = around.shares[end]
            apart = (ahead < 1) & ~np.isfinite(around.shares[late])
            apart[[late, end]] = False
            left = np.where(apart, occupied * (1 - np.where(apart, ahead, 0.0)), 0.0)
            begin = int(left.argmax())
            cycles = starts[end] + float(left[begin]) + self.ends[end]
            if left[begin] and (latest is None or cycles > latest.cycles):
                latest = SlowestLoop(begin, end, cycles)
        return latest

    def _with_memory(self, bound: Bound, around: BusyLoops | None) -> Bound:
        """Return the bounds with the time that the memory takes for reads and writes added."""
        load, pace, behind_lanes = self.load, self.pace, self.pipeline.behind
        if isinstance(self.machine.memory, IdealMemory) or not (load.reads or load.written):
            return replace(bound, lanes=0)  # stages behind the lanes wait for no memory
        base = max(bound.stages, bound.fifos, bound.answers)
        refresh = self._refresh(base, around)
        crowded, preloading = shared_line_cycles(load, pace), preload_cycles(load, pace)
        # Lines that are written behind the lanes come later.
        transfer = transfer_cycles(load, load.lines_read if behind_lanes else load.lines_read + load.written, pace)
        reading = max(base / (1 - refresh), transfer, crowded)
        behind: Number = 0
        if behind_lanes:
            left = max(self.occupied[at] for at in behind_lanes)
            wait = write_wait(load, reading, pace, "behind lanes")
            done = min(1.0, reading * pace.outstanding / max(1, wait * load.most_written))
            behind = max(left * (1 - done), bound.control + left / (1 - refresh) - reading)
        elif load.most_written:
            later = transfer - preloading
            uneven = uneven_lane_cycles(load, base, later)
            alternating = alternating_cycles(load, pace, later, self.pipeline.workspace)
            crowded = max(crowded, self._writing(reading), uneven, alternating)
        control = bound.control + preloading + first_line_cycles(load, pace)
        return replace(bound, control=control, memory=transfer, refresh=refresh, crowded=crowded, behind=behind)

    def _writing(self, reading: float) -> float:
        """Return the cycles for which the writer of most lines waits for answers, 0 if it ends within the cycles of `reading`. A
        writer waits longer the more lines are read in a cycle, and fewer are read in a cycle the longer it waits."""
        writer: Writer = "in lanes" if self.load.in_lanes else "alone"

        def waits(cycles: float) -> float:
            return self.load.most_written * write_wait(self.load, cycles, self.pace, writer) / self.pace.outstanding

        low, high = reading, reading
        while waits(high) > high:
            low, high = high, 2 * high
        if high == reading:
            return 0.0
        for _ in range(20):
            middle = (low + high) / 2
            low, high = (middle, high) if waits(middle) > middle else (low, middle)
        return high

    def _refresh(self, base: Number, around: BusyLoops | None) -> float:
        """Return the share of the time for which the graph stands still because the memory refreshes itself: less than the memory
        does, if FIFOs and lines that were fetched ahead keep stages going. `base` are the cycles without refreshes."""
        if self.pace.refresh is None:
            return 0.0
        pause, period = self.pace.refresh.pause, self.pace.refresh.period
        longest = 0.0
        for read in self.load.reads:
            if read.most < base / period:  # few refreshes meet it
                continue
            hidden = hidden_work(around.shares, read.stage) * base if around is not None else np.inf
            if read.port.in_order:
                hidden += self.pace.prefetch * base / read.most
            busy, rate = port_cycles(read, self.written_alone, self.pace), read.most / max(1, base)
            # What a port loses it makes up where it is idle.
            late = period - (period - pause(0.0, rate)) * base / busy if busy else 0.0
            longest = max(longest, pause(hidden, rate), late)
        if self.load.in_lanes:
            whole = longest * (base / (1 - longest / period) // period)  # such runs are short, and some meet no refresh
            return float(whole / (base + whole)) if base else 0.0
        return longest / period
