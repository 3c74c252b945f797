"""The table of the zoo, `table.jsonl`: one line for each model, in the order of families and names, without times."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import get_args

from zoo_registry import GRANULARITIES, Family
from zoo_verdict import Row

TABLE = Path(__file__).with_name("table.jsonl")
FAMILIES = get_args(Family)


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


def counts(rows: Iterable[Row]) -> list[list[str]]:
    """How many models of each family there are, and how many of each verdict: a heading and a line for each family."""
    words = ("accepted", "hollow", "refused", "limit", "wrong", "crash")
    verdicts = Counter((row["family"], verdict(row)) for row in rows)
    lines = [["family", "models", *words]]
    for family in FAMILIES:
        numbers = [verdicts[family, word] for word in words]
        lines.append([family, *map(str, (sum(numbers), *numbers))])
    return lines


def summary(rows: Iterable[Row]) -> str:
    return "\n".join(f"{family:12}" + "".join(f"{number:>10}" for number in numbers) for family, *numbers in counts(rows))


def markdown(rows: Iterable[Row]) -> str:
    """The summary as a table of a page."""
    heading, *lines = [f"| {' | '.join(line)} |" for line in counts(rows)]
    return "\n".join([heading, "|---|" + "---|" * (heading.count("|") - 2), *lines])
