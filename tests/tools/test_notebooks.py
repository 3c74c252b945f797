"""The notebooks of `examples` run as they stand, and show what they show here."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path

import notebooks as tool
import pytest
from jupyter_client.manager import AsyncKernelManager, KernelManager
from jupyter_core.utils import run_sync

EXAMPLES = Path(__file__).parents[2] / "examples"
LIBRARIES = {"pytorch_geometric": "torch_geometric", "hugging_face": "transformers"}
"""The notebooks with models of libraries, which draw a picture."""
TOURS = ("quickstart", "gcn_fusion", "orders_lanes_memory", "design_space", "training")
"""The notebooks that show fuseflow by itself."""


def test_all_are_tested() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.ipynb")} == {*LIBRARIES, *TOURS}


@pytest.fixture(scope="module")
def kernel() -> Iterator[KernelManager]:
    """One kernel for all notebooks, which import the same."""
    manager = AsyncKernelManager()
    yield manager
    run_sync(manager.shutdown_kernel)(now=True)


def test_notebooks_with_models_of_libraries(kernel: KernelManager) -> None:
    for name, library in LIBRARIES.items():
        pytest.importorskip(library)
        committed = tool.nbformat.read(EXAMPLES / f"{name}.ipynb", as_version=4)
        lines = [line for cell in tool.code_cells(committed) for line in cell.source.splitlines() if line.strip()]
        assert len(lines) <= 15 and lines[0].startswith("%pip install")
        shown = tool.executed(EXAMPLES / f"{name}.ipynb", kernel)
        assert tool.printed(shown) == tool.printed(committed), f"{name}: redo it: python tools/notebooks.py --write"
        for notebook in (shown, committed):
            (picture,) = tool.pictures(notebook)
            assert base64.b64decode(picture).startswith(b"\x89PNG")


def test_tours_show_what_they_show_here(kernel: KernelManager) -> None:
    for name in TOURS:
        path = EXAMPLES / f"{name}.ipynb"
        committed, shown = tool.nbformat.read(path, as_version=4), tool.executed(path, kernel)
        assert tool.printed(shown) == tool.printed(committed), f"{name}: redo it: python tools/notebooks.py --write"
        tables = tool.tables(shown)
        assert tables == tool.tables(committed), f"{name}: redo it: python tools/notebooks.py --write"
        assert tables or tool.printed(shown)
        assert all(len(table) < 6000 for table in tables)


def test_a_notebook_leaves_no_name_in_its_kernel(kernel: KernelManager, tmp_path: Path) -> None:
    for name, source in (("first", "a = 1\nprint(a)"), ("second", "print('a' in globals())")):
        cells = [tool.nbformat.v4.new_code_cell(source)]
        tool.nbformat.write(tool.nbformat.v4.new_notebook(cells=cells), tmp_path / f"{name}.ipynb")
    shown = [tool.printed(tool.executed(tmp_path / f"{name}.ipynb", kernel)) for name in ("first", "second")]
    assert shown == ["1\n", "False\n"]
