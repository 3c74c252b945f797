"""The table of the zoo, `table.jsonl`: one line for each model, in the order of families and names, without times."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import get_args

from zoo_registry import GRANULARITIES, Family
from zoo_verdict import Row

TABLE = Path(__file__).with_name("table.jsonl")
FAMILIES = get_args(Family)
WORDS = ("accepted", "hollow", "refused", "limit", "wrong", "crash")
"""What `verdict` may say."""


def line(row: Row) -> str:
    """The line of a row, which has no times."""
    return json.dumps({key: value for key, value in sorted(row.items()) if key != "seconds"}) + "\n"


def text(rows: Iterable[Row]) -> str:
    return "".join(line(row) for row in sorted(rows, key=lambda row: (FAMILIES.index(row["family"]), row["name"])))


def read(path: Path = TABLE) -> dict[str, Row]:
    """The rows of a table by name, none if it was not made yet."""
    lines = path.read_text().splitlines() if path.exists() else []
    return {row["name"]: row for row in map(json.loads, lines)}


def verdict(row: Row) -> str:
    """One word for a model: the worst of its granularities, or `hollow`."""
    seen = {row[granularity] for granularity in GRANULARITIES[row["family"]]}
    worst = next(word for word in ("crash", "wrong", "limit", "refused", "accepted") if word in seen)
    return "hollow" if worst == "accepted" and row.get("hollow") else worst


def counts(rows: Iterable[Row], words: Sequence[str] = WORDS, word_of: Callable[[Row], str] = verdict) -> list[list[str]]:
    """How many models of each family there are, and how many of each verdict: a heading and a line for each family
    that has models."""
    verdicts = Counter((row["family"], word_of(row)) for row in rows)
    lines = [["family", "models", *words]]
    for family in FAMILIES:
        numbers = [verdicts[family, word] for word in words]
        if any(numbers):
            lines.append([family, *map(str, (sum(numbers), *numbers))])
    return lines


def summary(rows: Iterable[Row]) -> str:
    return "\n".join(f"{family:12}" + "".join(f"{number:>10}" for number in numbers) for family, *numbers in counts(rows))


def markdown(lines: list[list[str]]) -> str:
    """Counts as a table of a page."""
    heading, *others = [f"| {' | '.join(line)} |" for line in lines]
    return "\n".join([heading, "|---|" + "---|" * (heading.count("|") - 2), *others])
