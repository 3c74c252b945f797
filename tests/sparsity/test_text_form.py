"""Texts of dataclasses with fields of any kind, as a user may register them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuseflow.errors import SparsityError
from fuseflow.sparsity.text_form import parse_text, text_of, usage


@dataclass(frozen=True)
class Everything:
    """A field of every kind."""

    count: int
    share: float
    sizes: tuple[int, int, int]
    kind: Literal["a", "b"] = "a"
    exact: bool = False
    seed: int | None = None
    label: str = "none"


@dataclass(frozen=True)
class Nothing:
    """No fields."""


CLASSES: dict[str, type] = {"every": Everything, "nothing": Nothing}


def parse(text):
    return parse_text(text, CLASSES, "thing")


@given(
    st.builds(
        Everything,
        st.integers(),
        st.floats(allow_nan=False),
        st.tuples(st.integers(0), st.integers(0), st.integers(0)),
        st.sampled_from(["a", "b"]),
        st.booleans(),
        st.none() | st.integers(),
        st.text(st.characters(exclude_characters=":")),
    )
)
def test_a_text_says_the_value(value):
    assert parse(text_of("every", value)) == value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Nothing(), "nothing"),
        (Everything(3, 0.5, (1, 2, 3)), "every:3:0.5:1x2x3"),
        (Everything(3, 0.5, (1, 2, 3), seed=0), "every:3:0.5:1x2x3:seed=0"),
        (Everything(3, 0.5, (1, 2, 3), "b", True), "every:3:0.5:1x2x3:kind=b:exact=True"),
        (Everything(3, 1e-9, (1, 2, 3), label="x=y"), "every:3:1e-09:1x2x3:label=x=y"),
    ],
)
def test_fields_that_have_their_default_are_not_written(value, text):
    assert text_of(text.split(":")[0], value) == text and parse(text) == value


@pytest.mark.parametrize(
    "text",
    [
        *("every:3:0.5:1x2x3:b:true", "every:3:0.5:1x2x3:exact=1:kind=b", "every:share=0.5:count=3:sizes=1x2x3:kind=b:exact=yes"),
        *("every:3:share=.5:1x2x3:kind=b:True", "every:3:5e-1:1x2x3:b:on"),
    ],
)
def test_fields_may_be_named_or_stand_in_their_order(text):
    assert parse(text) == Everything(3, 0.5, (1, 2, 3), "b", True)


def test_usage_shows_what_may_be_left_out():
    shown = "every:COUNT:SHARE:SIZES[:kind=a][:exact=False][:seed=SEED][:label=none]"
    assert usage("every", Everything) == shown and usage("nothing", Nothing) == "nothing"


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("evry:3", "there is no thing `evry`", "did you mean `every`?"),
        ("zzz", "there is no thing `zzz`", "known: `every`, `nothing`"),
        ("every", "`every` lacks count and share and sizes", f"write it as `{usage('every', Everything)}`"),
        ("every:share=1:count=1", "`every:share=1:count=1` lacks sizes", f"write it as `{usage('every', Everything)}`"),
        ("nothing:", "`nothing:` says too much: ``", "write it as `nothing`"),
        ("nothing:x=1", "`nothing:x=1`: there is no `x`", ""),
        ("every:1:1:1x1x1:knid=a", "there is no `knid`", "did you mean `kind`?"),
        ("every:1:1:1x1x1:=a", "there is no ``", "known: `count`"),
        ("every:1:count=2", "`every:1:count=2` says `count` twice", ""),
        ("every:share=1:2", "`every:share=1:2` says `share` twice", ""),
        ("every:1.5:1:1x1x1", "`count` cannot be `1.5`", "integer"),
        ("every:1:much:1x1x1", "`share` cannot be `much`", "number"),
        ("every:1:1:1x1", "`sizes` cannot be `1x1`", "write 3 whole numbers, as in `4x4x4`"),
        ("every:1:1:1xax1", "`sizes` cannot be `1xax1`", "write 3 whole numbers, as in `4x4x4`"),
        ("every:1:1:", "`sizes` cannot be ``", "write 3 whole numbers, as in `4x4x4`"),
        ("every:1:1:1x1x1:c", "`kind` cannot be `c`", "'a' or 'b'"),
        ("every:1:1:1x1x1:exact=maybe", "`exact` cannot be `maybe`", "boolean"),
        ("every:1:1:1x1x1:seed=", "`seed` cannot be ``", "integer"),
        ("every:" + "9" * 5000, "`count` cannot be", "integer"),
    ],
)
def test_other_texts_are_refused_in_words(text, message, hint):
    with pytest.raises(SparsityError) as error:
        parse(text)
    assert message in error.value.message and hint in error.value.hint


@given(
    st.text() | st.text("every:nothing=1x.0", max_size=20) | st.lists(st.text("0123x.=ab")).map(lambda p: ":".join(["every", *p]))
)
def test_any_text_is_a_value_or_refused(text):
    try:
        value = parse(text)
    except SparsityError:
        return
    assert parse(text_of(text.split(":")[0], value)) == value
