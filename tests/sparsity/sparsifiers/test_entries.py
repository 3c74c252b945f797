"""Sparsifiers that look at one entry at a time: all, those above a threshold, and random ones."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fuseflow.errors import SparsityError
from fuseflow.keep_rules import Threshold as ThresholdRule
from fuseflow.sparsity.sparsifiers.entries import KeepAll, RandomFraction, Threshold
from fuseflow.sparsity.sparsifiers.sparsifier import KeepRule


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
