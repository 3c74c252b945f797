"""The weights of blocks as they are measured on machines."""

from __future__ import annotations

import pytest

import fuseflow as ff
from fuseflow.einsum.nodes import Program
from fuseflow.einsum.verify import verify
from fuseflow.errors import PlanError
from fuseflow.plan.block_costs import Arrays, BlockWeights, full_product
from fuseflow.plan.partition import Form
from fuseflow.plan.plan import Plan

WANTED = {
    "ideal": {"1x1": 8.04, "4x4": 16.1, "8x8": 64.3, "16x16": 256.8, "32x32": 1027.8, "32x1": 32.2, "1x32": 33.0},
    "rda": {"1x1": 8.84, "4x4": 17.8, "8x8": 65.4, "16x16": 261, "32x32": 1045.6, "32x1": 34.0, "1x32": 35.3},
}
"""The cycles of a block of 256 x 256 entries that were recorded when the weights were designed."""


def cycles(machine: ff.Machine, program: Program, arrays: Arrays) -> float:
    return ff.compile(program, tensors=arrays, machine=machine).run(check=False).cycles


@pytest.mark.parametrize("machine", WANTED)
def test_weights_are_the_recorded_ones(machine: str):
    weigh = BlockWeights(cycles).on(ff.load_machine(machine))
    assert {text: weigh(Form.parse(text)) for text in WANTED[machine]} == pytest.approx(WANTED[machine], rel=0.005)


def test_narrow_blocks_cost_less():
    weigh = BlockWeights(cycles).on(ff.load_machine("ideal"))
    assert weigh(Form((32, 32), dtype="i8")) <= 0.27 * weigh(Form((32, 32)))


def test_a_weight_is_measured_once_for_each_machine():
    asked = list[tuple[str, str]]()

    def counted(machine: str, program: Program, arrays: Arrays) -> float:
        asked.append((machine, program.name))
        return 4096.0 if machine == "slow" else 1024.0

    weights = BlockWeights(counted)
    slow, fast = weights.on("slow"), weights.on("fast")
    assert [slow(Form((4, 4))), slow(Form((4, 4))), fast(Form((4, 4))), slow(Form((8, 8)))] == [1.0, 1.0, 0.25, 4.0]
    assert asked == [("slow", "full_4x4"), ("fast", "full_4x4"), ("slow", "full_8x8")]


def test_a_plan_takes_them():
    plan = Plan.from_yaml("operands: {B: [{form: 4x4}, {form: elements}]}")
    weighed = plan.weighed(BlockWeights(lambda machine, program, arrays: 65536.0).on("any"))
    assert [part.weight for part in weighed.operands[0][1]] == [16.0, 1.0]


@pytest.mark.parametrize(("text", "shape"), [("5x7", (255, 252)), ("1x1", (256, 256)), ("1024x3", (1024, 255))])
def test_the_operand_is_a_whole_number_of_blocks(text: str, shape: tuple[int, int]):
    program = full_product(Form.parse(text))
    verify(program)
    assert program.declared["B"].shape == shape


def test_groups_have_no_weight():
    with pytest.raises(PlanError, match=r"`nm\(2:4\)` has no blocks"):
        full_product(Form.parse("nm(2:4)"))
