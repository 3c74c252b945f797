"""The bits of tokens that a channel must carry: those that its writer may set and its reader uses. Other bits are zero there.

For example, the references that `root` emits are zero, so its channels carry only the kind of a token. A `repeat` uses the kind
and the levels of its signal's tokens, and not their coordinates.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby

from fuseflow.firing_rules.expressions import Expr
from fuseflow.hardware.circuit import Channel, Circuit
from fuseflow.hardware.rule_netlist import Netlist, expressions


def kept_bits(circuit: Circuit, netlists: Mapping[str, Netlist]) -> dict[Channel, int]:
    """Return a mask of the bits that each channel of a circuit keeps. `netlists` has each unit's netlist, by the node's name."""
    given = given_bits(circuit, netlists)
    read = {node: read_bits(parts) for node, parts in netlists.items()}
    return {c: given[c.writer, c.output] & read[c.reader].get(c.input, 0) for c in circuit.channels}


def read_bits(parts: Netlist) -> dict[str, int]:
    """Return, for each input of a module, a mask of the bits on which anything in the module depends."""
    masks: dict[str, int] = {}
    for root in parts.roots():
        if root.op == "token":
            masks[root.name] = _all(root.width)
    for expr in expressions(parts.roots()):
        for arg in expr.args:
            if arg.op == "token":
                bits = _all(expr.width) << expr.number if expr.op == "extract" else _all(arg.width)
                masks[arg.name] = masks.get(arg.name, 0) | bits
    return masks


def given_bits(circuit: Circuit, netlists: Mapping[str, Netlist]) -> dict[tuple[str, str], int]:
    """Return, for each output of each node, a mask of the bits that may be one. The search starts with the first values of
    registers and no tokens. It adds the bits that can then be set, until none is added."""
    given = {(c.writer, c.output): 0 for c in circuit.channels}
    readers: dict[tuple[str, str], list[Channel]] = {}
    for channel in circuit.channels:
        readers.setdefault((channel.writer, channel.output), []).append(channel)
    inputs: dict[str, dict[str, int]] = {node: {} for node in netlists}
    registers = {node: {k: r.initial for k, (r, _) in parts.registers.items()} for node, parts in netlists.items()}
    waiting = dict.fromkeys(netlists)
    while waiting:
        node = next(iter(waiting))
        del waiting[node]
        outputs = _settled(netlists[node], inputs[node], registers[node])
        for name, mask in outputs.items():
            key = node, name.removesuffix("_data")
            if key in given and mask & ~given[key]:
                given[key] |= mask
                for channel in readers[key]:
                    inputs[channel.reader][channel.input] = given[key]
                    waiting[channel.reader] = None
    return given


def _settled(parts: Netlist, inputs: Mapping[str, int], registers: dict[str, int]) -> dict[str, int]:
    """Extend `registers` by all bits that these inputs can set, and return masks of the outputs' bits that may be one."""
    while True:
        ones = _Ones(inputs, registers)
        states = {name: registers[name] | ones.of(state) for name, (_, state) in parts.registers.items()}
        if states == registers:
            return {name: ones.of(expr) for name, expr in parts.outputs.items() if name.endswith("_data")}
        registers.update(states)


@dataclass(frozen=True, slots=True, eq=False)
class _Ones:
    """The bits of expressions that may be one, given the bits of inputs and registers that may be one."""

    inputs: Mapping[str, int]
    registers: Mapping[str, int]
    known: dict[int, int] = field(default_factory=dict)

    def of(self, expr: Expr) -> int:
        """Return a mask of the bits of an expression that may be one."""
        for part in _operands_first(expr, self.known):
            self.known[id(part)] = self._of(part, [self.known[id(arg)] for arg in part.args]) & _all(part.width)
        return self.known[id(expr)]

    def _of(self, expr: Expr, args: list[int]) -> int:
        match expr.op:
            case "const":
                return expr.number
            case "token":
                return self.inputs.get(expr.name, 0)
            case "register":
                return self.registers[expr.name]
            case "and":
                return args[0] & args[1]
            case "or" | "xor" | "add" if 0 in args:
                return args[0] | args[1]
            case "or" | "xor":
                return args[0] | args[1]
            case "add":
                return _all(max(arg.bit_length() for arg in args) + 1)
            case "sub" if args[1] == 0:
                return args[0]
            case "divu" | "modu" | "shru":
                return _all(args[0].bit_length())
            case "mux":
                return args[1] | args[2]
            case "extract":
                return args[0] >> expr.number
            case "concat":
                joined = 0
                for part, mask in zip(expr.args, args, strict=True):
                    joined = joined << part.width | mask
                return joined
            case "wire":
                return args[0]
            case _:
                return _all(expr.width)


def _operands_first(expr: Expr, known: Mapping[int, int]) -> Iterator[Expr]:
    """Yield the subexpressions of an expression whose ids are not in `known`, each after its operands."""
    waiting = [expr]
    while waiting:
        part = waiting[-1]
        missing = [arg for arg in part.args if id(arg) not in known]
        if id(part) in known:
            waiting.pop()
        elif missing:
            waiting += missing
        else:
            yield waiting.pop()


def runs(mask: int, width: int) -> Iterator[tuple[int, int, bool]]:
    """Return the runs of equal bits of a word, the lowest first: the lowest bit, the number of bits, and whether they are ones.

    >>> list(runs(0b11001, 6))
    [(0, 1, True), (1, 2, False), (3, 2, True), (5, 1, False)]
    """
    low = 0
    for is_one, bits in groupby(bool(mask >> bit & 1) for bit in range(width)):
        length = len(list(bits))
        yield low, length, is_one
        low += length


def _all(width: int) -> int:
    return (1 << width) - 1
