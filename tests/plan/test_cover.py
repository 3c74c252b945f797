"""The greedy cover of a mask by weighted blocks."""

from __future__ import annotations

import json
from math import inf, nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuseflow.cp_sat import CpSatProblem, Objective
from fuseflow.errors import PlanError
from fuseflow.plan.cover import Cover, Mask, Option, count_entries, cover

GOLDEN = json.loads((Path(__file__).parents[1] / "data" / "sparsity" / "block_cover.json").read_text())
MEASURED = [Option((32, 32), 1027.8), Option((4, 4), 16.1), Option((1, 1), 8.04)]


def golden_mask(case: dict[str, Any]) -> Mask:
    bits = np.unpackbits(np.frombuffer(bytes.fromhex(case["mask"]), np.uint8))
    return bits[: np.prod(case["shape"])].reshape(case["shape"]).astype(bool)


def chosen(found: Cover, options: list[Option]) -> list[list[list[int]]]:
    return [[list(options[number].size), start.tolist()] for number, starts in found.blocks for start in starts]


def literal(mask: Mask, options: list[Option]) -> list[list[list[int]]]:
    """What the rule says, literally: every block is looked at before each choice."""
    left, blocks = mask.copy(), []
    while left.any():
        keys = []
        for number, option in enumerate(options):
            counts = count_entries(left if option.holds is None else left & option.holds, option.size)
            keys += [(option.weight / counts[r, c], -option.area, number, r, c) for r, c in np.argwhere(counts)]
        _, _, number, r, c = min(keys)
        (height, width), holds = options[number].size, options[number].holds
        block = slice(r * height, (r + 1) * height), slice(c * width, (c + 1) * width)
        left[block] &= False if holds is None else ~holds[block]
        blocks.append([[height, width], [int(r) * height, int(c) * width]])
    return blocks


@pytest.mark.parametrize("case", GOLDEN, ids=range(len(GOLDEN)))
def test_the_cover_is_the_golden_one(case: dict[str, Any]):
    mask, options = golden_mask(case), [Option(tuple(size), weight) for size, weight in case["weights"]]
    found = cover(mask, options)
    assert chosen(found, options) == case["greedy"]
    assert found.cost == pytest.approx(case["greedy_cost"])
    assert ((found.owner >= 0) == mask).all()
    largest = max(option.area for option in options)
    assert case["optimal_cost"] - 1e-6 <= found.cost <= sum(1 / n for n in range(1, largest + 1)) * case["optimal_cost"] + 1e-6


@settings(deadline=None)
@given(st.data())
def test_any_cover_is_the_literal_one(data: st.DataObject):
    rng = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    mask = rng.random(rng.integers(0, 9, size=2)) < rng.random()
    sizes = data.draw(st.lists(st.tuples(st.integers(1, 4), st.integers(1, 4)), min_size=1, max_size=4))
    options = [Option(size, float(rng.integers(1, 9)) / 2, rng.random(mask.shape) < 0.7) for size in sizes]
    options.append(Option((1, 1), 1.5))
    found = cover(mask, options)
    assert chosen(found, options) == literal(mask, options)
    for number, option in enumerate(options):
        held = found.held_by(number)
        assert not (held & ~mask).any()
        assert option.holds is None or not (held & ~option.holds).any()
    assert sum(found.held_by(number).sum() for number in range(len(options))) == mask.sum()


def least_cost(mask: Mask, options: list[Option]) -> float:
    """Return the cost of the best cover, by CP-SAT: of the blocks that hold an entry, one is taken. Weights are multiples of 0.1."""
    entries, columns = np.argwhere(mask), mask.shape[1]
    places = [entries[:, 0] // height * columns + entries[:, 1] // width for height, width in (option.size for option in options)]
    blocks = [np.unique(place, return_inverse=True) for place in places]
    ends = np.cumsum([0, *(len(names) for names, _ in blocks)])
    weights = np.repeat([round(10 * option.weight) for option in options], np.diff(ends))
    problem = CpSatProblem([1] * len(weights))
    for holders in np.unique(np.stack([numbers + end for (_, numbers), end in zip(blocks, ends, strict=False)], axis=1), axis=0):
        problem.require(dict.fromkeys(holders.tolist(), 1), least=1)
    found = problem.minimize([Objective(weights, int(weights.sum()))])
    assert found is not None
    return float(weights @ found) / 10


@pytest.mark.parametrize("share", [0.05, 0.1, 0.2])  # the proof that a cover is the least takes minutes beyond
@pytest.mark.parametrize("seed", range(3))
def test_the_cover_costs_about_as_little_as_the_best(seed: int, share: float):
    mask = np.random.default_rng(seed).random((12, 16)) < share
    for sizes, most in (
        ({(4, 4): 16.1, (1, 1): 8.0}, 1.0),
        ({(4, 4): 16.1, (8, 8): 64.3}, 1.02),
        ({(3, 2): 2.0, (2, 3): 2.5}, 1.25),
    ):
        options = [Option(size, weight) for size, weight in sizes.items()]
        least, found = least_cost(mask, options), cover(mask, options).cost
        assert least - 1e-6 <= found <= most * least + 1e-6, sizes


def test_blocks_are_cut_at_the_edge_and_cost_the_same():
    found = cover(np.ones((5, 7), dtype=bool), [Option((4, 4), 10.0)])
    assert found.cost == 40.0
    assert (found.owner == 0).all()


def test_of_equal_ones_the_larger_comes_first_and_then_the_one_listed_first():
    full = np.ones((2, 2), dtype=bool)
    assert chosen(cover(full, small := [Option((1, 1), 1.0), Option((2, 2), 4.0)]), small) == [[[2, 2], [0, 0]]]
    assert [number for number, _ in cover(full, [Option((1, 2), 1.0), Option((2, 1), 1.0)]).blocks] == [0]


def test_measured_weights_take_a_block_where_it_is_worth_it():
    mask = np.zeros((64, 64), dtype=bool)
    mask[:32, :32] = True  # whole: 32x32 costs least
    mask[32:36, 32:36] = True  # 16 entries: 4x4
    mask[63, 63] = True  # one alone
    found = cover(mask, MEASURED)
    assert [found.held_by(number).sum() for number in range(3)] == [1024, 16, 1]
    assert found.cost == pytest.approx(1027.8 + 16.1 + 8.04)


@pytest.mark.parametrize("shape", [(0, 0), (0, 5), (5, 0), (3, 4)])
def test_nothing_to_cover_costs_nothing(shape: tuple[int, int]):
    found = cover(np.zeros(shape, dtype=bool), MEASURED)
    assert found.cost == 0 and found.blocks == () and found.owner.shape == shape


def test_a_mask_stays_as_it_was():
    mask = np.eye(4, dtype=bool)
    cover(mask, MEASURED)
    assert (mask == np.eye(4)).all()


@pytest.mark.parametrize("weight", [0.0, -1.0, inf, nan])
def test_a_weight_is_a_finite_number_above_0(weight: float):
    with pytest.raises(PlanError, match=rf"a weight of {weight:g} for `4x4`\n  hint: a weight is what a block costs"):
        Option((4, 4), weight)


@pytest.mark.parametrize("size", [(0, 4), (4,), (4, 4, 4), (-1, 1), ()])
def test_a_size_has_two_positive_numbers(size: tuple[int, ...]):
    with pytest.raises(PlanError, match="in a matrix\n  hint: a size has two positive numbers"):
        Option(size, 1.0)  # type: ignore[arg-type]


def test_a_cover_needs_a_size():
    with pytest.raises(PlanError, match="a cover without a size of blocks"):
        cover(np.eye(3, dtype=bool), [])


def test_what_nothing_can_hold_is_named():
    with pytest.raises(PlanError, match=r"no block can hold the entry \(1, 1\)"):
        cover(np.eye(3, dtype=bool), [Option((2, 2), 1.0, np.diag([True, False, True]))])


def test_a_large_weight_is_covered_soon():
    """768 x 3072 with half of its entries: every size of block has many different numbers of entries in it."""
    mask = np.random.default_rng(0).random((768, 3072)) < 0.5
    sizes = {(32, 32): 1027.8, (16, 16): 256.8, (8, 8): 64.3, (4, 4): 16.1, (1, 1): 8.04}
    found = cover(mask, [Option(size, weight) for size, weight in sizes.items()])
    assert ((found.owner >= 0) == mask).all()
