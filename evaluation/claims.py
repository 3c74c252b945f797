"""What must hold in a figure, beside what is published, as tables in Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

import click
from ruamel.yaml import YAML
from store import ROOT


@cache
def _yaml(name: str) -> dict[str, Any]:
    return dict(YAML(typ="safe").load((ROOT / "evaluation" / f"{name}.yaml").read_text(encoding="utf-8")))


def published(figure: str) -> dict[str, Any]:
    """What the paper or its artifact has for a figure, without `mark` and `doubtful`."""
    return {key: value for key, value in _yaml("published")[figure].items() if key not in ("mark", "doubtful")}


def mark(figure: str) -> str:
    """P printed, S stored, D derived."""
    return str(_yaml("published")[figure]["mark"])


def doubtful(figure: str) -> dict[str, str]:
    """What contradicts itself, and why."""
    return dict(_yaml("published")[figure].get("doubtful", {}))


def reasons(figure: str) -> dict[str, str]:
    """Why claims of a figure do not hold, by the words of the claim."""
    return {what: entry["reason"] for entry in _yaml("reasons").get(figure, ()) for what in entry["of"]}


SAME = 0.05
"""A number is as published if it is within a twentieth of the published one."""


@dataclass(frozen=True, slots=True)
class Check:
    """What must hold, what is ours, and whether it holds: None where a point was not run yet.

    `published` is what the paper or its artifact has, as printed, and empty where it has nothing: such a claim is our own.
    """

    what: str
    ours: str
    holds: bool | None
    published: str = ""


def within(
    what: str, number: float | None, least: float, most: float = float("inf"), digits: int = 2, published: float | None = None
) -> Check:
    theirs = "" if published is None else f"{published:,.{digits}f}"
    if number is None:
        return Check(what, "not run", None, theirs)
    return Check(what, f"{number:,.{digits}f}", least <= number <= most, theirs)


def as_published(what: str, number: float | None, theirs: float, digits: int = 2, near: float = SAME) -> Check:
    """A number that must be the published one."""
    return within(what, number, theirs * (1 - near), theirs * (1 + near), digits, theirs)


def at_most(what: str, number: float | None, theirs: float, digits: int = 2) -> Check:
    """An error or a cost that must not be greater than the published one."""
    return within(what, number, 0, theirs, digits, theirs)


def rising(what: str, numbers: Sequence[float | None], digits: int = 2, published: Sequence[float] = ()) -> Check:
    """Each larger than the one before, as the published ones are."""
    theirs = " < ".join(f"{n:,.{digits}f}" for n in published)
    found = [n for n in numbers if n is not None]
    if len(found) < len(numbers):
        return Check(what, "not run", None, theirs)
    return Check(what, " < ".join(f"{n:,.{digits}f}" for n in found), all(a < b for a, b in pairwise(found)), theirs)


def together(what: str, parts: Iterable[Check]) -> Check:
    """One that holds where all do; each part says in `what` of which point it is."""
    kept = list(parts)
    found = "; ".join(f"{part.what} {part.ours}" for part in kept)
    theirs = "; ".join(f"{part.what} {part.published}" for part in kept if part.published)
    verdicts = {part.holds for part in kept} or {None}
    holds = False if False in verdicts else None if None in verdicts else True
    return Check(what, found, holds, theirs)


def ratio(above: float | None, below: float | None) -> float | None:
    return above / below if above and below else None


def markdown(heads: Sequence[str], lines: Iterable[Sequence[str]], numbers_from: int = 1) -> str:
    """A table whose columns from some number on are numbers. Heads may be one text, with ` | ` between them."""
    heads = heads.split(" | ") if isinstance(heads, str) else heads
    rule = "|" + "---|" * numbers_from + "---:|" * (len(heads) - numbers_from)
    return "\n".join([f"| {' | '.join(heads)} |", rule, *(f"| {' | '.join(line)} |" for line in lines)]) + "\n"


def cell(number: float | None, form: str = ",.2f") -> str:
    return "" if number is None else f"{number:{form}}"


VERDICTS = {True: "holds", False: "**differs**", None: "not all run"}


def verdicts(figure: str, checks: Iterable[Check]) -> str:
    """A table of claims: what is published, what is ours, and why the two differ."""
    why = reasons(figure)
    lines = ((c.what, c.published, c.ours, VERDICTS[c.holds], why.get(c.what, "") if c.holds is False else "") for c in checks)
    return markdown(("must hold", "published", "ours", "verdict", "reason"), lines, 5)


def unexplained(figure: str, checks: Iterable[Check]) -> list[Check]:
    """What differs without a reason, and what has a reason though it holds."""
    why = reasons(figure)
    return [check for check in checks if check.holds is not None and check.holds == (check.what in why)]


def between_marks(page: str, name: str, tool: str, block: str) -> str:
    """Return a page of the documentation with this block between the marks of a name, which say what tool writes it."""
    pattern = re.compile(rf"(<!-- {name}: evaluation/{tool}\.py --write -->\n).*?(<!-- end of {name} -->\n)", re.DOTALL)
    if not pattern.search(page):
        raise click.ClickException(f"the page has no marks of {name}")
    return pattern.sub(lambda marks: f"{marks[1]}\n{block}\n{marks[2]}", page, count=1)
