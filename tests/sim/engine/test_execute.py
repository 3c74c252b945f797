"""The smallest depth of a FIFO that clears a deadlock, in few runs to the end, however deep it is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pytest
from row_graphs import offsets

from fuseflow.errors import DeadlockError
from fuseflow.samml.nodes import Edge
from fuseflow.sim import Machine, simulate
from fuseflow.sim.engine.execute import NEAR, smallest_clearing_depth
from fuseflow.sim.outcome.deadlock import MOST_SLOTS
from fuseflow.tensors import pack

OFFSETS = offsets(2, 700)


@pytest.mark.parametrize("stuck", [1, 16, 2048])
@pytest.mark.parametrize("beyond", [1, 2, NEAR, NEAR + 1, 2 * NEAR, 5_000, 70_001, MOST_SLOTS // 2])
def test_the_depth_is_tight_and_runs_to_the_end_are_few(stuck: int, beyond: int) -> None:
    needed, ended, attempted = stuck + beyond, 0, 0

    def clearing_depth(depths: Iterable[int]) -> int | None:
        nonlocal ended, attempted
        for depth in depths:
            attempted += 1
            if depth >= needed:
                ended += 1
                return depth
        return None

    assert smallest_clearing_depth(stuck, clearing_depth) == needed
    assert ended <= 3
    assert attempted <= 3_000


def test_a_fifo_that_clears_nothing_is_not_deepened_for_ever() -> None:
    assert smallest_clearing_depth(16, lambda depths: None if sum(1 for _ in depths) else 0) is None


def test_a_row_that_is_far_longer_than_its_fifo() -> None:
    tensors = {"x": pack(np.arange(1.0, 1401.0).reshape(2, 700), OFFSETS.declared["x"].format)}
    deep = Machine(name="deep", fifo_depth=1024)

    def run(depth: int) -> int:
        return simulate(replace(OFFSETS, depths=((Edge("off", 0), depth),)), tensors, deep, engine="fast").cycles

    with pytest.raises(DeadlockError) as caught:
        run(16)
    depth = int(caught.value.hint.split()[1])
    assert depth > 16 + NEAR
    assert run(depth) > 0
    with pytest.raises(DeadlockError, match=f"full at depth {depth - 1}"):
        run(depth - 1)
