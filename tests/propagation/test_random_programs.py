"""Random programs: what is called known is computed so, what is called dead changes no output, and neither does its removal."""

import pytest
from attribute_fuzz import PROGRAMS, check_case, check_model
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
