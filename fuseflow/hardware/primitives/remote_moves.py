"""The nodes that send lines at a memory that takes time: writers, and the root of a graph with tensors in the scratchpad.

A writer sends elements line by line, and continues once a line is sent. After `D` it sends the lines that are partly filled, one in each
firing. A root moves lines between the scratchpad and the memory, and waits until everything is loaded that the graph reads there. For each
transfer, port k of `TRANSFER_PORTS` asks for the lines k, k + `TRANSFER_PORTS`, and so on, one in a cycle. How many lines there are is
outside of the circuit, since it depends on the tensors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

from fuseflow.firing_rules.expressions import YES, Expr, all_of, const, count_bits
from fuseflow.firing_rules.rules import EMPTY, Head, Module
from fuseflow.hardware.node_context import NodeContext
from fuseflow.hardware.primitives.memory_ports import LINES, LanePort, WritePort
from fuseflow.memory.memory_interface import TRANSFER_PORTS
from fuseflow.primitives.scan import give_root
from fuseflow.primitives.write import WRITTEN
from fuseflow.samml import nodes as n
from fuseflow.samml.nodes import Transfer
from fuseflow.samml.writers import lane_part


def root(node: n.Root, context: NodeContext, m: Module) -> None:
    loaded = YES
    for transfer in context.transfers:
        lines, answers = _moves(context, m, transfer)
        if transfer == "moved":
            m.loaded = loaded = reduce(lambda total, count: total + count, answers).is_(lines)
    give_root(context, m, loaded)


def _moves(context: NodeContext, m: Module, transfer: Transfer) -> tuple[Expr, list[Expr]]:
    """Add the processes that request the lines of a transfer. Return the number of lines, and the answers that each port had."""
    assert context.scratchpad is not None and context.memory is not None
    width = count_bits(
        context.scratchpad.bytes // min(context.scratchpad.bytes_a_cycle, context.memory.line) + TRANSFER_PORTS + 1
    )
    lines, answers = m.array(f"{transfer}{LINES}", const(0, 1), width), list[Expr]()
    for k in range(TRANSFER_PORTS):
        kind = f"{transfer}{k}"
        answers.append(m.port(kind, width, width, write=transfer == "behind"))
        line, request, on = m.register(f"{kind}_line", width, k), m.ports[kind].request, f"moves_{kind}"
        m.helper(on)
        sets = {f"{kind}_line": line + TRANSFER_PORTS}
        m.rule(f"moves {kind}", line < lines, gives={request: m.value(request, line)}, sets=sets, on=on)
    return lines, answers


def write_level(node: n.WriteLevel, context: NodeContext, m: Module) -> None:
    """Add the rules of a writer of a level: it writes arrays with an element per entry at each entry, others at a fiber's end."""
    arrays = context.level(node).arrays(context.size(node))
    entry, closing = None, list[WritePort]()
    x = context.input(m, 0)
    for stored in sorted(arrays, key=lambda stored: stored.entry == 0):
        port = WritePort(context, m, stored.kind, (stored.entry or stored.fiber) * stored.bits, stored.first * stored.bits)
        if stored.entry:
            entry = port
        else:
            closing.append(port)
    _write(context, m, x, entry, closing, context.declared[node.tensor].room(node.level) or 0)


def write_values(node: n.WriteValues, context: NodeContext, m: Module) -> None:
    decl, x = context.declared[node.tensor], context.input(m, 0)
    _write(context, m, x, WritePort(context, m, "val", decl.value_bits), [], decl.room(-1) or 0)


def write_lane_values(node: n.WriteLaneValues, context: NodeContext, m: Module) -> None:
    decl, x = context.declared[node.tensor], context.input(m, 0)
    _write(context, m, x, LanePort(context, m, "val", decl.value_bits, lane_part(node, decl)), [], 0)


def _write(context: NodeContext, m: Module, x: Head, entry: WritePort | None, closing: Sequence[WritePort], room: int) -> None:
    """Add the rules of a writer of tokens `x`: values go to the port `entry`, ends of fibers to `closing`. Fibers are padded to
    `room` entries. After `D` a register of each port says whether a partly filled line is `left` to be sent: the node is busy then,
    which the end of a run with a scratchpad depends on."""
    memory = m.output(WRITTEN, x.width)
    ports = [*([entry] if entry else []), *closing]
    left = [m.register(f"{port.kind}_left", 1) for port in ports]
    open_ = all_of(~register for register in left)
    m.busy = ~open_ if context.scratchpad is not None else None
    ends, value = open_ & x.is_stop & x.low.is_(0), open_ & ~x.control
    taken: dict[str, Expr] = {memory: x.token}
    counted: dict[str, Expr | int] = {}
    begun: dict[str, Expr | int] = {}
    if room:
        filled = m.register("filled", count_bits(room + 1))
        lacks, counted, begun = ends & (filled < room), {"filled": filled + 1}, {"filled": 0}
        assert entry is not None, "a fiber with room has entries"
        entry.put("pad", lacks, [], [x], {memory: m.mark(memory, EMPTY)}, counted)
        ends = ends & ~lacks
    if entry is None:
        m.rule("value", value, [x], gives=taken)
    else:
        entry.put("value", value, [x], [], taken, counted)
    if closing:
        _close(m, x, ends, closing, taken, begun)
    else:
        m.rule("end", ends, [x], gives=taken, sets=begun, closes=True)
    m.rule("stop", open_ & x.is_stop & x.low.is_not(0), [x], gives=taken, closes=True)
    partial: dict[str, Expr | int] = {f"{port.kind}_left": port.is_begun for port in ports}
    m.rule("done", open_ & x.is_done, [x], gives=taken, sets=partial, closes=True)
    for k, port in enumerate(ports):
        mine = left[k] & all_of(~other for other in left[:k])
        m.rule(f"flushes {port.kind}", mine, gives=port.asked(), sets={f"{port.kind}_left": 0})


def _close(
    m: Module, x: Head, ends: Expr, closing: Sequence[WritePort], taken: Mapping[str, Expr], begun: Mapping[str, Expr | int]
) -> None:
    """Add the rules for the end of a fiber: the ports write one after the other, and the last takes the stop."""
    turn = m.register("turn", count_bits(len(closing)))
    for k, port in enumerate(closing):
        mine = ends & turn.is_(k)
        if k < len(closing) - 1:
            port.put(f"closes {k}", mine, [], [x], {}, {"turn": k + 1})
        else:
            port.put(f"closes {k}", mine, [x], [], taken, {**begun, "turn": 0})
