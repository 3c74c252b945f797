"""Figures as files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from fuseflow.errors import UsageError
from fuseflow.filesystem import replace_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure

IMAGE_FORMATS = ("png", "svg", "pdf")
"""The formats of figures, which are the endings of their files."""


def require_matplotlib(what: str, hint: str) -> None:
    """Raise `UsageError` if matplotlib, which draws `what`, is not installed."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise UsageError(f"{what} needs matplotlib", hint=hint) from None


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure in the format that the ending of its file names. The same figure gives the same bytes."""
    undated = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(path.suffix)
    with replace_file(path) as temporary:
        figure.savefig(temporary, format=path.suffix[1:], dpi=150, metadata=undated)
