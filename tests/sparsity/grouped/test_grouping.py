"""What n:m:g refuses, in the user's words."""

import itertools
import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuseflow.errors import SparsityError
from fuseflow.sparsity.grouped import greedy
from fuseflow.sparsity.grouped import grouping as module
from fuseflow.sparsity.grouped.grouping import Method, assignment, grouping, grouping_of_mask, patterns


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


METHODS: list[Method] = ["greedy", "exact"]
MAGNITUDES = [0.0, 1.0, -1.0, 2.0, -2.0, 3.0, 0.5, math.inf, -math.inf, math.nan]


def greedy_by_hand(chunk: npt.NDArray[np.float32], n: int, g: int) -> list[int]:
    """The rule in the words of the page, on tuples that Python sorts."""
    table = patterns(n, chunk.shape[1]).tolist()
    pairs: list[tuple[np.float32, int, int]] = []
    for column, pattern in itertools.product(range(len(chunk)), range(len(table))):
        total = np.float32(0)
        for place in table[pattern]:
            total += abs(chunk[column, place])
        pairs.append((total, column, pattern))
    pattern_of: dict[int, int] = {}
    for _, column, pattern in sorted(pairs, reverse=True):
        if column not in pattern_of and list(pattern_of.values()).count(pattern) < g:
            pattern_of[column] = pattern
    return [pattern_of[column] for column in range(len(chunk))]


def kept_by(chunk: npt.NDArray[Any], n: int, pattern_of: npt.NDArray[np.int16]) -> float:
    return float(np.abs(np.take_along_axis(chunk, patterns(n, chunk.shape[1])[pattern_of], axis=1)).sum())


def chunk_of(n: int, m: int, g: int, seed: int, ties: bool, dtype: str = "float32") -> npt.NDArray[Any]:
    rng = np.random.default_rng(seed)
    shape = (math.comb(m, n) * g, m)
    return (rng.integers(-2, 3, shape) if ties else rng.standard_normal(shape)).astype(dtype)


@pytest.mark.parametrize(("n", "m"), [(1, 2), (1, 3), (2, 3)])
@pytest.mark.parametrize("g", [1, 2])
@pytest.mark.parametrize("ties", [False, True])
def test_no_assignment_keeps_more_than_the_exact_one(n: int, m: int, g: int, ties: bool) -> None:
    everything = set(itertools.permutations(np.repeat(range(math.comb(m, n)), g).tolist()))
    for seed in range(10):
        chunk = chunk_of(n, m, g, seed, ties, "float64")
        best = max(kept_by(chunk, n, np.array(one, dtype=np.int16)) for one in everything)
        assert kept_by(chunk, n, assignment(chunk[None], patterns(n, m), g, "exact")[0]) == pytest.approx(best, abs=1e-12)


@given(st.sampled_from([(1, 2), (1, 3), (2, 3), (2, 4), (3, 5), (3, 3)]), st.integers(1, 3), st.integers(0, 10**6), st.booleans())
def test_greedy_takes_pairs_in_their_order(sizes: tuple[int, int], g: int, seed: int, ties: bool) -> None:
    chunk = chunk_of(*sizes, g, seed, ties)
    assert assignment(chunk[None], patterns(*sizes), g, "greedy")[0].tolist() == greedy_by_hand(chunk, sizes[0], g)


@pytest.mark.parametrize("method", METHODS)
@given(
    sizes=st.sampled_from([(1, 1), (1, 2), (1, 3), (2, 3), (2, 4), (3, 5)]),
    g=st.integers(1, 4),
    count=st.integers(0, 5),
    dtype=st.sampled_from(["float16", "float32", "float64"]),
    seed=st.integers(0, 10**6),
)
def test_every_pattern_has_its_columns(method: Method, sizes: tuple[int, int], g: int, count: int, dtype: str, seed: int) -> None:
    columns = math.comb(sizes[1], sizes[0]) * g
    chunks = np.random.default_rng(seed).choice(MAGNITUDES, (count, columns, sizes[1])).astype(dtype)
    expected = np.repeat(np.arange(columns // g), g)
    for pattern_of in assignment(chunks, patterns(*sizes), g, method):
        assert np.array_equal(np.sort(pattern_of), expected)


@pytest.mark.parametrize("method", METHODS)
def test_nan_counts_more_than_infinity_and_that_more_than_numbers(method: Method) -> None:
    chunks = np.array([[[1e30, math.nan], [math.inf, 5.0]], [[math.inf, 3.0], [math.nan, 2.0]], [[1.0, 2.0], [9.0, 1.0]]])
    assert assignment(chunks, patterns(1, 2), 1, method).tolist() == [[1, 0], [1, 0], [1, 0]]


@pytest.mark.parametrize("method", METHODS)
def test_as_many_as_a_pattern_holds_count(method: Method) -> None:
    chunk = np.zeros((6, 4))
    chunk[2] = [1.0, math.nan, 7.0, math.nan]
    chunk[4] = [math.inf, 1.0, -math.inf, 5.0]
    pattern_of = assignment(chunk[None], patterns(2, 4), 1, method)[0]
    assert patterns(2, 4)[pattern_of[[2, 4]]].tolist() == [[1, 3], [0, 2]]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sums_may_leave_the_range_of_the_type(method: Method, dtype: str) -> None:
    chunk = np.zeros((6, 4), dtype=dtype)
    chunk[0, 1:3] = np.finfo(dtype).max
    assert patterns(2, 4)[assignment(chunk[None], patterns(2, 4), 1, method)[0, 0]].tolist() == [1, 2]


@pytest.mark.parametrize("method", METHODS)
def test_chunks_do_not_depend_on_how_many_are_solved_at_once(method: Method, monkeypatch: pytest.MonkeyPatch) -> None:
    chunks = np.stack([chunk_of(2, 4, 2, seed, ties=True) for seed in range(5)])
    together = assignment(chunks, patterns(2, 4), 2, method)
    monkeypatch.setattr(module, "PAIRS_AT_ONCE", 150)
    assert np.array_equal(assignment(chunks, patterns(2, 4), 2, method), together)


def test_greedy_compiles_where_no_folder_can_be_written_to(monkeypatch: pytest.MonkeyPatch) -> None:
    def refusing(function: Any = None, *, cache: bool = False) -> Any:
        if cache:
            raise RuntimeError("no locator available")
        return function

    monkeypatch.setattr(greedy, "njit", refusing)
    assert greedy._compiled(len) is len
