"""Scale: every value times a constant."""

from __future__ import annotations

from fuseflow.samml import nodes as n
from fuseflow.sim.engine.kernels.elementwise_functions import elementwise, look_at_operands, push_results
from fuseflow.sim.engine.node_layout import LayoutRule, NodeLayout, Part
from fuseflow.sim.engine.node_firing import node_at, pass_control, source, target
from fuseflow.sim.engine.stream_rings import REPEATED, SCRATCH, WORD_OFFSET, head_address, head_run, scratch_address
from fuseflow.native.records import Record, get_int
from fuseflow.native.signatures import ELEMENTWISE, call_elementwise

SCALE = Record("function", floats="factor")
state_at = SCALE.at
FACTOR = SCALE.offset("factor")


def scale(node: n.Scale, layout: NodeLayout) -> list[Part]:
    multiply = layout.library.address(elementwise("mul", layout.arithmetic), ELEMENTWISE)
    return layout.part(run_scale, layout.state(SCALE, function=multiply, factor=node.factor))


def run_scale(address: int) -> int:
    """Fire once for each token. A run that repeats one value is multiplied once."""
    node = node_at(address)
    s = state_at(node.state)
    value, out, factor = source(node, 0), target(node, 0), node.state + FACTOR
    while True:
        k, visible_at, controls = look_at_operands(node)
        if k == 0:
            return 0
        if controls > 0:
            if not pass_control(node, head_run(value).word, visible_at, out.free):
                return 0
            continue
        run, word = head_run(value), scratch_address(out)
        if run.kind == REPEATED:
            call_elementwise(s.function, word, 1, head_address(value) + WORD_OFFSET, 0, factor, 0, factor, 0)
            push_results(node, visible_at, REPEATED, get_int(word, 0), k)
        else:
            call_elementwise(s.function, word, k, run.word + 8 * value.offset, 1, factor, 0, factor, 0)
            push_results(node, visible_at, SCRATCH, word, k)


RULES: dict[type[n.Node], LayoutRule] = {n.Scale: scale}
