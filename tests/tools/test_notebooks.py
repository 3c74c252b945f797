"""The notebooks of `examples` run as they stand, and show what they show here."""

from __future__ import annotations

import base64
import importlib
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
LIBRARIES = {"pytorch_geometric": "torch_geometric", "hugging_face": "transformers"}


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(EXAMPLES.parent / "tools")
    return importlib.import_module("notebooks")


def test_all_are_tested() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.ipynb")} == set(LIBRARIES)


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
