"""Write: streams go to memory, one token in each firing. A level that pads has a firing for each entry that a fiber lacks."""

from __future__ import annotations

from fuseflow.firing_rules.context import Builder, RuleContext
from fuseflow.firing_rules.expressions import const, count_bits, mux
from fuseflow.firing_rules.rules import EMPTY, Module
from fuseflow.samml import nodes as n

WRITTEN = "memory"
"""The output at which a writer gives the tokens that it takes."""


def write(node: n.WriteLevel | n.WriteValues, context: RuleContext, m: Module) -> None:
    """Every token that is taken goes to the output `memory`, which always has room; a pad is `N` there."""
    x, room = context.input(m, 0), context.room(node)
    memory = m.output(WRITTEN, x.width)
    ends = x.is_stop & x.low.is_(0)
    if not room:
        m.rule("value", ~x.control, [x], gives={memory: x.token}, refuses=x)
        m.rule("control", x.control, [x], gives={memory: x.token}, closes=True)
        return
    filled = m.register("filled", count_bits(room + 1))
    lacks = filled < room
    m.rule("value", ~x.control, [x], gives={memory: x.token}, sets={"filled": filled + 1}, refuses=x)
    m.rule("pad", ends & lacks, looks=[x], gives={memory: m.mark(memory, EMPTY)}, sets={"filled": filled + 1})
    after = mux(ends, const(0, filled.width), filled)
    m.rule("control", x.control & ~(ends & lacks), [x], gives={memory: x.token}, sets={"filled": after}, closes=True)


RULES: dict[type[n.Node], Builder] = dict.fromkeys((n.WriteLevel, n.WriteValues, n.WriteLaneLevel, n.WriteLaneValues), write)
