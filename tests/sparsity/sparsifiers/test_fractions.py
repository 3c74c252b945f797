"""Sparsifiers that leave out a fraction, against the pruning functions of PyTorch."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.utils import prune

from fuseflow.errors import SparsityError
from fuseflow.keep_rules import Threshold as ThresholdRule
from fuseflow.sparsity.sparsifiers.built_in import (
    BlockMagnitude,
    Filter,
    KeepAll,
    Magnitude,
    Movement,
    RandomFraction,
    Threshold,
)
from fuseflow.sparsity.sparsifiers.sparsifier import KeepRule

NAN, INF = math.nan, math.inf
SHAPES = st.lists(st.integers(1, 6), min_size=1, max_size=4).map(tuple)
FRACTIONS = st.floats(0, 1)


def distinct(shape, seed, dtype=torch.float32):
    """A tensor whose magnitudes are all different, so that no rule about equal ones is needed."""
    generator = torch.Generator().manual_seed(seed)
    size = math.prod(shape)
    numbers = (torch.randperm(size, generator=generator) + 1) * (1 - 2 * torch.randint(0, 2, (size,), generator=generator))
    return numbers.reshape(shape).to(dtype)


def pruned(tensor, prune_it):
    """The mask that a function of PyTorch makes of a weight."""
    module = torch.nn.Module()
    module.weight = torch.nn.Parameter(tensor.clone())
    prune_it(module)
    return module.weight_mask.bool()


@given(SHAPES, FRACTIONS, st.integers(0, 1000))
def test_magnitude_keeps_what_l1_unstructured_keeps(shape, fraction, seed):
    tensor = distinct(shape, seed)
    left_out = math.floor(fraction * tensor.numel())
    expected = pruned(tensor, lambda module: prune.l1_unstructured(module, "weight", left_out))
    assert torch.equal(Magnitude(fraction).select(tensor), expected)


@given(st.lists(SHAPES, min_size=1, max_size=4), FRACTIONS, st.integers(0, 1000))
def test_magnitude_over_a_model_keeps_what_global_unstructured_keeps(shapes, fraction, seed):
    sizes = [math.prod(shape) for shape in shapes]
    tensors = [part.reshape(shape) for part, shape in zip(distinct((sum(sizes),), seed).split(sizes), shapes, strict=True)]
    modules = [torch.nn.Module() for _ in tensors]
    for module, tensor in zip(modules, tensors, strict=True):
        module.weight = torch.nn.Parameter(tensor.clone())
    left_out = math.floor(fraction * sum(sizes))
    prune.global_unstructured([(module, "weight") for module in modules], prune.L1Unstructured, amount=left_out)
    masks = Magnitude(fraction, "model").select_together(tensors)
    assert all(torch.equal(mask, module.weight_mask.bool()) for mask, module in zip(masks, modules, strict=True))


@given(SHAPES, FRACTIONS, st.integers(0, 1000))
def test_filters_are_those_that_ln_structured_keeps(shape, fraction, seed):
    tensor = torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    left_out = math.floor(fraction * shape[0])
    if len(shape) == 1:
        expected = pruned(tensor, lambda module: prune.l1_unstructured(module, "weight", left_out))
    else:
        expected = pruned(tensor, lambda module: prune.ln_structured(module, "weight", left_out, n=1, dim=0))
    assert torch.equal(Filter(fraction).select(tensor), expected)


@given(st.integers(0, 4), st.integers(0, 4), st.integers(1, 3), st.integers(1, 3), FRACTIONS, st.integers(0, 1000))
def test_blocks_are_those_with_the_largest_sums_one_by_one(down, across, rows, columns, fraction, seed):
    tensor = torch.randint(-2, 3, (down * rows, across * columns), generator=torch.Generator().manual_seed(seed)).float()
    places = [(i, j) for i in range(down) for j in range(across)]
    sums = {(i, j): tensor[i * rows : (i + 1) * rows, j * columns : (j + 1) * columns].abs().sum() for i, j in places}
    kept = sorted(places, key=lambda place: (-sums[place], place))[: len(places) - math.floor(fraction * len(places))]
    expected = torch.zeros(tensor.shape, dtype=torch.bool)
    for i, j in kept:
        expected[i * rows : (i + 1) * rows, j * columns : (j + 1) * columns] = True
    assert torch.equal(BlockMagnitude(fraction, (rows, columns)).select(tensor), expected)


@given(SHAPES, FRACTIONS, st.integers(0, 1000))
def test_movement_keeps_the_largest_scores_with_their_sign(shape, fraction, seed):
    scores = distinct(shape, seed)
    kept = scores.reshape(-1).topk(scores.numel() - math.floor(fraction * scores.numel())).indices
    expected = torch.zeros(scores.numel(), dtype=torch.bool).index_fill(0, kept, True).reshape(shape)
    assert torch.equal(Movement(fraction).select(torch.zeros(shape), scores), expected)


@pytest.mark.parametrize("sparsifier", [Magnitude(0.5), Magnitude(0.5, "model"), Movement(0.5), Filter(0.5)], ids=str)
def test_of_equal_entries_the_lower_coordinate_is_kept(sparsifier):
    ties = torch.tensor([-1.0, 1.0, 1.0, -1.0]).abs() if sparsifier.needs_scores else torch.tensor([-1.0, 1.0, 1.0, -1.0])
    assert sparsifier.select(ties, ties).tolist() == [True, True, False, False]


def test_of_equal_entries_the_lower_coordinate_of_the_outermost_dimension_is_kept():
    ties = torch.ones(2, 3)
    assert Magnitude(0.5).select(ties).tolist() == [[True] * 3, [False] * 3]
    assert Filter(0.5).select(ties).tolist() == [[True] * 3, [False] * 3]
    assert BlockMagnitude(0.5, (1, 1)).select(ties).tolist() == [[True] * 3, [False] * 3]
    assert Movement(0.5).select(ties, ties).tolist() == [[True] * 3, [False] * 3]


def test_of_equal_entries_of_several_tensors_those_of_the_first_are_kept():
    masks = Magnitude(0.5, "model").select_together([torch.ones(2), torch.ones(2, 2), torch.ones(2)])
    assert [mask.tolist() for mask in masks] == [[True, True], [[True, True], [False, False]], [False, False]]


@pytest.mark.parametrize(
    ("values", "kept"),
    [
        ([1.0, NAN, INF, -INF], [False, True, False, False]),
        ([INF, 1e38, NAN, NAN], [False, False, True, False]),
        ([1e38, -INF, 2.0, 3.0], [False, True, False, False]),
    ],
)
def test_nan_counts_most_and_then_what_is_infinite(values, kept):
    tensor = torch.tensor(values)
    assert Magnitude(0.75).select(tensor).tolist() == kept
    assert Magnitude(0.75, "model").select_together([tensor])[0].tolist() == kept
    assert Filter(0.75).select(tensor).tolist() == kept
    assert BlockMagnitude(0.75, (1, 1)).select(tensor.reshape(2, 2)).reshape(-1).tolist() == kept


@pytest.mark.parametrize(
    ("scores", "kept"),
    [
        ([1.0, NAN, 2.0, -3.0], [False, True, False, False]),
        ([1.0, INF, 2.0, -INF], [False, True, False, False]),
        ([INF, 1.0, NAN, NAN], [False, False, True, False]),
        ([-INF, -2.0, -3.0, -4.0], [False, True, False, False]),
        ([0.0, -0.0, -1.0, -2.0], [True, False, False, False]),
    ],
)
def test_movement_takes_nan_and_infinity_for_the_most(scores, kept):
    assert Movement(0.75).select(torch.zeros(4), torch.tensor(scores)).tolist() == kept


def test_movement_of_a_tensor_without_scores_says_where_they_come_from():
    with pytest.raises(SparsityError, match="nothing was trained yet") as error:
        Movement(0.5).select(torch.zeros(3))
    assert "`magnitude`" in error.value.hint and Movement.needs_scores


def test_magnitude_of_one_scope_knows_nothing_of_the_other_tensors():
    small, large = torch.tensor([1.0, 2.0]), torch.tensor([10.0, 20.0])
    assert [m.tolist() for m in Magnitude(0.5).select_together([small, large])] == [[False, True], [False, True]]
    assert [m.tolist() for m in Magnitude(0.5, "model").select_together([small, large])] == [[False, False], [True, True]]
    assert Magnitude(0.5, "model").compares_tensors and not Magnitude(0.5).compares_tensors


def test_no_tensors_of_a_model_have_no_masks():
    assert [Magnitude(0.5, scope).select_together([]) for scope in ("tensor", "model")] == [[], []]


def test_tensors_of_a_model_may_have_different_types_and_be_empty():
    tensors = [torch.tensor([1.0, 4.0], dtype=torch.bfloat16), torch.empty(0, 3), torch.tensor(3.0, dtype=torch.float64)]
    masks = Magnitude(0.34, "model").select_together(tensors)
    assert [mask.tolist() for mask in masks] == [[False, True], [], True]


@pytest.mark.parametrize("scope", ["layer", "", "Model"])
def test_another_scope_is_refused(scope):
    with pytest.raises(SparsityError, match=f"`magnitude` has no scope `{scope}`") as error:
        Magnitude(0.5, scope)
    assert error.value.hint == "it is `tensor` or `model`"


def test_a_number_has_no_filters():
    with pytest.raises(SparsityError, match=r"`filter:0\.5`: a number has no filters") as error:
        Filter(0.5).select(torch.tensor(1.0))
    assert error.value.hint


@pytest.mark.parametrize(("shape", "sizes"), [((5, 4), "5 x 4"), ((4, 5), "4 x 5"), ((4,), "4"), ((2, 4, 4), "2 x 4 x 4")])
def test_blocks_divide_a_matrix(shape, sizes):
    with pytest.raises(SparsityError, match=f"a tensor of {sizes} does not divide into blocks of 2 x 2") as error:
        BlockMagnitude(0.5, (2, 2)).select(torch.ones(shape))
    assert "matrix" in error.value.hint


@pytest.mark.parametrize("block", [(0, 1), (1, -1)])
def test_a_block_has_a_row_and_a_column(block):
    with pytest.raises(SparsityError, match="a block has at least one row and one column") as error:
        BlockMagnitude(0.5, block)
    assert error.value.hint == "as in `block:0.5:4x4`"


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 3), (0, 2, 3)])
def test_filters_of_an_empty_tensor_are_empty(shape):
    assert Filter(0.5).select(torch.ones(shape)).shape == shape


@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 3), (2, 3, 4)])
def test_keep_all_keeps_zeros_too(shape):
    mask = KeepAll().select(torch.zeros(shape))
    assert mask.shape == shape and mask.dtype == torch.bool and mask.all()
    assert KeepAll().keep_rule(shape) is None


@given(st.lists(st.floats(width=32), max_size=20), st.floats(0, 2.0**100, width=32))
def test_a_threshold_keeps_what_is_at_least_as_large_and_nan(values, least):
    tensor = torch.tensor(values)
    assert torch.equal(Threshold(least).select(tensor), (tensor.abs() >= least) | tensor.isnan())


@given(st.lists(st.floats(width=32), max_size=20))
def test_a_threshold_leaves_out_what_hardshrink_does_but_for_the_threshold_itself(values):
    tensor = torch.tensor(values)
    kept = Threshold(0.5).select(tensor) & (tensor.abs() != 0.5)
    assert torch.equal(kept, torch.nn.functional.hardshrink(tensor, 0.5) != 0)


def test_a_threshold_is_compared_in_the_numbers_that_it_was_given():
    assert not Threshold(0.1).select(torch.tensor(0.1, dtype=torch.float64).nextafter(torch.tensor(0.0, dtype=torch.float64)))
    assert Threshold(0.1).select(torch.tensor(0.1, dtype=torch.float64))
    assert Threshold(0.0).select(torch.zeros(3)).all()
    assert not Threshold(math.inf).select(torch.tensor(1e38)) and Threshold(math.inf).select(torch.tensor(-math.inf))


@pytest.mark.parametrize("least", [-1.0, -1e-30, math.nan, -math.inf])
def test_a_threshold_is_a_magnitude(least):
    with pytest.raises(SparsityError, match=f"`threshold:{least}`: a threshold is a magnitude, and {least} is none") as error:
        Threshold(least)
    assert error.value.hint == "give a number of at least 0"


def test_a_threshold_has_a_rule_over_no_dimensions():
    assert Threshold(0.5).keep_rule((3, 4)) == KeepRule(ThresholdRule(0.5), ())


def test_random_masks_without_a_seed_follow_the_generator_of_pytorch():
    sparsifier, tensor = RandomFraction(0.5), torch.zeros(20, 20)
    torch.manual_seed(3)
    first, second = sparsifier.select(tensor), sparsifier.select(tensor)
    torch.manual_seed(3)
    assert torch.equal(sparsifier.select(tensor), first) and not torch.equal(first, second)


def test_random_masks_with_a_seed_depend_on_it_and_the_shape_alone():
    sparsifier = RandomFraction(0.5, seed=3)
    torch.manual_seed(0)
    state = torch.random.get_rng_state()
    first = sparsifier.select(torch.zeros(20, 20))
    assert torch.equal(torch.random.get_rng_state(), state)
    torch.manual_seed(1)
    assert torch.equal(RandomFraction(0.5, seed=3).select(torch.randn(20, 20, dtype=torch.float64)), first)
    assert not torch.equal(RandomFraction(0.5, seed=4).select(torch.zeros(20, 20)), first)


def test_masks_of_a_seed_are_nested():
    masks = [RandomFraction(fraction, seed=0).select(torch.zeros(1000)) for fraction in (0.2, 0.5, 0.9)]
    assert all((less <= more).all() for more, less in itertools.pairwise(masks))


@pytest.mark.parametrize("fraction", [0.1, 0.5, 0.9])
def test_about_the_fraction_is_left_out(fraction):
    share = 1 - RandomFraction(fraction, seed=0).select(torch.zeros(100_000)).float().mean().item()
    assert abs(share - fraction) < 5 * math.sqrt(fraction * (1 - fraction) / 100_000)


@pytest.mark.parametrize("seed", [None, 0])
def test_nothing_and_all_are_exact(seed):
    torch.manual_seed(0)
    assert RandomFraction(0.0, seed).select(torch.zeros(100_000)).all()
    assert not RandomFraction(1.0, seed).select(torch.zeros(100_000)).any()


@pytest.mark.parametrize("seed", [-(2**63), -1, 0, 2**64 - 1])
def test_any_seed_of_pytorch_will_do(seed):
    assert RandomFraction(0.5, seed).select(torch.zeros(3)).shape == (3,)


@pytest.mark.parametrize("seed", [-(2**63) - 1, 2**64])
def test_other_seeds_are_refused(seed):
    with pytest.raises(SparsityError, match="PyTorch has no such seed") as error:
        RandomFraction(0.5, seed)
    assert error.value.hint
