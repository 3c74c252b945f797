"""The root of a graph with tensors in the scratchpad: processes that move lines between the scratchpad and the memory, and the root
itself, which waits until everything is loaded that the graph reads there.

For each transfer, port k of `TRANSFER_PORTS` asks for the lines k, k + `TRANSFER_PORTS`, and so on, one in a cycle. How many lines
there are is outside of the circuit, since it depends on the tensors.
"""

from __future__ import annotations

from functools import reduce

from fuseflow.firing_rules.expressions import YES, Expr, const, count_bits
from fuseflow.firing_rules.rules import Module
from fuseflow.hardware.node_context import NodeContext
from fuseflow.hardware.primitives.memory_ports import LINES
from fuseflow.memory.memory_interface import TRANSFER_PORTS
from fuseflow.primitives.scan import give_root
from fuseflow.samml import nodes as n
from fuseflow.samml.nodes import Transfer


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
