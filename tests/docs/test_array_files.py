"""docs/reference/array-files.md has every key of an array file, with its default."""

from __future__ import annotations

import re
from collections.abc import Iterator

from doc_blocks import ROOT
from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from fuseflow.array.settings import ArraySettings, GridSize, PortTiles, TilePattern

PAGE = (ROOT / "docs" / "reference" / "array-files.md").read_text(encoding="utf-8")
TABLES: dict[str, type[BaseModel]] = {"grid": GridSize, "tiles": TilePattern, "ports": PortTiles}
"""The keys without a default that are tables."""


def keys(model: type[BaseModel], above: str = "") -> Iterator[tuple[str, object]]:
    """Yield each key of a file with its default, None for one that must be there."""
    for name, field in model.model_fields.items():
        table = field.default if isinstance(field.default, BaseModel) else TABLES.get(name)
        if table is None:
            yield above + name, None if field.default is PydanticUndefined else field.default
        else:
            yield from keys(table if isinstance(table, type) else type(table), f"{name}.")


def test_every_key_has_a_row_with_its_default() -> None:
    told = {}
    for line in re.findall(r"^\| `.*", PAGE.partition("## Footprints")[0], re.MULTILINE):
        names, defaults = line.split("|")[1:3]
        names = re.findall(r"`([\w.]+)`", names)
        values = [value.strip() for value in defaults.split(",")]
        told |= dict(zip(names, values if len(values) == len(names) else values * len(names), strict=True))
    stated = dict(keys(ArraySettings))
    assert told.keys() == stated.keys()
    plain = {name: str(value) for name, value in stated.items() if isinstance(value, int | str) and value and name != "name"}
    assert {name: told[name] for name in plain} == plain
