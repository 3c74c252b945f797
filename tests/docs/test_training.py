"""The tables of optimizers and losses on the page list what there is, with options and defaults."""

from __future__ import annotations

import re
from dataclasses import MISSING, fields

from doc_blocks import ROOT

from fuseflow.training.losses import LOSSES
from fuseflow.training.optimizers.formulas import OPTIMIZERS

PAGE = (ROOT / "docs" / "how-to" / "simulate-a-training-step.md").read_text(encoding="utf-8")


def rows(chapter: str) -> dict[str, list[str]]:
    """Return the cells of the first table of a chapter by the name in the first cell."""
    text = PAGE.partition(f"## {chapter}\n")[2]
    table = re.search(r"^\|.*?\n\n", text, re.MULTILINE | re.DOTALL)[0]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table.strip().splitlines()[2:]]
    return {row[0].strip("| `"): row for row in cells}


def options(cls: type) -> list[str]:
    assert all(field.default is not MISSING for field in fields(cls))
    return [f"{field.name}={field.default}" for field in fields(cls)]


def test_optimizers_are_listed_with_their_options():
    table = rows("Optimizers")
    assert list(table) == list(OPTIMIZERS)
    for name, cls in OPTIMIZERS.items():
        assert cls.torch_name in table[name][1] and re.findall(r"`(.*?)`", table[name][2]) == options(cls)


def test_losses_are_listed_with_their_options():
    table = rows("Losses")
    assert list(table) == list(LOSSES)
    for name, cls in LOSSES.items():
        function = getattr(cls, "function", None)
        assert function is None or (f"`{function}`" in table[name][1] and re.findall(r"`(.*?)`", table[name][2]) == options(cls))
