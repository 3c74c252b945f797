"""Chains of products, which say in which order factors are multiplied: `A (X W)`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias

from fuseflow.errors import ProgramError

Group: TypeAlias = "str | tuple[Group, Group]"
"""A factor, which is the name of a tensor, or the product of two groups."""

_WORD = re.compile(r"\s*([()]|\w+(?:\.\w+)*)")
_FORM = "write the factors in pairs, as in `A (X W)` or `(A B) (C D)`"


@dataclass(frozen=True, slots=True)
class Chain:
    """An order of products, as a tree of pairs.

    >>> chain = Chain.parse("A((X) W)")
    >>> str(chain), chain.factors
    ('A (X W)', ('A', 'X', 'W'))
    """

    root: tuple[Group, Group]

    @classmethod
    def parse(cls, text: str) -> Chain:
        """Read a chain. Raises `ProgramError` for a text that is none, and for one that leaves the order open."""
        open_lists: list[list[object]] = [[]]
        for word in _words(text):
            if word == "(":
                open_lists[-1].append(inner := list[object]())
                open_lists.append(inner)
            elif word != ")":
                open_lists[-1].append(word)
            elif len(open_lists) > 1:
                open_lists.pop()
            else:
                raise _refused(text, "a `)` closes nothing")
        if len(open_lists) > 1:
            raise _refused(text, "a `(` is not closed")
        group = _group(text, open_lists[0])
        if isinstance(group, str):
            raise _refused(text, "it has one factor")
        return cls(group)

    @property
    def factors(self) -> tuple[str, ...]:
        """The factors from left to right. A tensor stands as often as it is a factor."""
        return factors(self.root)

    def __str__(self) -> str:
        return show(self.root)


def factors(group: Group) -> tuple[str, ...]:
    """Return the factors of a group from left to right."""
    return (group,) if isinstance(group, str) else (*factors(group[0]), *factors(group[1]))


def show(group: Group) -> str:
    """Return the text of a group, without parentheses around all of it."""
    if isinstance(group, str):
        return group
    return " ".join(part if isinstance(part, str) else f"({show(part)})" for part in group)


def _words(text: str) -> list[str]:
    words, at, end = list[str](), 0, len(text.rstrip())
    while at < end:
        word = _WORD.match(text, at)
        if word is None:
            raise _refused(text, f"`{text[at:].strip()}` is no factor")
        words.append(word[1])
        at = word.end()
    return words


def _group(text: str, items: object) -> Group:
    """Return nested lists of factors, `items`, as a group of pairs. Raises `ProgramError` if the order is left open."""
    if isinstance(items, str):
        return items
    assert isinstance(items, list)
    match items:
        case []:
            raise _refused(text, "a factor is missing")
        case [single]:
            return _group(text, single)
        case [left, right]:
            return _group(text, left), _group(text, right)
    raise _refused(text, f"{len(items)} factors beside each other leave open which product comes first")


def _refused(text: str, why: str) -> ProgramError:
    return ProgramError(f"`{text}` is no chain of products: {why}", hint=_FORM)
