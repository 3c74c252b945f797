"""The notebooks of `examples` run as they stand, and show what they show here."""

from __future__ import annotations

import base64
import importlib
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
LIBRARIES = {"pytorch_geometric": "torch_geometric", "hugging_face": "transformers"}
"""The notebooks with models of libraries, which draw a picture."""
TOURS = ("quickstart", "gcn_fusion", "orders_lanes_memory", "design_space")
"""The notebooks that show fuseflow by itself."""


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(EXAMPLES.parent / "tools")
    return importlib.import_module("notebooks")


def test_all_are_tested() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.ipynb")} == {*LIBRARIES, *TOURS}


@pytest.mark.parametrize("name", LIBRARIES)
def test_a_notebook(tool: Any, name: str) -> None:
    pytest.importorskip(LIBRARIES[name])
    committed = tool.nbformat.read(EXAMPLES / f"{name}.ipynb", as_version=4)
    lines = [line for cell in tool.code_cells(committed) for line in cell.source.splitlines() if line.strip()]
    assert len(lines) <= 15 and lines[0].startswith("%pip install")
    shown = tool.executed(EXAMPLES / f"{name}.ipynb")
    assert tool.printed(shown) == tool.printed(committed), "redo it: python tools/notebooks.py --write"
    for notebook in (shown, committed):
        (picture,) = tool.pictures(notebook)
        assert base64.b64decode(picture).startswith(b"\x89PNG")


@pytest.mark.parametrize("name", TOURS)
def test_a_tour_shows_what_it_shows_here(tool: Any, name: str) -> None:
    path = EXAMPLES / f"{name}.ipynb"
    committed, shown = tool.nbformat.read(path, as_version=4), tool.executed(path)
    assert tool.printed(shown) == tool.printed(committed), "redo it: python tools/notebooks.py --write"
    tables = tool.tables(shown)
    assert tables == tool.tables(committed), "redo it: python tools/notebooks.py --write"
    assert tables or tool.printed(shown)
    assert all(len(table) < 6000 for table in tables)
