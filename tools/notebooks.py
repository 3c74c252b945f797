"""Run the notebooks of `examples`, each in a kernel of its own, and keep what they show.

    python tools/notebooks.py --write

Without `--write`, nothing is kept: the command fails where a cell does. Cells with the tag `skip-execution`, which install packages, are
left out. What libraries say about themselves on standard error is not kept.
"""

from __future__ import annotations

from pathlib import Path

import click
import nbformat
from jupyter_client.manager import KernelManager
from nbclient import NotebookClient
from nbformat import NotebookNode

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples"

FORGET_NAMES = "__import__('gc').freeze()\n%reset -f"
"""A cell that deletes all names. That looks for garbage several times, which takes seconds where all of PyTorch is searched."""


def executed(path: Path, kernel: KernelManager | None = None) -> NotebookNode:
    """Return a notebook with the outputs of its cells. Raise `nbclient.exceptions.CellExecutionError` for a cell that fails.

    With `kernel`, it runs there, and leaves modules that are imported, but no names.
    """
    notebook = nbformat.read(path, as_version=4)
    where = {"metadata": {"path": str(path.parent)}}
    notebook.cells.append(nbformat.v4.new_code_cell(FORGET_NAMES))
    client = NotebookClient(notebook, km=kernel, timeout=240, record_timing=False, resources=where)
    client.execute(cleanup_kc=kernel is None)
    notebook.cells.pop()
    for cell in code_cells(notebook):
        cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
    notebook.metadata.pop("language_info", None)  # the version of Python, which the kernel writes
    return notebook


def code_cells(notebook: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def printed(notebook: NotebookNode) -> str:
    """Return what the cells print, without pictures."""
    return "".join(output.text for cell in code_cells(notebook) for output in cell.outputs if output.output_type == "stream")


def pictures(notebook: NotebookNode) -> list[str]:
    """Return the pictures of a notebook, in base 64."""
    shown = [output.data for cell in code_cells(notebook) for output in cell.outputs if "data" in output]
    return [data["image/png"] for data in shown if "image/png" in data]


def tables(notebook: NotebookNode) -> list[str]:
    """Return the tables of a notebook, in HTML."""
    shown = [output.data for cell in code_cells(notebook) for output in cell.outputs if "data" in output]
    return [data["text/html"] for data in shown if "text/html" in data]


@click.command()
@click.option("--only", multiple=True, metavar="NAME", help="Only this notebook; repeatable.")
@click.option("--write", is_flag=True, help="Keep the outputs in the notebooks.")
def main(only: tuple[str, ...], write: bool) -> None:
    for path in [path for path in sorted(EXAMPLES.glob("*.ipynb")) if not only or path.stem in only]:
        notebook = executed(path)
        click.echo(f"{path.relative_to(ROOT)}: {len(pictures(notebook))} picture")
        if write:
            nbformat.write(notebook, path)


if __name__ == "__main__":
    main()
