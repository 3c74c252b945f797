"""The n:m part of an operand, and the residue that it leaves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuseflow.errors import PlanError
from fuseflow.plan.partition import nm_part
from fuseflow.tensors import Format, pack

GOLDEN = json.loads((Path(__file__).parents[1] / "data" / "sparsity" / "nm_residual.json").read_text())


@pytest.mark.parametrize("case", GOLDEN, ids=lambda case: f"{case['n']}:{case['m']} {case['sparsity']:.0%}")
def test_the_residue_is_the_golden_one(case: dict[str, Any]):
    mask = np.random.default_rng(900).random((1024, 1024)) >= case["sparsity"]
    residue = (mask & ~nm_part(mask, case["n"], case["m"])).mean()
    assert residue == pytest.approx(case["residual"], abs=5e-6)
    assert residue == pytest.approx(case["closed"], abs=1e-3)


@given(st.integers(0, 10**6), st.integers(1, 5), st.integers(0, 4), st.sampled_from([0, 1, -1]))
def test_the_part_is_what_a_loop_takes(seed: int, n: int, more: int, axis: int):
    rng, m = np.random.default_rng(seed), n + more
    mask = rng.random(rng.integers(0, 12, size=2)) < rng.random()
    part = nm_part(mask, n, m, axis)
    assert part.shape == mask.shape
    lines = (mask.T, part.T) if axis == 0 else (mask, part)
    for given_line, taken in zip(*lines, strict=True):
        for start in range(0, len(given_line), m):
            first = np.flatnonzero(given_line[start : start + m])[:n]
            assert np.flatnonzero(taken[start : start + m]).tolist() == first.tolist()


def test_the_level_has_room_for_the_part():
    values = np.where(np.random.default_rng(0).random((5, 11)) < 0.6, 2.0, 0)
    part = np.where(nm_part(values != 0, 2, 4), values, 0)
    assert (pack(part, Format.parse("nm(2:4)", 2)).to_dense() == part).all()


@pytest.mark.parametrize(("n", "m"), [(0, 4), (5, 4), (-1, 2), (1, 0)])
def test_what_is_no_pattern_is_refused(n: int, m: int):
    with pytest.raises(PlanError, match=f"{n} of every {m} coordinates\n  hint: the entries come first"):
        nm_part(np.eye(4, dtype=bool), n, m)
