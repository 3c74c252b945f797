"""Dense random stand-ins between regions."""

from __future__ import annotations

import numpy as np
import pytest

from fuseflow.compiler import compile
from fuseflow.einsum.nodes import TensorType
from fuseflow.einsum.parse import parse
from fuseflow.run.compiled import Compiled
from fuseflow.run.isolated_regions import check_region, stand_in
from fuseflow.schedule import Schedule
from fuseflow.tensors import Format, pack
from fuseflow.tensors.blocks import from_blocks, to_blocks

ROWS = """
tensor A[10, 7] csr
tensor X[7, 6] dense
T[i, j] = sum(k) A[i, k] * X[k, j] - 3
m[i] = max(j) T[i, j]
E[i, j] = exp(T[i, j] - m[i])
s[j] = sum(i) E[i, j]
output s
"""


def program(*block: int) -> Compiled:
    rng = np.random.default_rng(0)
    data = {"A": rng.random((10, 7)) * (rng.random((10, 7)) < 0.3), "X": rng.random((7, 6))}
    schedule = Schedule.fuse("none").lower(intermediates="dense")
    return compile(parse(ROWS), tensors=data, schedule=schedule.block("A", *block) if block else schedule, machine="ideal")


@pytest.mark.parametrize("block", [(), (2, 7), (4, 4), (16, 3)])
def test_every_region_is_right_on_what_it_reads(block):
    outcome = program(*block).run().check
    assert outcome.passed and outcome.max_rel_error < 1e-5


def test_a_wrong_result_in_blocks_is_found():
    compiled = program(4, 4)
    memory = compiled.memory()
    (region,) = (r for r in compiled.regions if r.name == "T")
    wrong = to_blocks(pack(np.ones((10, 6), dtype=np.float32), Format.dense(2)), compiled.program.declared["T"].block)
    outcome = check_region(compiled.program, region, memory, {"T": wrong})
    assert outcome is not None and not outcome.passed


def test_numbers_do_not_depend_on_blocks_and_padding_stays():
    computed = pack(np.full((5, 6), 7, dtype=np.float32), Format.parse("(dense, dense) order (1, 0)", 2))
    plain = stand_in(TensorType("T", (5, 6)), computed, 3)
    type = TensorType("T", (5, 6), block=(4, 4))
    tiles = to_blocks(computed, type.block)
    tiles.values[tiles.values == 0] = 9  # what was computed of the padding
    replacement = stand_in(type, tiles, 3)
    np.testing.assert_array_equal(from_blocks(replacement, (5, 6), type.block).to_dense(), plain.to_dense())
    assert (replacement.values == 9).sum() == 8 * 8 - 5 * 6
