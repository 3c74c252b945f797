"""Sparsifiers that keep a number of entries of every group or fiber, against `torch.topk` and loops over the groups."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fuseflow.errors import SparsityError
from fuseflow.keep_rules import Largest
from fuseflow.sparsity.grouped.grouping import grouped_mask
from fuseflow.sparsity.sparsifiers.built_in import NM, NMG, TopK
from fuseflow.sparsity.sparsifiers.sparsifier import KeepRule

NAN, INF = math.nan, math.inf


@st.composite
def tensors(draw, min_extent=0):
    """A tensor of few different numbers, NaN and infinities among them, and one of its dimensions, perhaps counted from the end."""
    shape = tuple(draw(st.lists(st.integers(min_extent, 7), min_size=1, max_size=3)))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 10**6)))
    numbers = torch.tensor([0.0, 1.0, -1.0, 2.0, -2.0, NAN, INF, -INF])
    tensor = numbers[torch.randint(0, draw(st.sampled_from([5, 8])), shape, generator=generator)]
    return tensor, draw(st.integers(-len(shape), len(shape) - 1))


def fibers(tensor, dim):
    """The coordinates of each fiber of a tensor, in order."""
    ranges = [range(extent) for extent in tensor.shape]
    ranges[dim] = [0]
    for start in itertools.product(*ranges):
        yield [tuple(k if d == dim % tensor.dim() else c for d, c in enumerate(start)) for k in range(tensor.shape[dim])]


def by_hand(tensor, dim, size, count):
    """The mask of the `count` largest of every `size` entries of a fiber: NaN first, and the lower coordinate of equal ones."""
    mask = torch.zeros(tensor.shape, dtype=torch.bool)
    for fiber in fibers(tensor, dim):
        for start in range(0, len(fiber), size):
            group = fiber[start : start + size]
            magnitudes = {place: abs(tensor[place].item()) for place in group}
            ranked = sorted(group, key=lambda p, of=magnitudes: (not math.isnan(of[p]), 0.0 if math.isnan(of[p]) else -of[p], p))
            for place in ranked[:count]:
                mask[place] = True
    return mask


@given(tensors(), st.integers(1, 8), st.data())
def test_n_of_m_keeps_the_largest_of_every_group(drawn, m, data):
    (tensor, dim), n = drawn, data.draw(st.integers(1, m))
    assert torch.equal(NM(n, m, dim).select(tensor), by_hand(tensor, dim, m, n))


@given(tensors(min_extent=1), st.data())
def test_top_k_keeps_the_largest_of_every_fiber(drawn, data):
    tensor, dim = drawn
    k = data.draw(st.integers(1, tensor.shape[dim]))
    assert torch.equal(TopK(k, dim).select(tensor), by_hand(tensor, dim, tensor.shape[dim], k))


@pytest.mark.parametrize("dim", [0, 1, 2, -1, -3])
@pytest.mark.parametrize("k", [1, 3, 4])
def test_top_k_is_that_of_pytorch(k, dim):
    tensor = torch.randn(4, 5, 6, generator=torch.Generator().manual_seed(k), dtype=torch.float64)
    places = tensor.abs().topk(k, dim=dim).indices
    assert torch.equal(TopK(k, dim).select(tensor), torch.zeros(4, 5, 6, dtype=torch.bool).scatter(dim, places, True))


def test_two_of_four_is_that_of_pytorch():
    tensor = torch.randn(8, 12, generator=torch.Generator().manual_seed(0)).half()
    dense = torch.where(NM(2, 4).select(tensor), tensor, 0)
    largest = tensor.abs().reshape(-1, 4).topk(2).indices
    assert torch.equal(
        dense,
        torch.zeros_like(tensor).reshape(-1, 4).scatter(1, largest, tensor.reshape(-1, 4).gather(1, largest)).reshape(8, 12),
    )


def test_the_last_group_may_be_short():
    assert NM(1, 4).select(torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])).tolist() == [False, False, False, True, False, True]
    assert NM(2, 4).select(torch.zeros(5)).tolist() == [True, True, False, False, True]


def test_of_equal_magnitudes_the_lower_coordinate_is_kept():
    ties = torch.tensor([[1.0, -1.0, 1.0, -1.0]])
    assert NM(1, 2).select(ties).tolist() == [[True, False, True, False]]
    assert TopK(2).select(ties).tolist() == [[True, True, False, False]]
    assert TopK(2, 0).select(ties.T).T.tolist() == [[True, True, False, False]]


@pytest.mark.parametrize(("n", "m", "reason"), [(3, 2, "3 entries"), (0, 4, "0 entries"), (-1, 4, "-1 entries")])
def test_as_many_entries_as_a_group_has_can_be_kept(n, m, reason):
    with pytest.raises(SparsityError, match=f"`nm:{n}:{m}`: {reason} cannot be kept of every {m}") as error:
        NM(n, m)
    assert error.value.hint == f"keep between 1 and {m}"


@pytest.mark.parametrize("m", [0, -3, 257])
def test_a_group_has_between_1_and_256_coordinates(m):
    with pytest.raises(SparsityError, match=f"a group cannot have {m} coordinates") as error:
        NM(1, m)
    assert error.value.hint == "groups have between 1 and 256"
    assert NM(256, 256).select(torch.zeros(300)).all()


@pytest.mark.parametrize("k", [0, -1])
def test_top_k_keeps_something(k):
    with pytest.raises(SparsityError, match=f"`topk:{k}` keeps nothing") as error:
        TopK(k)
    assert error.value.hint == "keep at least 1 entry of a fiber"


def test_top_k_of_a_fiber_that_has_fewer_names_the_dimension():
    with pytest.raises(SparsityError, match=r"`topk:5:dim=0`, dimension 0 of a tensor of shape \[3, 6\]: 5 entries") as error:
        TopK(5, 0).select(torch.zeros(3, 6))
    assert error.value.hint == "keep between 1 and 3"


@pytest.mark.parametrize("sparsifier", [NM(1, 2, 2), NM(1, 2, -3), TopK(1, 2), TopK(1, -3)], ids=str)
def test_a_dimension_that_a_tensor_lacks_is_refused(sparsifier):
    with pytest.raises(SparsityError, match=rf"`{sparsifier}`: a tensor of shape \[4, 4\] has no dimension") as error:
        sparsifier.select(torch.zeros(4, 4))
    assert error.value.hint == "it has 2 dimensions"
    with pytest.raises(SparsityError, match=r"a tensor of shape \[\] has no dimension"):
        sparsifier.select(torch.tensor(1.0))


def test_rules_of_the_compiler_count_dimensions_from_0():
    assert NM(2, 4).keep_rule((3, 8)) == KeepRule(Largest(2, every=4), (1,))
    assert TopK(2, -2).keep_rule((3, 8)) == KeepRule(Largest(2), (0,))


@pytest.mark.parametrize("method", ["exact", "greedy"])
@pytest.mark.parametrize("g", [1, 2])
def test_n_of_m_in_groups_has_as_many_columns_of_each_pattern(method, g):
    tensor = torch.randn(8, 12 * g, generator=torch.Generator().manual_seed(g))
    mask = NMG(2, 4, g, method=method).select(tensor)
    assert mask.tolist() == grouped_mask(tensor.numpy(), 2, 4, g, -2, -1, method).tolist()
    columns = mask.reshape(2, 4, 2, 6 * g).permute(0, 2, 3, 1)
    for chunk in columns.reshape(4, 6 * g, 4):
        patterns = [tuple(column) for column in chunk.tolist()]
        assert all(sum(pattern) == 2 and patterns.count(pattern) == g for pattern in patterns)


def test_n_of_m_in_groups_keeps_the_most_that_is_possible():
    tensor = torch.randn(3, 6, generator=torch.Generator().manual_seed(0))
    places = itertools.permutations([0, 0, 1, 1, 2, 2])
    best = max(sum(abs(tensor[row, column].item()) for column, row in enumerate(rows)) for rows in places)
    exact, greedy = (tensor.abs()[NMG(1, 3, 2, method=method).select(tensor)].sum().item() for method in ("exact", "greedy"))
    assert exact == pytest.approx(best) and greedy <= exact + 1e-6


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((3, 2, 1), "`3:2:1`: 3 entries cannot be kept of every 2"),
        ((1, 2, 0), "`1:2:0`: a pattern cannot have 0 columns"),
        ((8, 16, 1), "there are more than"),
    ],
)
def test_sizes_of_groups_that_make_no_sense_are_refused(arguments, message):
    with pytest.raises(SparsityError, match=message) as error:
        NMG(*arguments)
    assert error.value.hint


@pytest.mark.parametrize("arguments", [(1, 2, 1, 0, 0), (1, 2, 1, 5, 0), (1, 2, 1, 0, -4)])
def test_groups_need_two_dimensions_that_a_tensor_has(arguments):
    with pytest.raises(SparsityError, match=r"_dim` ") as error:
        NMG(*arguments).select(torch.zeros(4, 4))
    assert error.value.hint == "give two different dimensions between -2 and 1"
