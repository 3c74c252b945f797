"""What figures are made of: data from committed rows and from published.yaml, a table, claims, and a picture, which see nothing else.

A picture carries the digest of the data that it was drawn from, so that an old one can be told.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from claims import Check
from pictures import blank_figure, save
from store import ROOT

PICTURES = ROOT / "docs" / "figures"

Data = dict[str, Any]
"""Plain values, as JSON has them."""


@dataclass(frozen=True, slots=True)
class Options:
    """Of `--run`."""

    data_dir: Path | None
    only: tuple[str, ...]
    limit: float


@dataclass(frozen=True, slots=True)
class Figure:
    """`run` completes the rows; None where another command does, which `how` names. `draw` takes a figure of matplotlib."""

    name: str
    title: str
    stores: tuple[str, ...]
    collect: Callable[[], Data]
    table: Callable[[Data], str]
    checks: Callable[[Data], list[Check]]
    draw: Callable[[Data, Any], None] | None = None
    run: Callable[[Options], None] | None = None
    how: str = ""
    size: tuple[float, float] = (11, 4)


def digest(data: Data) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:16]


def drawn(figure: Figure, data: Data, picture: str | Path) -> None:
    assert figure.draw is not None
    blank = blank_figure(*figure.size)
    figure.draw(data, blank)
    save(blank, picture, f"data {digest(data)}")
