"""Evaluation of a circuit in Python, cycle by cycle. It needs no tool, and defines how the printed circuit must behave.

A cycle has two phases. First every unit inspects the next tokens of its inputs (heads), its room and its registers, and picks
rules to fire. Then tokens move and registers change. So the order of units does not matter, as in hardware. Units for which
nothing has changed are skipped.

A memory that takes time is the memory of the simulators. It advances by windows of its look-ahead: an answer that is unknown in a
cycle becomes visible one look-ahead later at the earliest.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import pairwise

from fuseflow.errors import HardwareError
from fuseflow.firing_rules.rules import DONE, Module, Rule
from fuseflow.hardware.arrays import circuit_arrays
from fuseflow.hardware.circuit import Circuit, Fifo, Unit
from fuseflow.hardware.memory_run import NONE, MemoryRun, Request
from fuseflow.hardware.python_code import Firing, Step, step_function
from fuseflow.tensors import Tensor


@dataclass(slots=True)
class Evaluation:
    """The run of a circuit. `tokens` has the words that each output of a node emitted, and `given` the cycles of the firings that
    emitted them; `fired` has the cycles of all firings of a node, without helpers. `requests` has the requests of each port of a
    node to the memory, and `waiting` are the nodes that have not ended. `misplaced` are the numbers of words in the
    scratchpad that are not those of results."""

    cycles: int = 0
    tokens: dict[tuple[str, str], list[int]] = field(default_factory=dict)
    given: dict[tuple[str, str], list[int]] = field(default_factory=dict)
    fired: dict[str, list[int]] = field(default_factory=dict)
    requests: dict[tuple[str, str], list[Request]] = field(default_factory=dict)
    waiting: tuple[str, ...] = ()
    misplaced: tuple[int, ...] = ()

    @property
    def firings(self) -> int:
        return sum(map(len, self.fired.values()))


class _Lane:
    """A FIFO of a channel while it runs: the tokens that it holds, each with the cycle from which it is visible, its free slots, and the
    cycles in which slots on their way back will be free. `writer` and `reader` are numbers of sites."""

    __slots__ = ("back", "freed", "latency", "reader", "slots", "tokens", "writer")

    def __init__(self, fifo: Fifo, registers: int, writer: int, reader: int) -> None:
        self.tokens: deque[tuple[int, int]] = deque()
        self.freed: deque[int] = deque()
        self.slots = fifo.depth
        self.latency, self.back = fifo.latency + registers, 1 + registers
        self.writer, self.reader = writer, reader

    def head(self, cycle: int) -> int | None:
        """Return the next token if it is visible."""
        return self.tokens[0][0] if self.tokens and self.tokens[0][1] <= cycle else None

    def has_room(self, cycle: int) -> bool:
        if self.slots is None:
            return True
        while self.freed and self.freed[0] <= cycle:
            self.slots += 1
            self.freed.popleft()
        return self.slots > 0


@dataclass(frozen=True, slots=True)
class _Hop:
    """A hop of two slots while it runs: it takes a token from its own FIFO, and gives it to the next."""

    into: _Lane
    out: _Lane

    def ask(self, cycle: int) -> list[int]:
        """Return the token that goes on in a cycle, if any."""
        token = self.into.head(cycle)
        return [token] if token is not None and self.out.has_room(cycle) else []


@dataclass(frozen=True, slots=True)
class _Moves:
    """The effects of a rule as indices: of the inputs that it takes, of its outputs, registers and memories, of the outputs whose
    tokens come late, and of its process. The process may fire again `pause` cycles later, and its firings are counted if
    `counts`."""

    takes: tuple[int, ...]
    gives: tuple[int, ...]
    sets: tuple[int, ...]
    stores: tuple[int, ...]
    late: tuple[int, ...]
    process: int
    pause: int
    counts: bool

    @classmethod
    def of(cls, module: Module, rule: Rule) -> _Moves:
        inputs, outputs = list(module.inputs), list(module.outputs)
        registers, memories = list(module.registers), list(module.memories)
        return cls(
            tuple(inputs.index(head) for head in rule.takes),
            tuple(outputs.index(out) for out, _ in rule.gives),
            tuple(registers.index(register) for register, _ in rule.sets),
            tuple(memories.index(store.memory) for store in rule.stores),
            tuple(outputs.index(out) for out, _ in rule.late),
            module.processes.index(rule.on),
            (module.pause_of if rule.closes else module.interval_of)(rule.on),
            rule.on not in module.helpers,
        )


class _Site:
    """A unit while it runs: its step function, channels, registers, memories and ports."""

    __slots__ = (
        "arrays", "due", "fired", "given", "inputs", "memories", "memory", "moves", "number", "outputs", "ports", "registers", "requests",
        "step", "tokens", "unit",
    )  # fmt: skip

    def __init__(
        self, number: int, unit: Unit, step: Step, arrays: list[list[int]], memory: MemoryRun, result: Evaluation
    ) -> None:
        module, name = unit.module, unit.node.name
        ports = {kind: memory.ports[name, kind] for kind in module.ports}
        self.number, self.unit, self.step, self.arrays, self.memory = number, unit, step, arrays, memory
        self.moves = [_Moves.of(module, rule) for rule in module.rules]
        self.inputs: dict[int, _Lane] = {}
        self.outputs: list[list[_Lane]] = [[] for _ in module.outputs]
        self.registers = [register.initial for register in module.registers.values()]
        self.memories: list[dict[int, int]] = [{} for _ in module.memories]
        self.due = [0] * len(module.processes)  # the first cycle that the interval of each process allows
        self.ports = list(ports.values())
        outputs = list(module.outputs)
        self.requests = {outputs.index(module.ports[kind].request): port for kind, port in ports.items()}
        self.fired = result.fired.setdefault(name, [])
        self.tokens = [result.tokens.setdefault((name, out), []) for out in module.outputs]
        self.given = [result.given.setdefault((name, out), []) for out in module.outputs]

    def next_turn(self, cycle: int) -> int:
        """Return the first cycle from `cycle` on in which the unit may fire on values."""
        turn = self.unit.module.port_turn
        return cycle if turn is None else turn.next(cycle)

    def ask(self, cycle: int) -> list[Firing]:
        """Return the firings of the unit in a cycle. Raises `HardwareError` if two rules of one process fire."""
        heads = [lane.head(cycle) for lane in self.inputs.values()]
        rooms = [all(lane.has_room(cycle) for lane in lanes) for lanes in self.outputs]
        answers = [port.answers(cycle) for port in self.ports]
        if self.unit.module.awaits_load:
            answers.append(int(self.memory.is_loaded(cycle)))
        for k, port in self.requests.items():
            rooms[k] = port.has_room
        due = [cycle >= first for first in self.due] + [self.next_turn(cycle) == cycle]
        firings = self.step(heads, rooms, due, self.registers, self.memories, self.arrays, answers)
        if len(firings) > len({self.moves[firing[0]].process for firing in firings}):
            names = " and ".join(f"`{self.unit.module.rules[firing[0]].label}`" for firing in firings)
            node = self.unit.node
            raise HardwareError(f"node `{node.name}` ({node.op}): the rules {names} hold at once in cycle {cycle:,}")
        return firings


def waiting_nodes(circuit: Circuit, result: Evaluation) -> tuple[str, ...]:
    """Return the names of the nodes that have not emitted `D` on all of their outputs. Writers emit it to the memory."""

    def ended(unit: Unit) -> bool:
        outputs = [(result.tokens[unit.node.name, out], unit.module.outputs[out]) for out in unit.module.streams]
        return all(tokens and tokens[-1] >> width == DONE for tokens, width in outputs)

    return tuple(unit.node.name for unit in circuit.units if not ended(unit))


def evaluate(
    circuit: Circuit, tensors: Mapping[str, Tensor], limit: int | None = None, steps: dict[str, Step] | None = None
) -> Evaluation:
    """Run a circuit to its end, or until nothing can fire any more. Raises `HardwareError` after `limit` cycles, and if two rules
    of a process hold at once. `steps` caches the functions of modules between runs."""
    return _Run(circuit, tensors, {} if steps is None else steps).run(limit)


class _Run:
    def __init__(self, circuit: Circuit, tensors: Mapping[str, Tensor], steps: dict[str, Step]) -> None:
        self.circuit, self.result = circuit, Evaluation()
        arrays, self.memory = circuit_arrays(circuit, tensors), MemoryRun(circuit, tensors)
        self.sites: list[_Site] = []
        self.hops: list[_Hop] = []
        for number, unit in enumerate(circuit.units):
            own = [arrays[unit.node.name, name] for name in unit.module.arrays]
            self.sites.append(_Site(number, unit, step_function(unit.module, steps), own, self.memory, self.result))
        self.awaiting = [site for site in self.sites if site.unit.module.awaits_load]
        self._connect()
        self.calendar: list[tuple[int, int]] = []
        self.planned: set[tuple[int, int]] = set()

    def _connect(self) -> None:
        sites = {site.unit.node.name: site for site in self.sites}
        for channel in self.circuit.channels:
            writer, reader = sites[channel.writer], sites[channel.reader]
            first = len(self.sites) + len(self.hops)
            numbers = [writer.number, *range(first, first + len(channel.fifos) - 1), reader.number]
            lanes = [_Lane(fifo, channel.registers, *pair) for fifo, pair in zip(channel.fifos, pairwise(numbers), strict=True)]
            self.hops += [_Hop(*pair) for pair in pairwise(lanes)]
            writer.outputs[list(writer.unit.module.outputs).index(channel.output)].append(lanes[0])
            reader.inputs[list(reader.unit.module.inputs).index(channel.input)] = lanes[-1]
        for site in self.sites:
            site.inputs = dict(sorted(site.inputs.items()))

    def wake(self, cycle: int, number: int) -> None:
        """Plan a visit of a unit, or of the hop with a number after those of all units, in a cycle."""
        key = cycle, number
        if key not in self.planned:
            self.planned.add(key)
            heappush(self.calendar, key)

    def run(self, limit: int | None) -> Evaluation:
        for site in self.sites:
            self.wake(0, site.number)
        while self._answered():
            cycle = self.calendar[0][0]
            if limit is not None and cycle > limit:
                raise HardwareError(f"the circuit of `{self.circuit.graph.name}` still runs after {limit:,} cycles")
            asked, hops = list[_Site](), list[_Hop]()
            while self.calendar and self.calendar[0][0] == cycle:
                key = heappop(self.calendar)
                self.planned.discard(key)
                if key[1] >= len(self.sites):
                    hops.append(self.hops[key[1] - len(self.sites)])
                    continue
                site = self.sites[key[1]]
                asked.append(site)
                if (turn := site.next_turn(cycle)) > cycle:
                    self.wake(turn, site.number)
            passed = [(hop, hop.ask(cycle)) for hop in hops]
            for site, firings in [(site, site.ask(cycle)) for site in asked]:
                for firing in firings:
                    self.apply(site, firing, cycle)
            for hop, tokens in passed:
                for token in tokens:
                    self.take(hop.into, cycle)
                    self.put(hop.out, token, cycle)
                    self.wake(cycle + 1, hop.into.reader)
        self.result.cycles = max(self.result.cycles, self.memory.last + 1)
        self.result.requests = {place: port.requests for place, port in self.memory.ports.items() if port.number != NONE}
        self.result.waiting = waiting_nodes(self.circuit, self.result)
        self.result.cycles += 0 if self.result.waiting else self.memory.store(self.result.cycles)
        return self.result

    def _answered(self) -> bool:
        """Advance the memory as far as the next planned visit allows, and return whether any visit is planned."""
        while self.memory.goes_on(self.calendar[0][0] if self.calendar else None):
            for number, visible in self.memory.answers():
                self.wake(visible, number)
                for site in self.awaiting if self.sites[number].unit.module.loaded is not None else ():
                    self.wake(visible, site.number)
        return bool(self.calendar)

    def apply(self, site: _Site, firing: Firing, cycle: int) -> None:
        """Apply the effects of a firing: move tokens, send requests, set registers and memories, and plan the next visits."""
        number, given, states, stored, late = firing
        moves = site.moves[number]
        if moves.counts:
            self.result.cycles = max(self.result.cycles, cycle + 1)
            site.fired.append(cycle)
        for k in moves.takes:
            self.take(site.inputs[k], cycle)
        for k, token in zip(moves.gives, given, strict=True):
            if k in site.requests:
                self.memory.ask(site.requests[k], self.memory.address(site.requests[k], token), cycle)
                continue
            site.tokens[k].append(token)
            site.given[k].append(cycle)
            for lane in site.outputs[k]:
                self.put(lane, token, cycle)
        for k, token in zip(moves.late, late, strict=True):
            site.tokens[k][-1] = token
            for lane in site.outputs[k]:
                lane.tokens[-1] = token, lane.tokens[-1][1]
        for k, state in zip(moves.sets, states, strict=True):
            site.registers[k] = int(state)
        for k, (address, word) in zip(moves.stores, stored, strict=True):
            site.memories[k][address] = word
        site.due[moves.process] = cycle + moves.pause
        self.wake(cycle + 1, site.number)
        if moves.pause > 1:
            self.wake(cycle + moves.pause, site.number)

    def take(self, lane: _Lane, cycle: int) -> None:
        """Take the next token of a FIFO."""
        lane.tokens.popleft()
        if lane.slots is not None:
            lane.freed.append(cycle + lane.back)
            self.wake(cycle + lane.back, lane.writer)

    def put(self, lane: _Lane, token: int, cycle: int) -> None:
        """Put a token in a FIFO, and plan the visit that sees it."""
        lane.tokens.append((token, cycle + lane.latency))
        self.wake(cycle + lane.latency, lane.reader)
        if lane.slots is not None:
            lane.slots -= 1
