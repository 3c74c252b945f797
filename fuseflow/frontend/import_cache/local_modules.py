"""The code of a model: its file and the modules that it imports, as far as they are the user's own and not installed."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from fuseflow.frontend.import_cache.installation import is_installed
from fuseflow.frontend.import_cache.repeatable import unrepeatable


def code_reasons(opened: Iterable[str]) -> Iterator[str]:
    """Yield why a Python file that a model opened may do something else when it runs again."""
    files = [path for path in opened if path.endswith(".py")]
    for path in files:
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            continue  # the state of the file tells
        if reason := unrepeatable(text):
            yield f"{reason} in {path}"
        for name in _imported(text):
            file = getattr(sys.modules.get(name), "__file__", None)
            if file and file not in files and not is_installed(str(Path(file).absolute())):
                yield f"imports `{name}`, which this process had loaded before"


def _imported(text: str) -> Iterator[str]:
    """Yield the full names of the modules that a text of Python may import."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
