"""A graph as a pipeline of stages: what its nodes hold back and pass on, on any machine. Nodes that are the same but for the lane
are one stage, with the numbers of the lane that has most to do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import NamedTuple

import numpy as np

from fuseflow.estimate.fifo_loops import Fifo, FifoLoops, Matrix
from fuseflow.estimate.graph_counts import GraphCounts
from fuseflow.estimate.memory_load import memory_answers
from fuseflow.estimate.stream_flow import Flow, Number, largest
from fuseflow.machine.machine import Machine
from fuseflow.machine.timing import edge_fifo, node_timing
from fuseflow.samml import nodes as n
from fuseflow.sim.outcome.deadlock import lane_kinds


@dataclass(frozen=True, slots=True)
class LaneTurns:
    """The turns of lanes at a node that takes rows from them, or deals rows to them: each of `lanes` lanes has `number` turns.

    A merge takes a whole row of one lane before it turns to the next. If the FIFO in front of it holds 16 of the 100 tokens of a row, a
    lane makes 16 of them before its turn, and 84 while all others stand still. So the lanes take 0.84 times the cycles of one lane
    together, however many they are. The same holds behind rows that are dealt to lanes: the next lane gets nothing before the last one had
    room for its row. Work behind a workspace that holds whole rows waits for no turn.
    """

    lanes: Number
    number: Number


def row_fork(node: n.Primitive, by_name: Mapping[str, n.Primitive]) -> n.Fork | None:
    """Return the fork that deals rows of which `node` lets those of its lane through; None if `node` does not do that."""
    fork = by_name.get(node.inputs[1].node) if isinstance(node, n.Align) else None
    return fork if isinstance(fork, n.Fork) and fork.inputs[0] == node.inputs[0] else None


def lane_turns(node: n.Primitive, inputs: Sequence[Flow], by_name: Mapping[str, n.Primitive]) -> LaneTurns | None:
    """Return the turns of lanes at a node, None if no lanes take turns there."""
    if fork := row_fork(node, by_name):
        return LaneTurns(fork.lanes, inputs[1].elements)
    if not isinstance(node, n.Merge) or not node.levels:  # or a merge of single values
        return None
    rows = inputs[0].lists[inputs[0].depth - node.levels]
    return LaneTurns(len(node.inputs), rows) if np.any(rows) else None


class Stage(NamedTuple):
    """Nodes that are the same but for the lane. Each number is the largest of all lanes.

    `batches` is how often a node emits what it holds back, and `emitted` the tokens that it emits then. Both are 0 for a node
    that emits as it goes. `answers` is how many answers of the memory an element waits for on its way through the node, one after
    the other, and `elements` how many elements wait. `turns` has the turns of the lanes whose rows a node deals or merges, else
    None.
    """

    node: n.Primitive
    lanes: Number
    batches: Number
    emitted: Number
    answers: int
    elements: Number
    turns: LaneTurns | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Pipeline:
    """The stages of a graph, in order, and the FIFOs between them. `of_node` has the number of the stage of each node.

    `merges` are the stages that take the lanes back together. `behind` are the stages behind them after which nothing is read
    from memory: their work is left when the lanes are done.
    """

    stages: tuple[Stage, ...]
    of_node: tuple[int, ...]
    fifos: tuple[Fifo, ...]
    merges: frozenset[int]
    behind: frozenset[int]

    @property
    def workspace(self) -> int:
        """The number of the first stage that is a workspace, or the number of stages if none is."""
        return next((at for at, stage in enumerate(self.stages) if isinstance(stage.node, n.Workspace)), len(self.stages))

    @classmethod
    def of(cls, counts: GraphCounts) -> Pipeline:
        graph, declared = counts.graph, counts.graph.declared
        kinds = lane_kinds(graph)
        of_node = tuple(kinds[node.name] for node in graph.nodes)
        stages: dict[int, Stage] = {}
        tokens: dict[tuple[int, int, int], Number] = {}
        for node, numbers, kind in zip(graph.nodes, counts.nodes, of_node, strict=True):
            inner = numbers.inputs[0].inner if numbers.inputs else 0
            own = Stage(
                node,
                1,
                max(1, inner) if node.holds_back else 0,
                numbers.outputs[-1].tokens if isinstance(node, n.Workspace) else 0,
                memory_answers(node, declared),
                numbers.outputs[0].tokens if numbers.outputs else 0,
                lane_turns(node, numbers.inputs, graph.by_name),
            )
            stages[kind] = _together(stages[kind], own) if kind in stages else own
            for k, port in enumerate(node.inputs):
                fifo = (kind, 0 if isinstance(node, n.Merge) else k, kinds[port.node])
                tokens[fifo] = max(tokens.get(fifo, 0), counts.flows[port].tokens)
        ordered = tuple(stages[kind] for kind in range(len(stages)))
        hops = dict[tuple[int, int], int]()
        for edge, distance in graph.hops:
            place = kinds[edge.node], edge.input
            hops[place] = max(hops.get(place, 0), distance.count)
        fifos = tuple(
            Fifo(source, target, k, tokens[target, k, source], hops.get((target, k), 0)) for target, k, source in sorted(tokens)
        )
        merges = frozenset(at for at, stage in enumerate(ordered) if isinstance(stage.node, n.Merge))
        return cls(ordered, of_node, fifos, merges, stages_behind(ordered, fifos, merges))

    def most(self, numbers: Sequence[Number]) -> list[Number]:
        """Return the largest number of each stage, given one for each node."""
        largest: list[Number] = [0] * len(self.stages)
        for stage, number in zip(self.of_node, numbers, strict=True):
            largest[stage] = max(largest[stage], number)
        return largest

    def slots(self, graph: n.Graph, machine: Machine) -> tuple[float, ...]:
        """Return the slots of each FIFO, as the graph or the machine states them. A merge never lacks slots if the machine
        deepens FIFOs."""
        stated: dict[tuple[int, int], int] = {}
        place = {node.name: stage for node, stage in zip(graph.nodes, self.of_node, strict=True)}
        for edge, depth in graph.depths:
            stated[place[edge.node], edge.input] = depth
        for at, slots in _slots_with_hops(graph, machine):
            stated[place[at.node], at.input] = min(slots, stated.get((place[at.node], at.input), slots))
        first = inf if machine.first_depth is None else machine.first_depth
        merged = inf if machine.fifo_depth == "auto" else first
        return tuple(
            float(stated.get((fifo.target, fifo.input), merged if fifo.target in self.merges else first)) for fifo in self.fifos
        )

    def through_links(self, shares: Matrix) -> Matrix:
        """Return the shares of work that ways hold (`FifoLoops.shares`) without those of ways that end at a link. It takes a token in every
        cycle, whatever is before it, so that no loop ends there."""
        shares[[isinstance(stage.node, n.Link) for stage in self.stages]] = inf
        return shares

    def loops(self, lines_ahead: int, line: int, many: tuple[int, ...] = ()) -> FifoLoops:
        """Return the graph in the form in which loops of FIFOs are found. A port has up to `lines_ahead` lines of `line` bytes
        without an answer. The numbers of stages and FIFOs may be arrays over `many` graphs."""
        return FifoLoops(
            self.fifos,
            tuple(stage.batches for stage in self.stages),
            tuple(stage.emitted for stage in self.stages),
            tuple(_held(stage, lines_ahead, line) for stage in self.stages),
            many,
        )

    def lanes_at(self, at: int) -> tuple[int, ...]:
        """Return the stages of the lanes that take turns at stage `at`: those behind it where it deals rows, and those before it
        where it merges them, as long as they are in each of these lanes."""
        own, merges = self.stages[at], at in self.merges
        width = own.lanes * own.turns.lanes if merges and own.turns else own.lanes
        inside = {at}
        for fifo in reversed(self.fifos) if merges else self.fifos:
            known, other = (fifo.target, fifo.source) if merges else (fifo.source, fifo.target)
            if known in inside and self.stages[other].lanes >= width:
                inside.add(other)
        return tuple(sorted(inside - {at}))

    def feeder(self, at: int) -> int:
        """Return the stage that emits the rows which stage `at` deals to lanes. All lanes get them, and let through their own."""
        return next(fifo.source for fifo in self.fifos if fifo.target == at and fifo.input == 2)

    def first_tokens(self, latency: Sequence[float], occupied: Sequence[Number]) -> tuple[list[float], dict[int, int]]:
        """Return the cycle in which each stage has a first token at every input, and for each stage the one from which the last
        of these comes. `occupied` has the cycles that the firings of each stage take.

        The tokens that a stage holds back come when the stages before it have done their work for its first batch. They do that
        work once, also where several stages behind each other hold batches back: a softmax of a row waits for the row once.
        """
        starts, last = [0.0] * len(self.stages), dict[int, int]()
        works: list[list[tuple[float, Number]]] = [[] for _ in self.stages]  # when each work before a stage begins to reach it
        done = 0
        for before, at, _, _, hops in self.fifos:
            while done < at:
                works[done] = _largest_works([*works[done], (starts[done], occupied[done])])
                done += 1
            batches = self.stages[before].batches
            ready = max(begin + work / batches for begin, work in works[before]) if batches else starts[before]
            start = ready + latency[before] + hops
            if start > starts[at]:
                starts[at], last[at] = start, before
            works[at] += [(begin + latency[before] + hops, work) for begin, work in works[before]]
        return starts, last

    def last_tokens(self, latency: Sequence[float], occupied: Sequence[Number], emission_takes_time: bool) -> list[float]:
        """Return the cycles from the last firing of each stage to the end. Where emission takes no time, the stages behind a workspace wait
        for its contents only as long as their own work on these takes.
        """
        ends, downstream = [0.0] * len(self.stages), [0.0] * len(self.stages)
        for before, at, _, _, hops in reversed(self.fifos):
            stage = self.stages[at]
            behind = max(downstream[at], stage.emitted if emission_takes_time else 0)  # the work on what it emits
            remaining = hops + latency[at] + ends[at] + (behind / stage.batches if stage.batches else 0)
            ends[before] = max(ends[before], remaining)
            downstream[before] = max(downstream[before], behind if stage.batches else max(behind, occupied[at]))
        return ends


def _largest_works(works: Iterable[tuple[float, Number]]) -> list[tuple[float, Number]]:
    """Return only the works (begin, cycles) that can end last: none that begins later is as large."""
    largest: list[tuple[float, Number]] = []
    for begin, work in sorted(works, reverse=True):
        if not largest or work > largest[-1][1]:
            largest.append((begin, work))
    return largest


def _together(a: Stage, b: Stage) -> Stage:
    return Stage(
        a.node,
        a.lanes + b.lanes,
        max(a.batches, b.batches),
        max(a.emitted, b.emitted),
        a.answers,
        max(a.elements, b.elements),
        a.turns and b.turns and replace(a.turns, number=max(a.turns.number, b.turns.number)),
    )


def _slots_with_hops(graph: n.Graph, machine: Machine) -> Iterator[tuple[n.Edge, int]]:
    """Yield the edges with hops, and those to nodes that are one, with all their slots if these have a bound."""
    depths, hops = dict(graph.depths), dict(graph.hops)
    for node in graph.nodes if hops else ():
        for k, port in enumerate(node.inputs):
            edge = n.Edge(node.name, k)
            if edge in hops or node.stage_slots:
                latency = node_timing(graph.by_name[port.node], graph, machine).latency
                slots = edge_fifo(node, depths.get(edge), hops.get(edge), latency, machine).slots
                yield from () if slots is None else [(edge, slots)]


def _held(stage: Stage, lines_ahead: int, line: int) -> float:
    """Return the part of all work that a stage holds: the batches of its buffers, or the elements for which it waits for the memory."""
    if np.any(stage.batches):
        return (2 if isinstance(stage.node, n.Workspace) else 1) / stage.batches
    if stage.answers and not isinstance(stage.node, n.TensorWriter):
        return lines_ahead * max(1, line // 4) / largest((1, stage.elements))
    return 0.0


def stages_behind(stages: Sequence[Stage], fifos: Sequence[Fifo], merges: frozenset[int]) -> frozenset[int]:
    """Return the stages behind a merge from which no reading of the memory follows, if writers are among them."""
    merged = [at in merges for at in range(len(stages))]
    for before, at, *_ in fifos:
        merged[at] |= merged[before]
    reads = [stage.answers > 0 and not isinstance(stage.node, n.TensorWriter) for stage in stages]
    for before, at, *_ in reversed(fifos):
        reads[before] |= reads[at]
    behind = frozenset(at for at in range(len(stages)) if merged[at] and not reads[at])
    return behind if any(isinstance(stages[at].node, n.TensorWriter) for at in behind) else frozenset()
