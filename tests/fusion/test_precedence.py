"""The order of loops as bits, against all permutations."""

from __future__ import annotations

from itertools import permutations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuseflow.fusion.order_graph import Precedence

PAIRS = st.lists(st.tuples(st.sampled_from("abcde"), st.sampled_from("abcde")), max_size=8)


@given(PAIRS)
def test_an_order_exists_where_some_permutation_respects_all_pairs(pairs: list[tuple[str, str]]) -> None:
    legal = [order for order in permutations("abcde") if all(order.index(u) < order.index(v) for u, v in pairs)]
    order = Precedence.of(pairs)
    assert (order is not None) == bool(legal)
    for u, v in product("abcde", repeat=2) if order is not None else ():
        assert order is not None
        assert order.encloses(u, v) == (u != v and all(loops.index(u) < loops.index(v) for loops in legal))


@pytest.mark.parametrize("length", [0, 1, 40, 200])
def test_a_long_chain_is_followed_to_its_end(length: int) -> None:
    chain = [(f"v{n}", f"v{n + 1}") for n in range(length)]
    order = Precedence.of(reversed(chain))
    assert order is not None and order.encloses("v0", f"v{length}") == (length > 0)
    assert length == 0 or Precedence.of([*chain, (f"v{length}", "v0")]) is None
