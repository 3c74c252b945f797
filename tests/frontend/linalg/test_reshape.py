"""Reshapes as chains of splits and merges: carried out on arrays, they equal NumPy's reshape."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fuseflow.frontend.linalg.reshape import DimensionSplit, reshape_steps

groups = st.lists(st.lists(st.integers(1, 4), min_size=1, max_size=4), min_size=1, max_size=3)


@given(groups, st.booleans())
def test_steps_equal_reshape(parts: list[list[int]], expand: bool) -> None:
    longer = tuple(size for part in parts for size in part)
    shorter = tuple(int(np.prod(part)) for part in parts)
    at = np.cumsum([0, *(len(part) for part in parts)])
    reassociation = [list(range(a, b)) for a, b in pairwise(at)]
    source, result = (shorter, longer) if expand else (longer, shorter)
    shape = [size for size in source if size != 1]
    for step in reshape_steps(source, result, reassociation):
        if isinstance(step, DimensionSplit):
            outer, remainder = divmod(shape[step.dimension], step.size)
            assert remainder == 0 and outer > 1 and step.size > 1
            shape[step.dimension : step.dimension + 1] = [outer, step.size]
        else:
            shape[step.dimension : step.dimension + 2] = [shape[step.dimension] * shape[step.dimension + 1]]
    assert shape == [size for size in result if size != 1]
