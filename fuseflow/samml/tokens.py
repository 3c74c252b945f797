"""Tokens: how a nested list becomes a stream, and back (`encode`, `decode`), and when a stream is well-formed (`check`).

A stream of depth d linearizes a d-deep nested list. A stop states which levels it closes, lowest and highest, level 0 being the
innermost; an element is a coordinate, a reference or a number; `N` is an absent payload; `D` ends the stream.

>>> " ".join(map(str, encode([[1, 2], [3]], 2)))
'1 2 S0 3 S1 D'
>>> " ".join(map(str, encode([], 2)))
'S1-1 D'
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, Final, TypeAlias

from fuseflow.errors import GraphError


class Stop:
    """A token that closes the levels `low`..`high`. `stop` returns one object for each pair, so stops compare by identity."""

    __slots__ = ("high", "low")

    def __init__(self, low: int, high: int) -> None:
        self.low, self.high = low, high

    def raised(self, levels: int = 1) -> Stop:
        """Return the stop that closes the same lists in a stream that is `levels` deeper: S(l-h) becomes S(l+n - h+n)."""
        return stop(self.low + levels, self.high + levels)

    def with_low(self, low: int) -> Stop:
        return stop(low, self.high)

    def __repr__(self) -> str:
        return f"S{self.high}" if self.low == 0 else f"S{self.low}-{self.high}"

    def __reduce__(self) -> tuple[Any, ...]:
        return stop, (self.low, self.high)


class Mark:
    """A token without content: `N` or `D`."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text

    def __reduce__(self) -> str:
        return self.text


N: Final = Mark("N")
"""The empty token: a payload that is absent, as where a side of a join lacks a coordinate. A coordinate is never `N`."""
D: Final = Mark("D")
"""The done token, which ends the stream. It occurs once, as the last token."""

Token: TypeAlias = int | float | Stop | Mark
Stream: TypeAlias = list[Token]


@cache
def stop(low: int, high: int) -> Stop:
    """Return the stop that closes levels `low`..`high`. Raises `ValueError` unless 0 <= `low` <= `high`."""
    if not 0 <= low <= high:
        raise ValueError(f"a stop closes levels low..high, not {low}..{high}")
    return Stop(low, high)


def is_control(token: Token) -> bool:
    """Return whether the token is a stop or done."""
    return token is D or token.__class__ is Stop


def encode(nested: Any, depth: int) -> Stream:
    """Return the stream of a `depth`-deep nested list. Depth 0 is a single element."""
    if depth == 0:
        return [nested, D]
    out: Stream = []

    def put(value: Any, level: int) -> None:
        start = len(out)
        for element in value:
            if level == 0:
                out.append(element)
            else:
                put(element, level - 1)
        last = out[-1] if len(out) > start else None
        if isinstance(last, Stop):  # the stop of the last inner list closes this list, too
            out[-1] = stop(last.low, level)
        else:
            out.append(stop(level, level))

    put(nested, depth - 1)
    return [*out, D]


def decode(stream: Sequence[Token], depth: int) -> Any:
    """Return the nested list of a stream. Raises `GraphError` if the stream is malformed."""
    check(stream, depth)
    if depth == 0:
        return stream[0]
    open_lists: list[list[Any]] = [[] for _ in range(depth)]  # open_lists[l]: elements so far of the current list at level l
    for token in stream:
        if isinstance(token, Stop):
            for level in range(token.low, token.high + 1):
                done, open_lists[level] = open_lists[level], []
                if level + 1 < depth:
                    open_lists[level + 1].append(done)
                else:
                    return done
        else:
            open_lists[0].append(token)
    raise GraphError(f"stream ends before its outermost list is closed: {show(stream)}")


def check(stream: Iterable[Token], depth: int, kind: str = "") -> None:
    """Raise `GraphError` unless the stream is well-formed. `D` occurs once and last, every stop closes an open list, and the
    outermost list is closed exactly once. Coordinates (`kind` "crd") ascend and are never `N`."""
    tokens = list(stream)
    if not tokens or tokens[-1] is not D or any(t is D for t in tokens[:-1]):
        raise GraphError(f"`D` must stand once, last: {show(tokens)}")
    body = tokens[:-1]
    if depth == 0:
        if len(body) != 1 or isinstance(body[0], Stop):
            raise GraphError(f"a stream of depth 0 holds one element: {show(tokens)}")
        return
    top = [t for t in body if isinstance(t, Stop) and t.high == depth - 1]
    if len(top) != 1 or body[-1] is not top[0]:
        raise GraphError(f"S{depth - 1} must stand once, before D: {show(tokens)}")
    last: float = -1
    low = depth - 1  # the highest level that a stop may start at: 0 after an element; after a stop, the levels that it closed
    for token in body:
        if isinstance(token, Stop):
            if token.high >= depth or token.low > low:
                raise GraphError(f"stop {token} does not close an open list: {show(tokens)}")
            last, low = -1, token.high
            continue
        if kind == "crd":
            if token is N or not isinstance(token, int) or token <= last:
                raise GraphError(f"coordinates must ascend: {show(tokens)}")
            last = token
        low = 0


def show(stream: Iterable[Token], limit: int = 40) -> str:
    """Return the stream as text, with at most `limit` tokens."""
    tokens = [f"{t:g}" if isinstance(t, float) else str(t) for t in stream]
    return " ".join(tokens[:limit]) + (f" ... ({len(tokens)} tokens)" if len(tokens) > limit else "")


def parse(text: str) -> Stream:
    """Read a stream from its text form, such as `1 2 S0 3 S1-2 N D`."""
    out: Stream = []
    for word in text.split():
        if word == "D":
            out.append(D)
        elif word == "N":
            out.append(N)
        elif word.startswith("S"):
            low, _, high = word[1:].rpartition("-")
            out.append(stop(int(low or 0), int(high)))
        else:
            out.append(int(word) if word.lstrip("-").isdigit() else float(word))
    return out
