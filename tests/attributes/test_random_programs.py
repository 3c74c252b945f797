"""Random programs: what the analysis calls known is what they compute, and what it calls dead changes no output."""

from attribute_fuzz import PROGRAMS, check
from hypothesis import given, settings
from hypothesis import strategies as st


@settings(max_examples=150, deadline=None)
@given(case=PROGRAMS, seed=st.integers(0, 1 << 30))
def test_random_programs(case, seed):
    check(case, seed)
