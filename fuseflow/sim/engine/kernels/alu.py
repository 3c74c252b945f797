"""The primitive `alu` is a pointwise operator on aligned values. Operators on tiles have another kernel (`tiles.py`)."""

from __future__ import annotations

from typing import Any

from fuseflow.native.records import Record, get_int, inline
from fuseflow.native.signatures import ELEMENTWISE, call_elementwise
from fuseflow.samml import nodes as n
from fuseflow.sim.engine.kernels.pointwise import (
    NO_INPUT,
    elementwise,
    look_at_operands,
    operand_inputs,
    pass_control,
    push_results,
)
from fuseflow.sim.engine.kernels.tiles import alu_on_tiles, takes_tiles
from fuseflow.sim.engine.node_layout import LayoutRule, NodeLayout, Part
from fuseflow.sim.engine.node_records import close, node_at, source, target
from fuseflow.sim.engine.stream_rings import REPEATED, SCRATCH, SLICE, WORD_OFFSET, head_address, head_run, scratch_address

ALU = Record("function input0 input1 input2 sums behind", floats="value0 value1 value2")
"""Each operand slot has the input that feeds it (NO_INPUT: none), and its constant or the value of an `N`. `sums` says whether a
firing follows on a stop that is not behind a value, as on sums on `comal`, and `behind` whether the last token was a value."""
state_at = ALU.at
VALUE0, VALUE1, VALUE2 = (ALU.offset(f"value{slot}") for slot in range(3))


def alu(node: n.Alu, layout: NodeLayout) -> list[Part]:
    if takes_tiles(node, layout):
        return alu_on_tiles(node, layout)
    state: dict[str, float] = {
        "function": layout.library.address(elementwise(node.function, layout.arithmetic), ELEMENTWISE),
        "sums": layout.sums,
    }
    for slot, (q, value) in enumerate(operand_inputs(node)):
        state[f"input{slot}"], state[f"value{slot}"] = q, value
    return layout.part(run_alu, layout.state(ALU, **state))


def run_alu(address: int) -> int:
    """Run the part at an address: fire once for each token, and take one token of every operand together."""
    node = node_at(address)
    s = state_at(node.state)
    out = target(node, 0)
    while True:
        k, visible_at, controls = look_at_operands(node)
        if k == 0:
            return 0
        if controls > 0:
            if not pass_control(node, visible_at):
                return 0
            if s.sums > s.behind:
                close(node, 0, 0)
            s.behind = 0
            continue
        s.behind = 1
        a, sa = _operand(node, s.input0, node.state + VALUE0)
        b, sb = _operand(node, s.input1, node.state + VALUE1)
        c, sc = _operand(node, s.input2, node.state + VALUE2)
        kind, word = SCRATCH, scratch_address(out)
        varies = sa + sb + sc > 0
        call_elementwise(s.function, word, k if varies else 1, a, sa, b, sb, c, sc)
        if not varies:
            kind, word = REPEATED, get_int(word, 0)
        push_results(node, visible_at, kind, word, k)


@inline
def _operand(node: Any, q: int, constant: int) -> tuple[int, int]:
    """Return the address of the next values of input q and their stride (0: one value for all). `constant` is the address for no
    input or `N`."""
    if q == NO_INPUT:
        return constant, 0
    reader = source(node, q)
    run = head_run(reader)
    if run.kind >= SLICE:
        return run.word + 8 * reader.offset, 1
    if run.kind == REPEATED:
        return head_address(reader) + WORD_OFFSET, 0
    return constant, 0


RULES: dict[type[n.Node], LayoutRule] = {n.Alu: alu}
