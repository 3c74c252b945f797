"""Faults that are planted in circuits: each must be noticed by a comparison with the simulator on some random graph.

A fault changes one rule of one primitive, or all channels: a guard, a token, a state, an interval, a latency, a slot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from unittest import mock

from hardware_cases import MemoryKind, hardware_case
from lane_cases import lane_case
from random_graphs import Case

from fuseflow.errors import HardwareError
from fuseflow.firing_rules.expressions import Expr, concat, const, mux
from fuseflow.firing_rules.rules import STOP, Module, Register, Rule
from fuseflow.hardware.circuit import Channel, Circuit, Unit, build_circuit
from fuseflow.hardware.comparison import Simulated, first_difference
from fuseflow.hardware.evaluate import evaluate
from fuseflow.hardware.primitives import remote_moves
from fuseflow.hardware.primitives.memory_ports import Advance, LanePort, WritePort
from fuseflow.hardware.python_code import Step
from fuseflow.hardware.tile_array import ARRAY, TILE_WORK, Row, copy_work
from fuseflow.machine.machine import Machine, UnitIntervals
from fuseflow.samml.writers import LanePart

Change = Callable[[Module, Rule], Rule]


@dataclass(frozen=True)
class Fault:
    """A fault, and the circuits that it is in: those with this primitive, or with any."""

    name: str
    op: str
    plant: Callable[[Circuit], Circuit]
    slow: bool = False
    """Whether it shows on machines alone whose units start a value every third cycle."""
    memory: MemoryKind = "ideal"
    """The memory of the cases that can show it."""
    tiles: bool = False
    """Whether these cases have tiles."""
    lanes: bool = False
    """Whether they are those of writers of lanes."""

    def case(self, seed: int) -> Case:
        """The case of a seed."""
        return lane_case(seed, self.memory) if self.lanes else hardware_case(seed, self.memory, self.tiles)

    def machine(self, case: Case) -> Machine:
        return case.machine.model_copy(update={"interval": UnitIntervals(default=3, fold=3)}) if self.slow else case.machine


def faults() -> Iterator[Fault]:
    """All faults, by primitive. Each label is that of a rule, or the beginning of its label."""
    yield Fault("a slot fewer", "", lambda c: _channels(c, lambda ch: replace(ch, depth=ch.depth and max(ch.depth - 1, 1))))
    yield Fault("a slot more", "", lambda c: _channels(c, lambda ch: replace(ch, depth=ch.depth and ch.depth + 1)))
    yield Fault("a cycle later", "", lambda c: _channels(c, lambda ch: replace(ch, latency=ch.latency + 1)))
    yield Fault("visible at once", "", lambda c: _channels(c, lambda ch: replace(ch, latency=1)))
    yield Fault("an interval more", "", lambda c: _modules(c, "", _slower))
    yield Fault("no interval", "", lambda c: _modules(c, "", _faster))
    yield Fault("the link has a slot", "", lambda c: _channels(c, lambda ch: ch if ch.edge else replace(ch, depth=1)))
    for op, label in STOPS:
        yield Fault(f"{op}: `{label}` closes a level less", op, _rule(op, label, _lower_stop))
    for op, label in PAUSES:
        plant = _rule(op, label, lambda m, r: replace(r, closes=False))
        yield Fault(f"{op}: after `{label}` the interval counts", op, plant, slow=True)
    for op, label in GUARDS:
        yield Fault(f"{op}: `{label}` never", op, _rule(op, label, lambda m, r: replace(r, when=const(0, 1))))
    for op, label in STATES:
        yield Fault(f"{op}: `{label}` changes nothing", op, _rule(op, label, lambda m, r: replace(r, sets=())))
    for op, label in LOOKS:
        yield Fault(f"{op}: `{label}` does not look", op, _rule(op, label, lambda m, r: replace(r, looks=())))
    for op, label in TAKES:
        yield Fault(f"{op}: `{label}` leaves its last token", op, _rule(op, label, _leave))
    yield Fault("accumulate: one workspace", "accumulate", lambda c: _modules(c, "accumulate", _one_workspace))
    yield Fault("permute: one workspace", "permute", lambda c: _modules(c, "permute", _one_workspace))
    yield Fault("merge: begins with the second lane", "merge", lambda c: _modules(c, "merge", _later_turn))
    yield from tile_faults()
    yield from remote_faults()
    yield from lane_faults()


def tile_faults() -> Iterator[Fault]:
    """Faults of tiles, and of the arrays that compute on them."""

    def fault(name: str, op: str, plant: Callable[[Circuit], Circuit]) -> Fault:
        return Fault(name, op, plant, tiles=True)

    for op in ("alu", "accumulate"):
        yield fault(f"array of {op}: the next tile a cycle too early", op, lambda c, op=op: _modules(c, op, _hurried))
        yield fault(f"array of {op}: forgets what it keeps", op, _rule(op, "", _keep_nothing))
    for op in ("alu", "reduce"):
        yield fault(f"array of {op}: the first step is left out", op, lambda c, op=op: _modules(c, op, _stepped))
    for op in ("alu", "accumulate", "reduce"):
        yield fault(f"array of {op}: results go around the other way", op, _rule(op, "steps", _turned))
    yield fault("array of alu: no result", "alu", _rule("alu", "last step", lambda m, r: replace(r, late=())))
    yield fault("array of reduce: the last step is lost", "reduce", _rule("reduce", "last step", _last_lost))
    yield fault(
        "array of accumulate: stores nothing", "accumulate", _rule("accumulate", "last step", lambda m, r: replace(r, stores=()))
    )
    copied = lambda row: lambda arithmetic, tiles: copy_work(tiles[0])  # noqa: E731
    yield fault("a product with a transposed tile", "alu", lambda c: with_work(c, "matmul_t", _as_it_stands))
    yield fault("a tile is not transposed", "alu", lambda c: with_work(c, "transpose", copied))
    yield fault("a tile comes with its elements in another order", "load", _rule("load", "value", _reordered))


def _hurried(module: Module) -> None:
    if ARRAY in module.helpers:
        module.interval -= 1


def _stepped(module: Module) -> None:
    """The number of the step begins with 1."""
    if ARRAY in module.helpers:
        module.registers["step"] = Register(module.registers["step"].width, 1)


def _keep_nothing(module: Module, rule: Rule) -> Rule:
    return replace(rule, sets=tuple(pair for pair in rule.sets if not pair[0].startswith(("operand", "empty", "fresh", "place"))))


def _turned(module: Module, rule: Rule) -> Rule:
    names = [name for name, _ in rule.sets if name.startswith("element")]
    turned = dict(zip(names, reversed([state for name, state in rule.sets if name in names]), strict=True))
    return replace(rule, sets=tuple((name, turned.get(name, state)) for name, state in rule.sets))


def _last_lost(module: Module, rule: Rule) -> Rule:
    return replace(rule, sets=tuple(pair for pair in rule.sets if pair[0] == "step"))


def _reordered(module: Module, rule: Rule) -> Rule:
    """Words of 32 bits in the opposite order. Of a scalar nothing changes in f32."""
    ((out, token),) = rule.gives
    width = module.outputs[out]
    words = [token.bits(low, 32) for low in range(0, width, 32)]
    return replace(rule, gives=((out, concat(token.bits(width, 2), *words)),))


def with_work(circuit: Circuit, function: str, change: Callable[[Row], Row]) -> Circuit:
    """A circuit in which the work of an operator on tiles is another one."""
    with mock.patch.dict(TILE_WORK, {function: change(TILE_WORK[function])}):
        return build_circuit(circuit.graph, circuit.machine)


def _as_it_stands(row: Row) -> Row:
    return lambda arithmetic, tiles: TILE_WORK["matmul"](arithmetic, (tiles[0], tiles[1][::-1]))


def remote_faults() -> Iterator[Fault]:
    """Faults of nodes at a memory that takes time, and of their ports."""

    def fault(name: str, op: str, plant: Callable[[Circuit], Circuit]) -> Fault:
        return Fault(f"at a memory: {name}", op, plant, memory="fixed")

    yield fault("a request more without an answer", "", lambda c: _memory(c, outstanding=1))
    yield fault("answers a cycle later", "", lambda c: _memory(c, latency=1))
    yield fault("links have a slot fewer", "load", lambda c: _channels(c, lambda ch: ch if ch.edge else _fewer(ch)))
    for op, head in (("load", "asked"), ("scan", "walked")):
        yield fault(f"{op} does not wait", op, _rule(op, "value", lambda m, r, head=head: _any_value(m, r, head)))
    yield fault("the walker does not wait", "scan", _rule("scan", "walks first", lambda m, r: _any_value(m, r, "asked")))
    for op, label in (("load", "ask value"), ("scan", "walks first"), ("scan", "ask value")):
        yield fault(f"{op}: `{label}` does not know its line", op, _rule(op, label, _forget))
    for op, kind in (("load", "val"), ("scan", "crd")):
        yield fault(
            f"{op}: fetches a line at a time", op, _rule(op, f"fetches {kind}", lambda m, r: replace(r, closes=False, sets=()))
        )
    yield fault("a last line is not sent", "write", _rule("write", "flushes", lambda m, r: replace(r, gives=())))
    yield fault("the stop of a fiber writes nothing", "write", _rule("write", "closes 0", lambda m, r: replace(r, sets=())))
    yield fault("a full line is not sent", "write_values", _rule("write_values", "value fills", _nothing_asked))


def lane_faults() -> Iterator[Fault]:
    """Faults of the ports of writers of lanes."""

    def fault(name: str, plant: Callable[[Circuit], Circuit]) -> Fault:
        return Fault(f"in lanes: {name}", "write_lane_values", plant, memory="fixed", lanes=True)

    yield fault("a gap of a lane more", _with_part(lambda part: replace(part, lanes=part.lanes + 1)))
    yield fault("a run of an entry more", _with_part(lambda part: replace(part, run=part.run + 1)))
    yield fault("the places of the lane before", _with_part(lambda part: replace(part, lane=max(part.lane - 1, 0))))
    yield fault("a run ends an entry late", lambda c: _modules(c, "write_lane_values", _later_end))
    yield fault("a run has no end", _rule("write_lane_values", "value", _without("_rest")))
    yield fault("a line that is left is not sent", _with_port(advance=_full_alone))
    yield fault("a line that is left is sent only where the rest of a gap fills it", _with_port(advance=_late))
    yield fault("a line that was not begun is sent", _with_port(is_begun=WritePort.is_begun))
    yield fault("a line that was begun is not sent", _with_port(is_begun=property(lambda port: const(0, 1))))
    yield fault("the lines of an element count on", _rule("write_lane_values", "value fills", _without("_sent")))


def _with_part(change: Callable[[LanePart], LanePart]) -> Callable[[Circuit], Circuit]:
    """A circuit whose ports have other places."""
    place = remote_moves.lane_part

    def planted(circuit: Circuit) -> Circuit:
        with mock.patch.object(remote_moves, "lane_part", lambda node, decl: change(place(node, decl))):
            return build_circuit(circuit.graph, circuit.machine)

    return planted


def _with_port(**changed: object) -> Callable[[Circuit], Circuit]:
    """A circuit whose ports do something else."""
    faulty = type("LanePort", (LanePort,), changed)

    def planted(circuit: Circuit) -> Circuit:
        with mock.patch.object(remote_moves, "LanePort", faulty):
            return build_circuit(circuit.graph, circuit.machine)

    return planted


def _full_alone(port: LanePort, total: Expr, sent: Expr) -> Advance:
    """A line is sent only once it is full."""
    return replace(LanePort.advance(port, total, sent), full=total.bits(port.shift, sent.width))


def _late(port: LanePort, total: Expr, sent: Expr) -> Advance:
    """As many lines are sent as a gap of less than a line makes full."""
    behind = mux(port.ends, total + port.gap % port.line_bits, total)
    return replace(LanePort.advance(port, total, sent), full=behind.bits(port.shift, sent.width))


def _later_end(module: Module) -> None:
    """The first run has an entry more."""
    for name, register in module.registers.items():
        if name.endswith("_rest"):
            module.registers[name] = Register(register.width, (register.initial + 1) % (1 << register.width))


def _without(end: str) -> Change:
    """A rule that leaves a register as it is."""
    return lambda module, rule: replace(rule, sets=tuple(pair for pair in rule.sets if not pair[0].endswith(end)))


def _memory(circuit: Circuit, **more: int) -> Circuit:
    settings = circuit.machine.memory
    update = {key: getattr(settings, key) + count for key, count in more.items()}
    machine = circuit.machine.model_copy(update={"memory": settings.model_copy(update=update)})
    return replace(circuit, machine=machine)


def _fewer(channel: Channel) -> Channel:
    return replace(channel, depth=channel.depth and max(channel.depth - 1, 1))


def _any_value(module: Module, rule: Rule, head: str) -> Rule:
    """A rule that holds for any value at the head, whether its answer is there or not."""
    return replace(rule, when=rule.when | module.inputs[head].is_value) if head in module.inputs else rule


def _forget(module: Module, rule: Rule) -> Rule:
    return _without("_behind")(module, rule)


def _nothing_asked(module: Module, rule: Rule) -> Rule:
    return replace(rule, gives=tuple(pair for pair in rule.gives if not pair[0].endswith("_request")))


STOPS = (
    ("scan", "closes with"), ("scan", "stop"), ("repeat", "higher stop"), ("reduce", "due stop"), ("reduce", "stop"),
    ("drop", "held stop"), ("align", "end of"), ("flatten", "stop 1"), ("split", "stop"), ("accumulate", "ends"), ("permute", "parts 0"),
    ("accumulate", "parts 0"),
)  # fmt: skip
PAUSES = (
    ("scan", "closes with"), ("scan", "stop"), ("repeat", "higher stop"), ("reduce", "due stop"), ("reduce", "stop"),
    ("drop", "held stop"), ("align", "end of"), ("flatten", "stop 1"), ("split", "stop"), ("accumulate", "fills stop"),
)  # fmt: skip
GUARDS = (
    ("join", "gives 0"), ("drop", "leaves"), ("align", "new"), ("repeat", "empty"), ("locate", "absent"), ("fork", "to 1"),
    ("merge", "0 end before more"), ("accumulate", "childless"),
)  # fmt: skip
STATES = (
    ("reduce", "fold"), ("repeat", "stop"), ("drop", "keeps"), ("align", "carries"), ("split", "first"), ("flatten", "stop"),
    ("accumulate", "gives 0"), ("permute", "puts"), ("scan", "empty"),
)  # fmt: skip
LOOKS = (("scan", "closes"), ("join", "skips"))
TAKES = (
    ("join", "control"),
    ("repeat", "higher stop"),
    ("align", "end of"),
    ("flatten", "stop 1"),
    ("drop", "stop"),
    ("merge", "0 whole"),
)


def noticed(fault: Fault, case: Case, expected: Simulated, steps: dict[str, Step]) -> bool:
    """Whether the comparison sees a fault in a case. An evaluator that refuses to go on, or takes a token that is not there, sees it, too.
    `expected` is what the simulator says on the machine of the fault."""
    circuit = build_circuit(expected.graph, fault.machine(case))
    faulty = fault.plant(circuit)
    try:
        actual = evaluate(faulty, case.tensors, 4 * expected.cycles + 200, steps)
        return first_difference(circuit, expected, actual) is not None
    except (HardwareError, IndexError):
        return True


def _rule(op: str, label: str, change: Change) -> Callable[[Circuit], Circuit]:
    """A fault of the rules whose label is this one, or begins with it where none is."""

    def changed(module: Module) -> None:
        exact = [rule for rule in module.rules if rule.label == label]
        chosen = exact or [rule for rule in module.rules if rule.label.startswith(label)]
        module.rules = [change(module, rule) if rule in chosen else rule for rule in module.rules]

    return lambda circuit: _modules(circuit, op, changed)


def _modules(circuit: Circuit, op: str, change: Callable[[Module], None]) -> Circuit:
    units = []
    for unit in circuit.units:
        if op in ("", unit.node.op):
            change(unit.module)
        units.append(Unit(unit.node, unit.module, unit.latency))
    return replace(circuit, units=tuple(units))


def _channels(circuit: Circuit, change: Callable[[Channel], Channel]) -> Circuit:
    return replace(circuit, channels=tuple(change(channel) for channel in circuit.channels))


def _lower_stop(module: Module, rule: Rule) -> Rule:
    """Every stop that a rule gives, with its highest level one less or more."""
    gives = []
    for out, token in rule.gives:
        width = module.outputs[out]
        is_stop = token.bits(width, 2).is_(STOP)
        gives.append((out, token ^ (is_stop.fit(width + 2) << 4)))
    return replace(rule, gives=tuple(gives))


def _leave(module: Module, rule: Rule) -> Rule:
    return replace(rule, takes=rule.takes[:-1], looks=(*rule.looks, rule.takes[-1]))


def _slower(module: Module) -> None:
    module.interval, module.intervals = module.interval + 1, {on: cycles + 1 for on, cycles in module.intervals.items()}


def _faster(module: Module) -> None:
    module.interval, module.intervals = 1, dict.fromkeys(module.intervals, 1)


def _one_workspace(module: Module) -> None:
    module.registers["claimed"] = Register(module.registers["claimed"].width, 1)


def _later_turn(module: Module) -> None:
    module.registers["turn"] = Register(module.registers["turn"].width, 1)
