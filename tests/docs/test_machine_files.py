"""docs/reference/machine-files.md has every key of a machine file, with its default where that is a plain value."""

from __future__ import annotations

import re

import pytest
from doc_blocks import ROOT
from pydantic import BaseModel

from fuseflow.machine.machine import Machine, UnitIntervals
from fuseflow.memory.scratchpad_settings import Scratchpad
from fuseflow.memory.settings import MEMORY_KINDS, memory_models
from fuseflow.memory.table_files import KEYS

PAGE = (ROOT / "docs" / "reference" / "machine-files.md").read_text(encoding="utf-8")


def rows(section: str) -> dict[str, str]:
    """The keys of the tables of a section, each with the cell behind it. A row may have several keys."""
    match = re.search(rf"^#+ {re.escape(section)}\n(.*?)(?=^#+ |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert match is not None, section
    cells = [line.split("|")[1:3] for line in match[1].splitlines() if line.startswith("| `")]
    return {key: default.strip() for keys, default in cells for key in re.findall(r"`([\w.-]+)`", keys)}


def defaults(model: type[BaseModel]) -> dict[str, object]:
    return {field.alias or name: field.default for name, field in model.model_fields.items()}


@pytest.mark.parametrize(
    ("section", "models", "others"),
    [
        ("Keys", [Machine], {"base"}),
        ("Memory", list(MEMORY_KINDS.values()), set(memory_models())),
        ("Scratchpad", [Scratchpad], set()),
    ],
    ids=["machine", "memory", "scratchpad"],
)
def test_every_key_has_a_row_with_its_default(section: str, models: list[type[BaseModel]], others: set[str]) -> None:
    told = rows(section)
    stated = {key: value for model in models for key, value in defaults(model).items()}
    assert told.keys() == stated.keys() | others
    plain = {key: value for key, value in stated.items() if isinstance(value, int | float) and key != "channels"}
    assert {key: told[key] for key in plain} == {key: str(value) for key, value in plain.items()}


def test_every_kind_of_unit_is_there() -> None:
    units = [*defaults(UnitIntervals)]
    assert [unit for unit in units if f"`{unit}`" not in PAGE] == []


def test_every_key_of_a_table_has_a_row() -> None:
    assert rows("DRAM tables").keys() == {*KEYS}
