"""Scale: every value times a constant."""

from __future__ import annotations

from fuseflow.samml import nodes as n
from fuseflow.sim.engine.kernels.pointwise import look_at_operands, pass_control, push_results
from fuseflow.sim.engine.node_layout import LayoutRule, NodeLayout, Part
from fuseflow.sim.engine.node_records import node_at, source, target
from fuseflow.sim.engine.stream_rings import REPEATED, SCRATCH, WORD_OFFSET, head_address, head_run, scratch_address
from fuseflow.sim.native.records import Record, get_float, get_int, set_float

SCALE = Record("", floats="factor product")
state_at = SCALE.at
PRODUCT = SCALE.offset("product")


def scale(node: n.Scale, layout: NodeLayout) -> list[Part]:
    return layout.part(run_scale, layout.state(SCALE, factor=node.factor))


def run_scale(address: int) -> int:
    """Fire once for each token. A run that repeats one value is multiplied once."""
    node = node_at(address)
    s = state_at(node.state)
    value, out = source(node, 0), target(node, 0)
    while True:
        k, visible_at, controls = look_at_operands(node)
        if k == 0:
            return 0
        if controls > 0:
            if not pass_control(node, visible_at):
                return 0
            continue
        run = head_run(value)
        if run.kind == REPEATED:
            s.product = s.factor * get_float(head_address(value) + WORD_OFFSET, 0)
            push_results(node, visible_at, REPEATED, get_int(node.state + PRODUCT, 0), k)
            continue
        word, values = scratch_address(out), run.word + 8 * value.offset
        for i in range(k):
            set_float(word, i, s.factor * get_float(values, i))
        push_results(node, visible_at, SCRATCH, word, k)


RULES: dict[type[n.Node], LayoutRule] = {n.Scale: scale}
