"""Comparison of a circuit with the simulator: every token of every stream in its cycle, and every node's firings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from fuseflow.errors import DeadlockError
from fuseflow.firing_rules.rules import EMPTY
from fuseflow.hardware.arithmetic import show_word, tile_numbers, token_word
from fuseflow.hardware.circuit import Circuit, Unit, circuit_machine
from fuseflow.hardware.evaluate import Evaluation
from fuseflow.machine.machine import Machine
from fuseflow.primitives.write import WRITTEN
from fuseflow.samml import nodes as n
from fuseflow.samml.auxiliary_tensors import auxiliary_tensors
from fuseflow.samml.tokens import Stop
from fuseflow.sim.engine_names import Engine
from fuseflow.sim.outcome.statistics import NodeStatistics, Recording
from fuseflow.sim.precision import with_rounded_constants
from fuseflow.sim.reference.execute import build_network, network_statistics, run_network
from fuseflow.sim.run import Simulation, simulate
from fuseflow.tensors import Tensor


@dataclass(frozen=True, slots=True)
class Simulated:
    """The simulator's run of a graph. `graph` has the depths that the machine chose, and `slots` are depths with which unbounded
    FIFOs behave the same. `waiting` has the nodes that have not ended after a deadlock."""

    graph: n.Graph
    cycles: int
    streams: Mapping[n.Port, Recording]
    nodes: tuple[NodeStatistics, ...]
    slots: Mapping[n.Edge, int]
    waiting: tuple[str, ...] = ()
    run: Simulation | None = None

    def links(self) -> dict[str, int]:
        """Return for each node with a workspace a depth of its link that never fills up: a slot for each buffer, for each stop
        without a buffer, and for `D`."""
        values = {
            node.name: (len(node.inputs) - 2, node.inputs[-1]) for node in self.graph.nodes if isinstance(node, n.Workspace)
        }
        return {
            name: 3 + sum(isinstance(token, Stop) and token.low > depth for token in self.streams[port].tokens)
            for name, (depth, port) in values.items()
        }


def simulated(graph: n.Graph, tensors: Mapping[str, Tensor], machine: Machine, engine: Engine = "auto") -> Simulated:
    """Run a verified graph in the simulator, in its circuit's arithmetic, with every stream recorded. A deadlock is a run, too."""
    machine = circuit_machine(machine)
    try:
        run = simulate(graph, tensors, machine, record=True, engine=engine)
    except DeadlockError:
        return _stuck(graph, tensors, machine)
    slots = {n.Edge(edge.node, edge.input): max(edge.peak, 1) for edge in run.edges}
    slots |= {edge: slots[edge] + hops.count for edge, hops in graph.hops}  # slots on their way back
    return Simulated(graph.with_depths(run.depths), run.cycles, run.streams, run.nodes, slots, run=run)


def _stuck(graph: n.Graph, tensors: Mapping[str, Tensor], machine: Machine) -> Simulated:
    """Return the run of a graph up to its deadlock. A node waits if it has not ended. A process that fetches ahead does not
    count: it waits forever if nothing needs its last lines."""
    runnable = with_rounded_constants(graph, machine)
    controller = machine.controller()
    network = build_network(runnable, {**auxiliary_tensors(graph), **tensors}, machine, record=True, controller=controller)
    stuck = run_network(network)
    streams = {
        port: Recording([token for token, _ in items], tuple(visible for _, visible in items))
        for port, items in network.recorded.items()
    }
    slots = {edge: max(len(streams[graph.by_name[edge.node].inputs[edge.input]].tokens), 1) for edge in network.fifos}
    nodes = network_statistics(network)
    waiting = tuple(dict.fromkeys(process.node.name for process in stuck if not process.helper))
    return Simulated(graph, 1 + max(node.last for node in nodes), streams, nodes, slots, waiting)


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference between circuit and simulator: a token of a stream with its number, or firings of a node. One side may have
    nothing.

    `cycle` is the earlier of the cycles of both sides.
    """

    node: str
    what: str
    cycle: int
    circuit: str
    simulator: str

    def __str__(self) -> str:
        return f"{self.what} of `{self.node}` in cycle {self.cycle:,}: {self.circuit} in the circuit, {self.simulator} in the simulator"


def first_difference(circuit: Circuit, expected: Simulated, actual: Evaluation) -> Difference | None:
    """Return the earliest token that differs, or else a difference in firings, or else in the nodes that wait at the end; None if
    nothing differs. Of several in one cycle, the difference at the first node in the graph is returned."""
    tokens = min(_token_differences(circuit, expected, actual), key=lambda difference: difference.cycle, default=None)
    return tokens or next(_other_differences(expected, actual), None)


def differences(circuit: Circuit, expected: Simulated, actual: Evaluation) -> Iterator[Difference]:
    """Yield the first difference of every stream, then those in the firings of nodes, and in the nodes that wait at the end."""
    yield from _token_differences(circuit, expected, actual)
    yield from _other_differences(expected, actual)


def _token_differences(circuit: Circuit, expected: Simulated, actual: Evaluation) -> Iterator[Difference]:
    for unit in circuit.units:
        for k, port in enumerate(unit.node.ports):
            yield from _stream_difference(circuit, unit, k, expected.streams[port], actual)
        if isinstance(unit.node, n.TensorWriter):
            yield from _written_difference(circuit, unit, expected.streams[unit.node.inputs[0]], actual)


def _other_differences(expected: Simulated, actual: Evaluation) -> Iterator[Difference]:
    for node in expected.nodes:
        cycles = actual.fired[node.name]
        firings = len(cycles), min(cycles, default=-1), max(cycles, default=-1)
        if firings != (node.firings, node.first, node.last):
            at = min([cycle for cycle in (firings[2], node.last) if cycle >= 0], default=0)
            yield Difference(node.name, "the firings", at, _told(*firings), _told(node.firings, node.first, node.last))
    if actual.cycles != expected.cycles and not (expected.waiting or actual.waiting):
        last = expected.nodes[-1].name
        yield Difference(last, "the end", actual.cycles, f"{actual.cycles:,} cycles", f"{expected.cycles:,} cycles")
    if actual.misplaced and not (expected.waiting or actual.waiting):
        words = f"{len(actual.misplaced):,} words differ, the first is number {actual.misplaced[0]:,}"
        yield Difference(expected.nodes[-1].name, "the scratchpad at the end", actual.cycles, words, "the words of the results")
    if expected.waiting != actual.waiting:
        waiting = actual.waiting or expected.waiting
        yield Difference(waiting[0], "the end", actual.cycles, _waiting(actual.waiting), _waiting(expected.waiting))


def _written_difference(circuit: Circuit, unit: Unit, stream: Recording, actual: Evaluation) -> Iterator[Difference]:
    """Yield a difference for the first stored token of a writer that is not the next of its input. Pads (`N`) are skipped."""
    width, place = unit.module.outputs[WRITTEN], (unit.node.name, WRITTEN)
    written = [
        (token, cycle) for token, cycle in zip(actual.tokens[place], actual.given[place], strict=True) if token >> width != EMPTY
    ]
    due = [token_word(token, width, circuit.arithmetic.word) for token in stream.tokens]
    due = due if len(written) == len(due) or not actual.waiting else due[: len(written)]  # in a deadlock some were not taken yet
    for number, (side, word) in enumerate(zip_longest(written, due)):
        if side is None or side[0] != word:
            at = actual.cycles if side is None else side[1]
            number_of = _number_of(circuit, width)
            shown = "nothing" if word is None else f"`{show_word(word, width, number_of)}`"
            yield Difference(unit.node.name, f"written token {number:,}", at, _shown(side, width, number_of), shown)
            return


def _told(firings: int, first: int, last: int) -> str:
    return f"{firings:,} in the cycles {first:,} to {last:,}" if firings else "none"


def _waiting(nodes: Sequence[str]) -> str:
    return f"{', '.join(f'`{name}`' for name in nodes)} wait" if nodes else "all nodes end"


def _stream_difference(circuit: Circuit, unit: Unit, k: int, stream: Recording, actual: Evaluation) -> Iterator[Difference]:
    out = f"out{k}"
    width, arithmetic = unit.module.outputs[out], circuit.arithmetic
    words = [token_word(token, width, arithmetic.word) for token in stream.tokens]
    cycles = [visible - unit.latency for visible in stream.visible]
    place = unit.node.name, out
    if words == actual.tokens[place] and cycles == actual.given[place]:
        return
    pairs = zip_longest(zip(actual.tokens[place], actual.given[place], strict=True), zip(words, cycles, strict=True))
    for number, (left, right) in enumerate(pairs):
        if left != right:
            at = min(side[1] for side in (left, right) if side is not None)
            number_of = _number_of(circuit, width)
            shown = [_shown(side, width, number_of) for side in (left, right)]
            stream_name = n.stream_name(unit.node, k).removeprefix(f"{unit.node.name}.")
            name = "" if stream_name == unit.node.name else f" of the stream `{stream_name}`"
            yield Difference(unit.node.name, f"token {number:,}{name}", at, *shown)
            return


def _number_of(circuit: Circuit, width: int) -> Callable[[int], Any]:
    """Return a function that shows a payload of `width` bits: as a number, or as the numbers of a tile."""
    arithmetic = circuit.arithmetic
    if width < arithmetic.width:
        return int
    if width == arithmetic.width:
        return arithmetic.number
    return lambda payload: tile_numbers(payload, width, arithmetic.width, arithmetic.number)


def _shown(side: tuple[int, int] | None, width: int, number: Any) -> str:
    if side is None:
        return "nothing"
    return f"`{show_word(side[0], width, number)}` in cycle {side[1]:,}"


def compared_tokens(circuit: Circuit, actual: Evaluation) -> int:
    """Return the number of tokens of a circuit's run, which a comparison checks."""
    return sum(len(actual.tokens[unit.node.name, out]) for unit in circuit.units for out in unit.module.streams)
