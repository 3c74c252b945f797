"""The table of rules of `keep`: which entries of a tensor are kept, and how much must be seen before that is decided.

`keep(2 of 4 over j) A[i, j]` is `A` with the two entries of largest magnitude in every four coordinates of `j`; all others become the
implicit value, which is 0. Of equal magnitudes the entry with the lower coordinates is kept, outermost index first. NaN is larger than
every number. A rule that asks for more entries than there are keeps all of them.

`keep(4 greatest over j)` and `keep(4 least over j)` compare the numbers with their signs. `mark(4 greatest over j) A[i, j]` is 1 where
that entry is kept. In these three an element that is not stored takes part, as it may be kept.

Program text, the verifier, the interpreters, the reference simulator and the estimate read this module. The engine has a compiled form
of its own, which tests compare with it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

_FEW = 16
"""The most elements of a fiber that are compared with each other. For so short a fiber this is faster than a sort."""
SMALLEST = math.ulp(0.0)
"""The smallest magnitude above 0."""
MAX_GROUP = 256
"""The most coordinates of a group of `keep(n of m over j)`, and of a level `nm(n:m)`: an offset in it fits a byte."""

_RULE = re.compile(
    r"nonzero|threshold (?P<threshold>\S+)|(?P<marks>mark )?(?P<count>\d{1,18})( of (?P<every>\d{1,18}))?(?P<by> greatest| least)?"
)

By: TypeAlias = Literal["magnitude", "greatest", "least"]
"""The order by which entries are kept: the largest magnitudes, or the greatest or the least numbers."""
SIGNED: tuple[By, ...] = ("greatest", "least")
"""The orders that a program names."""

Kind: TypeAlias = Literal["streaming", "blocking", "materializing"]
"""How much must be seen before an entry is kept: the entry alone, the group or fiber in which it stands, or the whole result."""


@dataclass(frozen=True, slots=True)
class Threshold:
    """Keeps every entry whose magnitude is at least `least`."""

    least: float

    def __str__(self) -> str:
        return "nonzero" if self.least == SMALLEST else f"threshold {_shortest(self.least)}"


@dataclass(frozen=True, slots=True)
class Largest:
    """Keeps the first `count` entries of every fiber, or of every group of `every` coordinates of it, counted from 0, in the order that
    `by` names. A rule that `marks` keeps a 1 in place of an entry."""

    count: int
    every: int = 0
    by: By = "magnitude"
    marks: bool = False

    def __str__(self) -> str:
        count = f"{self.count} of {self.every}" if self.every else str(self.count)
        return "mark " * self.marks + count + f" {self.by}" * (self.by != "magnitude")

    @property
    def keeps_zeros(self) -> bool:
        """Whether an element that is not stored, a 0, may be kept and be told from one that is not."""
        return self.marks or self.by != "magnitude"


Rule: TypeAlias = Threshold | Largest

NONZERO = Threshold(SMALLEST)
"""Keeps every entry that is not 0. Its text is `nonzero`."""


def parse_rule(text: str) -> Rule | None:
    """Return the rule of a text that `str` printed, or None for another text. `refusal` checks its numbers."""
    match = _RULE.fullmatch(text)
    if match is None:
        return None
    if text == str(NONZERO):
        return NONZERO
    if match["threshold"] is not None:
        try:
            return Threshold(float(match["threshold"]))
        except ValueError:
            return None
    by: By = next((by for by in SIGNED if match["by"] == f" {by}"), "magnitude")
    return Largest(int(match["count"]), int(match["every"] or 0), by, match["marks"] is not None)


def show_keep(rule: Rule, over: Sequence[str]) -> str:
    """Return the text of a rule over some indices at the head of a statement.

    >>> show_keep(Largest(4, by="greatest", marks=True), ["e"])
    'mark(4 greatest over e)'
    """
    verb = "mark" if isinstance(rule, Largest) and rule.marks else "keep"
    return f"{verb}({str(rule).removeprefix('mark ')}{' over ' * bool(over)}{', '.join(over)})"


def refusal(rule: Rule, extent: int) -> tuple[str, str]:
    """Return why a rule makes no sense over indices that span `extent` coordinates, and a hint; ("", "") if it makes sense."""
    if isinstance(rule, Threshold):
        if not rule.least >= 0:
            return f"a threshold is a magnitude, and {rule.least} is none", "give a number of at least 0"
    elif rule.every:
        return group_refusal(rule.count, rule.every)
    elif not 1 <= rule.count <= extent:
        return f"{rule.count} entries cannot be kept of {extent}", f"keep between 1 and {extent}"
    return "", ""


def group_refusal(count: int, every: int) -> tuple[str, str]:
    """Return why `count` of every `every` coordinates cannot be kept, and a hint; ("", "") if they can."""
    if not 1 <= every <= MAX_GROUP:
        return f"a group cannot have {every} coordinates", f"groups have between 1 and {MAX_GROUP}"
    if not 1 <= count <= every:
        return f"{count} entries cannot be kept of every {every}", f"keep between 1 and {every}"
    return "", ""


def what_is_kept(rule: Rule, value: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return what a rule leaves of entries that it keeps: the entries, or ones."""
    return np.ones_like(value) if isinstance(rule, Largest) and rule.marks else value


def kind(rule: Rule, over: Sequence[str]) -> Kind:
    """Return how many elements a rule of `keep` compares with each other: one, a fiber if it is over one index, or the whole result."""
    if isinstance(rule, Threshold):
        return "streaming"
    return "blocking" if len(over) == 1 else "materializing"


def kept(rule: Rule, values: npt.ArrayLike, axes: Sequence[int] = ()) -> npt.NDArray[np.bool_]:
    """Return which elements of a dense array a rule keeps. The rule is over `axes`, the outermost first; none for a threshold.

    >>> kept(Largest(1, every=2), [3.0, -4.0, 5.0, 5.0, 1.0], [0]).tolist()
    [False, True, True, False, True]
    """
    array = np.asarray(values, dtype=np.float64)
    if isinstance(rule, Threshold):
        return np.isnan(array) | (np.abs(array) >= rule.least)
    axes = tuple(axes)
    last = tuple(range(array.ndim - len(axes), array.ndim))
    moved = np.moveaxis(array, axes, last)
    fibers = moved.reshape(*moved.shape[: last[0]], math.prod(moved.shape[last[0] :]))
    mask = _largest_of_groups(fibers, rule) if rule.every else largest(fibers, rule.count, rule.by)
    return np.moveaxis(mask.reshape(moved.shape), last, axes)


def largest(values: npt.ArrayLike, count: int, by: By = "magnitude") -> npt.NDArray[np.bool_]:
    """Return the mask of the first `count` values along the last dimension in the order `by`. Of equal ones the first are taken."""
    array = np.asarray(values, dtype=np.float64)
    if count >= array.shape[-1]:
        return np.ones(array.shape, dtype=bool)
    if count <= 0:
        return np.zeros(array.shape, dtype=bool)
    ranks = _ranks(array, by)
    if array.shape[-1] <= _FEW:
        few: npt.NDArray[np.bool_] = _larger_before(ranks) < count
        return few
    least = np.partition(ranks, -count, axis=-1)[..., -count, None]
    above, equal = ranks > least, ranks == least
    still = count - above.sum(axis=-1, keepdims=True)
    first: npt.NDArray[np.bool_] = equal & (equal.cumsum(axis=-1) <= still)
    return above | first


def kept_entries(rule: Rule, values: npt.ArrayLike, groups: npt.ArrayLike) -> npt.NDArray[np.bool_]:
    """Return which stored entries a rule keeps. Elements that are not stored are 0. `groups` numbers the fiber of each entry, or
    its group in the fiber, inside which entries are compared. Entries of a group stand in the order of their coordinates.

    >>> kept_entries(Largest(1), [3.0, -4.0, 5.0, 5.0], [0, 0, 7, 7]).tolist()
    [False, True, True, False]
    """
    array, group = np.asarray(values, dtype=np.float64), np.asarray(groups)
    if isinstance(rule, Threshold):
        return kept(rule, array)
    order = np.lexsort((~_ranks(array, rule.by), group))
    ranked = group[order]
    mask = np.empty(len(array), dtype=bool)
    mask[order] = np.arange(len(array)) - np.searchsorted(ranked, ranked) < rule.count
    return mask


def _larger_before(ranks: npt.NDArray[np.int64]) -> npt.NDArray[np.int8]:
    """Return for each element of the last dimension the number of elements that are before it by rank. Ties go to the first."""
    columns = np.ascontiguousarray(np.moveaxis(ranks, -1, 0))
    before = np.zeros(columns.shape, dtype=np.int8)
    for k, column in enumerate(columns):
        for other in range(k):
            first = columns[other] >= column
            before[k] += first
            before[other] += ~first
    return np.moveaxis(before, 0, -1)


def _ranks(array: npt.NDArray[np.float64], by: By) -> npt.NDArray[np.int64]:
    """Return integers, the largest for the entry that is kept first. The bits of floats without the sign are ordered as the magnitudes,
    NaN last. The bits of a negative number but its sign are turned, so that all are ordered as the numbers."""
    numbers = np.abs(array) if by == "magnitude" else array + 0.0  # -0 is no less than 0
    np.copyto(numbers, np.nan, where=np.isnan(array))  # A NaN may have other bits.
    bits = numbers.view(np.int64)
    ranks = bits ^ ((bits >> 63) & np.int64(2**63 - 1))
    return ~ranks if by == "least" else ranks


def _largest_of_groups(fibers: npt.NDArray[np.float64], rule: Largest) -> npt.NDArray[np.bool_]:
    """Return the mask of the elements that the rule keeps in every group of coordinates. The last group may be short."""
    size = fibers.shape[-1]
    whole = size - size % rule.every
    groups = fibers[..., :whole].reshape(*fibers.shape[:-1], whole // rule.every, rule.every)
    mask = np.empty(fibers.shape, dtype=bool)
    mask[..., :whole] = largest(groups, rule.count, rule.by).reshape(*fibers.shape[:-1], whole)
    mask[..., whole:] = largest(fibers[..., whole:], rule.count, rule.by)
    return mask


def _shortest(value: float) -> str:
    return str(int(value)) if math.isfinite(value) and value == int(value) and abs(value) < 1e16 else repr(value)
