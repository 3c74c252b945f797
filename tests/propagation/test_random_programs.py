"""Random programs: what is called known is computed so, what is called dead changes no output, and neither does its removal."""

import pytest
from attribute_fuzz import PROGRAMS, check_case, check_drawn, check_model
from hypothesis import given, settings
from hypothesis import strategies as st


@settings(max_examples=60, deadline=None)
@given(case=PROGRAMS, seed=st.integers(0, 1 << 30))
def test_random_programs(case, seed):
    check_case(case, seed)


@pytest.mark.parametrize("multilinear", [True, False])
def test_random_models(multilinear):
    tallies = [check_model(seed, multilinear) for seed in range(40)]
    assert sum(tally.dead for tally in tallies) > 100
    assert sum(tally.cuts for tally in tallies) > 10
    assert sum(tally.statements for tally in tallies) > 2


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["whole programs", "multilinear", "of models"])
def test_many_random_programs(kind, draws):
    seeds = draws(4000)
    if kind == "whole programs":
        check_drawn(seeds.start, len(seeds))
    for seed in seeds if kind != "whole programs" else ():
        check_model(seed, multilinear=kind == "multilinear")
