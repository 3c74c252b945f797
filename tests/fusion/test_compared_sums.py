"""A sum that is compared with itself is computed once: two loops may add its terms in other orders."""

from __future__ import annotations

import numpy as np
import pytest

import fuseflow as ff
from fuseflow.einsum.format_inference import infer
from fuseflow.einsum.parse import parse
from fuseflow.errors import FusionError
from fuseflow.fusion import fuse

TWO_LOOPS = """
tensor T[6, 7, 9] dense
s[i] = sum(j, k) T[j, k, i]
r[i] = sum(j) where(s[j] == s[i], 1, 0)
output r
"""
PRODUCT = """
tensor T[9, 12] dense
tensor x[12] dense
s[i] = sum(k) T[i, k] * x[k]
r[i] = sum(j) where(s[j] == s[i], 1, 0)
output r
"""


@pytest.mark.parametrize(
    ("text", "shapes", "lanes"),
    [
        (TWO_LOOPS, {"T": (6, 7, 9)}, ()),
        (PRODUCT, {"T": (9, 12), "x": (12,)}, ()),
        (PRODUCT, {"T": (9, 12), "x": (12,)}, (("k", 2),)),
    ],
)
def test_a_sum_equals_itself_in_full_fusion(
    text: str, shapes: dict[str, tuple[int, ...]], lanes: tuple[tuple[str, int], ...]
) -> None:
    rng = np.random.default_rng(0)
    tensors = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    schedule = ff.Schedule(fuse_regions=("full",), parallel=lanes)
    run = ff.compile(parse(text), tensors=tensors, schedule=schedule).run()
    np.testing.assert_array_equal(run.outputs["r"], np.ones(9))


@pytest.mark.parametrize(
    ("reduction", "dtype", "refused"), [("sum", "f32", True), ("prod", "f32", True), ("max", "f32", False), ("sum", "i32", False)]
)
def test_only_reductions_that_round_are_refused(reduction: str, dtype: str, refused: bool) -> None:
    text = TWO_LOOPS.replace("s[i] = sum", f"s[i] = {reduction}").replace("dense", f"dense {dtype}")
    program = infer(parse(text))
    stored = {"T": program.declared["T"]}
    if refused:
        with pytest.raises(FusionError, match="region `full` compares `s` with itself"):
            fuse(program, "full", ["s", "r"], ["r"], stored, merge="never")
    else:
        assert fuse(program, "full", ["s", "r"], ["r"], stored, merge="never").repeated == {"s"}
