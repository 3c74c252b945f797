"""Tokens: nested lists to streams and back, what is not a stream, the text form."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuseflow.errors import GraphError
from fuseflow.samml.tokens import D, N, check, decode, encode, is_control, parse, show, stop

ELEMENTS = st.one_of(st.integers(0, 9), st.floats(allow_nan=False), st.just(N))


def nested(depth: int, elements: st.SearchStrategy[Any] = ELEMENTS) -> st.SearchStrategy[Any]:
    return elements if depth == 0 else st.lists(nested(depth - 1, elements), max_size=3)


DEPTHS = st.shared(st.integers(0, 4), key="depth")
VALUES = DEPTHS.flatmap(nested)


@pytest.mark.parametrize(
    ("value", "depth", "text"),
    [
        (0, 0, "0 D"),
        ([], 1, "S0 D"),
        ([1, 2], 1, "1 2 S0 D"),
        ([[1, 2], [3]], 2, "1 2 S0 3 S1 D"),
        ([[1], [], [2]], 2, "1 S0 S0 2 S1 D"),
        ([[1], []], 2, "1 S0 S1 D"),
        ([], 2, "S1-1 D"),
        ([[]], 2, "S1 D"),
        ([[], []], 2, "S0 S1 D"),
        ([[[]], []], 3, "S1 S1-2 D"),
        ([[], [[]]], 3, "S1-1 S2 D"),
        ([], 4, "S3-3 D"),
        ([[[N, 0.5]], [[], [7]]], 3, "N 0.5 S1 S0 7 S2 D"),
    ],
)
def test_examples(value: Any, depth: int, text: str):
    assert show(encode(value, depth)) == text
    assert decode(parse(text), depth) == value


@given(DEPTHS, VALUES)
def test_decode_undoes_encode(depth: int, value: Any):
    stream = encode(value, depth)
    check(stream, depth)
    assert decode(stream, depth) == value


@given(DEPTHS, VALUES, VALUES)
def test_encode_is_injective(depth: int, one: Any, other: Any):
    assert (encode(one, depth) == encode(other, depth)) == (one == other)


TOKENS = st.sampled_from([0, 1, N, stop(0, 0), stop(0, 1), stop(1, 1), stop(0, 2), stop(1, 2), stop(2, 2)])


@given(st.lists(TOKENS, max_size=7), st.integers(0, 3))
def test_check_accepts_exactly_the_streams_of_lists(tokens: list[Any], depth: int):
    """Whatever passes the check is what `encode` gives for what it means; what is refused is no stream of any list."""
    stream = [*tokens, D]
    try:
        value = decode(stream, depth)
    except GraphError:
        return
    assert encode(value, depth) == stream


@given(st.data())
def test_check_refuses_every_other_stop(data: st.DataObject):
    """Changing one stop of a stream to another either breaks it or makes the stream of another list."""
    value = data.draw(nested(3))
    stream = encode(value, 3)
    at = data.draw(st.sampled_from([k for k, token in enumerate(stream) if token not in (N, D) and is_control(token)]))
    low = data.draw(st.integers(0, 2))
    other = stop(low, data.draw(st.integers(low, 2)))
    changed = [*stream[:at], other, *stream[at + 1 :]]
    try:
        assert (decode(changed, 3) == value) == (other is stream[at])
    except GraphError:
        assert other is not stream[at]


@pytest.mark.parametrize(
    ("text", "depth", "message"),
    [
        ("", 1, "`D` must stand once, last"),
        ("1 S0", 1, "`D` must stand once, last"),
        ("D 1 S0 D", 1, "`D` must stand once, last"),
        ("D", 0, "a stream of depth 0 holds one element"),
        ("1 2 D", 0, "a stream of depth 0 holds one element"),
        ("S0 D", 0, "a stream of depth 0 holds one element"),
        ("1 D", 1, "S0 must stand once, before D"),
        ("1 S0 2 S0 D", 1, "S0 must stand once, before D"),
        ("1 S0 2 D", 1, "S0 must stand once, before D"),
        ("1 S0 D", 2, "S1 must stand once, before D"),
        ("1 S1 D", 1, "S0 must stand once, before D"),
        ("1 S1-1 D", 2, "stop S1-1 does not close an open list"),
        ("1 S0 S2-2 D", 3, "stop S2-2 does not close an open list"),
        ("1 2 S1-2 D", 3, "stop S1-2 does not close an open list"),
    ],
)
def test_check_refuses(text: str, depth: int, message: str):
    with pytest.raises(GraphError, match=message):
        check(parse(text), depth)
    with pytest.raises(GraphError, match=message):
        decode(parse(text), depth)


@pytest.mark.parametrize("text", ["1 1 S0 D", "2 1 S0 D", "1 N S0 D", "0.5 S0 D", "-1 S0 D"])
def test_coordinates_ascend(text: str):
    check(parse(text), 1, "val")
    with pytest.raises(GraphError, match="coordinates must ascend"):
        check(parse(text), 1, "crd")


def test_coordinates_start_again_in_every_list():
    check(parse("1 2 S0 0 S0 S0 0 S1 D"), 2, "crd")


@given(DEPTHS, VALUES)
def test_text_round_trip(depth: int, value: Any):
    stream = encode(value, depth)
    text = " ".join(repr(token) for token in stream)
    assert parse(text) == stream


def test_long_streams_are_shortened():
    assert show(encode(list(range(50)), 1), limit=3) == "0 1 2 ... (52 tokens)"


def test_stops():
    assert stop(0, 1) is stop(0, 1)
    assert stop(0, 1).raised() is stop(1, 2)
    assert stop(0, 1).raised(-0) is stop(0, 1)
    assert stop(0, 2).with_low(1) is stop(1, 2)
    assert [is_control(token) for token in (stop(0, 0), D, N, 0, 0.0)] == [True, True, False, False, False]
    for low, high in [(1, 0), (-1, 0)]:
        with pytest.raises(ValueError, match="closes levels"):
            stop(low, high)


def test_copied_tokens_are_the_same_objects():
    stream = encode([[1, N], []], 2)
    copied = copy.deepcopy(stream)
    assert all(a is b for a, b in zip(copied, stream, strict=True) if not isinstance(b, int))
