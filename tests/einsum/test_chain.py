"""The text of chains of products."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuseflow.einsum.chain import Chain, Group
from fuseflow.errors import ProgramError

names = st.sampled_from(["A", "X", "layer1.weight", "W_1", "b2"])
groups: st.SearchStrategy[Group] = st.recursive(names, lambda below: st.tuples(below, below), max_leaves=8)


@given(st.tuples(groups, groups))
def test_the_text_is_read_as_it_was(root: tuple[Group, Group]) -> None:
    chain = Chain(root)
    assert Chain.parse(str(chain)) == chain
    spaced = str(chain).replace("(", " ( ").replace(")", " ) ")
    assert Chain.parse(f"(({spaced}))") == chain


def test_how_a_chain_is_written() -> None:
    chain = Chain.parse("adj(x  layer1.weight)")
    assert str(chain) == "adj (x layer1.weight)" and chain.factors == ("adj", "x", "layer1.weight")
    assert str(Chain.parse("((A B) (C D))")) == "(A B) (C D)"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "a factor is missing"),
        ("A", "it has one factor"),
        ("A ()", "a factor is missing"),
        ("A X W", "3 factors beside each other leave open"),
        ("A (X W", "a `(` is not closed"),
        ("A X) W", "a `)` closes nothing"),
        ("A * X", "`* X` is no factor"),
        ("A (X -1)", "`-1)` is no factor"),
    ],
)
def test_what_is_no_chain(text: str, why: str) -> None:
    with pytest.raises(ProgramError) as error:
        Chain.parse(text)
    assert why in error.value.message and "`A (X W)`" in error.value.hint
