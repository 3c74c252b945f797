"""The netlist of a module's rules: outputs and next states of registers as expressions of inputs and registers.

Every rule has an enable: its guard holds, its heads are visible, its outputs have room, and the interval of its process is over. Where
the module has a turn at a port, a rule for values waits for it, too.
An output is valid if a rule that emits a token there is enabled, and a register changes to the value that the enabled rule sets.
Since the rules of a process exclude each other, their order does not matter.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from fuseflow.firing_rules.expressions import Expr, all_of, any_of, choose, const, count_bits, mux
from fuseflow.firing_rules.rules import KIND_BITS, LOADED, Memory, Module, Register, Rule
from fuseflow.samml.hops import Turn

ANSWERS = "answers"
"""The suffix, after the kind of the array, of the input with the number of answers that a reading port had."""

BUSY = "busy"
"""The output that says that the node fires again after `D`."""

LATE = "late"
"""The suffix, after the name of a stream, of the output that says that the data replace the last token."""


@dataclass(frozen=True, slots=True, eq=False)
class WritePort:
    """A write to a memory: whether it happens, its address, and its data."""

    enable: Expr
    address: Expr
    data: Expr


@dataclass(frozen=True, slots=True, eq=False)
class Netlist:
    """A module as registers and wires. `inputs` has names and widths; registers and memories have their next state or write.
    `fires` names the enables of the rules of each process."""

    inputs: tuple[tuple[str, int], ...]
    outputs: dict[str, Expr]
    registers: dict[str, tuple[Register, Expr]]
    memories: dict[str, tuple[Memory, WritePort]]
    fires: dict[str, tuple[str, ...]]

    @property
    def clocked(self) -> bool:
        """Whether the module has state: registers or memories."""
        return bool(self.registers or self.memories)

    def roots(self) -> Iterator[Expr]:
        """Yield all expressions of the module: outputs, next states, and the operands of writes to memories."""
        yield from self.outputs.values()
        yield from (state for _, state in self.registers.values())
        for _, port in self.memories.values():
            yield from (port.enable, port.address, port.data)

    def reads(self) -> dict[str, list[Expr]]:
        """Return the read expressions of each memory, one for each different address."""
        reads: dict[str, dict[int, Expr]] = {}
        for expr in expressions(self.roots()):
            if expr.op == "memory":
                reads.setdefault(expr.name, {}).setdefault(id(expr.args[0]), expr)
        return {name: list(ports.values()) for name, ports in reads.items()}


def fire_name(rule: Rule) -> str:
    """Return the name of the wire that says that a rule fires.

    >>> from fuseflow.firing_rules.expressions import YES
    >>> fire_name(Rule("keeps 0-1", "", YES, (), (), (), (), (), False))
    'fire_keeps_0_1'
    """
    return "fire_" + "".join(c if c.isalnum() else "_" for c in rule.label)


def netlist(module: Module) -> Netlist:
    """Return the netlist of a module's rules. Raises `ValueError` if two rules have one name."""
    registers = dict(module.registers)
    pauses = {on: _pause(registers, on, max(module.interval_of(on), module.pause_of(on))) for on in module.processes}
    turn = _turn(registers, module.port_turn)
    enables = [_enable(rule, pauses[rule.on], None if rule.closes else turn) for rule in module.rules]
    names = [enable.name for enable in enables]
    if len(set(names)) != len(names):
        raise ValueError(f"two rules of `{module.op}` have one name: {sorted(names)}")
    chosen = list(zip(module.rules, enables, strict=True))
    outputs = _outputs(module, chosen)
    states = dict[str, Expr]()
    for name, register in module.registers.items():
        changes = [(enable, state) for rule, enable in chosen for changed, state in rule.sets if changed == name]
        states[name] = choose(changes, Expr("register", (), register.width, name))
    for on, pause in pauses.items():
        if pause is not None:
            values = any_of(enable for rule, enable in chosen if rule.on == on and not rule.closes)
            stops = any_of(enable for rule, enable in chosen if rule.on == on and rule.closes)
            counted = mux(pause.is_(0), pause, pause - 1)
            behind = counted if module.pause_of(on) == 1 else mux(stops, const(module.pause_of(on) - 1, pause.width), counted)
            states[pause.name] = mux(values, const(module.interval_of(on) - 1, pause.width), behind)
    if turn is not None and module.port_turn is not None:
        states[turn.name] = mux(turn.is_(0), const(module.port_turn.of - 1, turn.width), turn - 1)
    outputs |= {name: expr for name, expr in ((BUSY, module.busy), (LOADED, module.loaded)) if expr is not None}
    memories = {name: (memory, _write_port(name, memory, chosen)) for name, memory in module.memories.items()}
    fires = {on: tuple(enable.name for rule, enable in chosen if rule.on == on) for on in module.processes}
    ports = [part for _, port in memories.values() for part in (port.enable, port.address, port.data)]
    read = {e.name: e.args[0] for e in expressions([*outputs.values(), *states.values(), *enables, *ports]) if e.op == "array"}
    addresses = dict(sorted(read.items()))
    arrays = tuple((f"{name}_data", module.arrays[name]) for name in addresses)
    answers = tuple((f"{kind}_{ANSWERS}", port.answers) for kind, port in module.ports.items() if not port.write)
    loaded = ((LOADED, 1),) if module.awaits_load else ()
    return Netlist(
        (*_stream_ports(module), *answers, *loaded, *arrays),
        outputs | {f"{name}_address": address for name, address in addresses.items()},
        {name: (registers[name], state) for name, state in states.items()},
        memories,
        fires,
    )


def _stream_ports(module: Module) -> Iterator[tuple[str, int]]:
    for name, head in module.inputs.items():
        yield f"{name}_valid", 1
        yield f"{name}_data", head.width + KIND_BITS
    yield from ((f"{name}_ready", 1) for name in module.outputs)


def _pause(registers: dict[str, Register], on: str, interval: int) -> Expr | None:
    """Return a new register that counts the cycles until process `on` may fire again, or None if that is always the next."""
    if interval == 1:
        return None
    name = f"pause_{on}" if on else "pause"
    registers[name] = Register(count_bits(interval))
    return Expr("register", (), registers[name].width, name)


def _turn(registers: dict[str, Register], turn: Turn | None) -> Expr | None:
    """Return a new register that counts the cycles until the turn of the module, or None without turns."""
    if turn is None:
        return None
    registers["port_turn"] = Register(count_bits(turn.of), turn.number)
    return Expr("register", (), registers["port_turn"].width, "port_turn")


def _enable(rule: Rule, *counters: Expr | None) -> Expr:
    conditions = [rule.when, *(Expr("port", (), 1, f"{head}_valid") for head in rule.heads)]
    conditions += [Expr("port", (), 1, f"{out}_ready") for out in rule.rooms]
    conditions += [counter.is_(0) for counter in counters if counter is not None]
    return Expr("wire", (all_of(conditions),), 1, fire_name(rule))


def _outputs(module: Module, chosen: list[tuple[Rule, Expr]]) -> dict[str, Expr]:
    outputs = {f"{name}_take": any_of(enable for rule, enable in chosen if name in rule.takes) for name in module.inputs}
    gives = [(out, enable, token) for rule, enable in chosen for out, token in rule.gives]
    lates = [(out, enable, token) for rule, enable in chosen for out, token in rule.late]
    for name, width in module.outputs.items():
        given, late = ([(on, token) for out, on, token in tokens if out == name] for tokens in (gives, lates))
        outputs[f"{name}_valid"] = any_of(enable for enable, _ in given)
        outputs[f"{name}_data"] = choose([*given, *late], const(0, width + KIND_BITS))
        if late:
            outputs[f"{name}_{LATE}"] = any_of(enable for enable, _ in late)
    return outputs


def _write_port(name: str, memory: Memory, chosen: list[tuple[Rule, Expr]]) -> WritePort:
    stores = [(enable, store) for rule, enable in chosen for store in rule.stores if store.memory == name]
    width = count_bits(memory.depth)
    address = choose([(enable, store.address.fit(width)) for enable, store in stores], const(0, width))
    data = choose([(enable, store.data) for enable, store in stores], const(0, memory.width))
    return WritePort(any_of(enable for enable, _ in stores), address, data)


def expressions(roots: Iterable[Expr]) -> Iterator[Expr]:
    """Yield these expressions and all of their operands, each one once."""
    waiting, visited = list(roots), set[int]()
    while waiting:
        expr = waiting.pop()
        if id(expr) not in visited:
            visited.add(id(expr))
            waiting += expr.args
            yield expr
