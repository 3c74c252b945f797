"""What n:m:g refuses, in the user's words."""

from typing import Any

import numpy as np
import pytest

from fuseflow.errors import SparsityError
from fuseflow.sparsity.grouped.grouping import grouping, grouping_of_mask


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n": 0}, "`0:4:2`: 0 entries cannot be kept of every 4"),
        ({"n": 5}, "`5:4:2`: 5 entries cannot be kept of every 4"),
        ({"m": 0}, "`2:0:2`: a group cannot have"),
        ({"m": 257}, "`2:257:2`: a group cannot have 257 coordinates"),
        ({"g": 0}, "`2:4:0`: a pattern cannot have 0 columns"),
        ({"n": 8, "m": 16}, "`8:16:2`: there are more than 10,000 ways to choose 8 of 16 places"),
        ({"n": 128, "m": 256}, "more than 10,000 ways"),
        ({"g": 5462}, "6 patterns with 5,462 columns each make chunks of 32,772 columns"),
        ({"sparse_dim": 2}, "`sparse_dim` is 2, but the tensor has 2 dimensions"),
        ({"group_dim": -3}, "`group_dim` is -3, but the tensor has 2 dimensions"),
        ({"sparse_dim": 1}, "`sparse_dim` and `group_dim` are both dimension 1"),
        ({"array": np.zeros(4)}, "`sparse_dim` is -2, but the tensor has 1 dimensions"),
        ({"array": np.zeros((4, 4), dtype=complex)}, "elements of type complex128 cannot be compared by magnitude"),
        ({"method": "best"}, "no method `best`"),
    ],
)
def test_refusals(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(SparsityError) as raised:
        grouping(**{"array": np.zeros((4, 4)), "n": 2, "m": 4, "g": 2, **arguments})
    assert message in raised.value.message and raised.value.hint


def test_the_largest_chunk_is_not_refused() -> None:
    assert grouping(np.zeros((4, 1)), 2, 4, 5461, method="greedy").pattern_of.shape == (1, 32766)


def test_a_mask_that_no_selection_keeps() -> None:
    mask = np.zeros((2, 6), dtype=bool)
    mask[0] = True  # 1:2:3 keeps each of both places three times
    with pytest.raises(SparsityError, match=r"no selection 1:2:3 keeps all of the mask; the best one lacks 3 of 6 elements"):
        grouping_of_mask(mask, 1, 2, 3)
