"""Write: streams go to memory, one token in each firing. A level that pads has a firing for each entry that a fiber lacks."""

from __future__ import annotations

from fuseflow.hardware.node_context import NodeContext
from fuseflow.rules.context import Builder
from fuseflow.rules.expressions import const, count_bits, mux
from fuseflow.rules.rules import EMPTY, Module
from fuseflow.samml import nodes as n

WRITTEN = "memory"
"""The output at which a writer gives what it takes."""


def write_level(node: n.WriteLevel, context: NodeContext, m: Module) -> None:
    _write(context, m, context.declared[node.tensor].room(node.level) or 0)


def write_values(node: n.WriteValues, context: NodeContext, m: Module) -> None:
    _write(context, m, context.declared[node.tensor].room(-1) or 0)


def _write(context: NodeContext, m: Module, room: int) -> None:
    """What is taken goes to the output `memory`, which always has room; a pad is `N` there. `room` is that of a fiber that is filled up,
    and 0 for other levels."""
    x = context.input(m, 0)
    memory = m.output(WRITTEN, x.width)
    ends = x.is_stop & x.low.is_(0)
    if not room:
        m.rule("value", ~x.control, [x], gives={memory: x.token})
        m.rule("control", x.control, [x], gives={memory: x.token}, closes=True)
        return
    filled = m.register("filled", count_bits(room + 1))
    lacks = filled < room
    m.rule("value", ~x.control, [x], gives={memory: x.token}, sets={"filled": filled + 1})
    m.rule("pad", ends & lacks, looks=[x], gives={memory: m.mark(memory, EMPTY)}, sets={"filled": filled + 1})
    after = mux(ends, const(0, filled.width), filled)
    m.rule("control", x.control & ~(ends & lacks), [x], gives={memory: x.token}, sets={"filled": after}, closes=True)


RULES: dict[type[n.Node], Builder] = {
    n.WriteLevel: write_level,
    n.WriteValues: write_values,
    n.WriteLaneLevel: write_level,
    n.WriteLaneValues: write_values,
}
