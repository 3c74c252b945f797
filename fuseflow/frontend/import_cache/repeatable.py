"""Whether the code of a model does the same when it runs again, as far as its text tells: `import time` is a reason to think otherwise.

The code is the model file and the modules that it imports, as far as they are the user's own and not installed.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from fuseflow.frontend.import_cache.request import is_installed

_UNREPEATABLE: Final = {
    **dict.fromkeys(("time", "datetime", "os.times"), "the clock"),
    **dict.fromkeys(("random", "secrets", "uuid", "os.urandom", "torch.seed", "torch.random.seed"), "unseeded numbers"),
    **dict.fromkeys(("os.environ", "os.environb", "os.getenv"), "the environment"),
    **dict.fromkeys(("platform", "getpass", "pwd", "os.getpid", "os.uname", "os.cpu_count", "os.getlogin"), "the machine"),
    **dict.fromkeys(("threading", "multiprocessing", "concurrent", "asyncio"), "what runs beside it"),
    **dict.fromkeys(("ctypes", "cffi", "scipy.io", "h5py", "safetensors", "pyarrow"), "files that Python does not see"),
    **dict.fromkeys(("importlib", "runpy", "eval", "exec", "__import__"), "code that only runs"),
}
"""Names of functions and modules whose results depend on more than the files that a model reads, and what they depend on."""
_GENERATORS: Final = ("default_rng", "RandomState", "SeedSequence", "PCG64", "MT19937", "Philox", "SFC64")
"""Functions of `numpy.random` that need a seed to give the same numbers again."""


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


def unrepeatable(text: str) -> str | None:
    """Return why a text of Python may do something else when it runs again, or None if nothing in it says so.

    >>> unrepeatable("from time import monotonic")
    'depends on the clock: `time.monotonic`'
    >>> unrepeatable("import numpy as np; x = np.random.default_rng(7)")
    """
    tree = _parsed(text)
    if tree is None:
        return "is not read as Python"
    names = dict(_imported_names(tree))
    for node in ast.walk(tree):
        for name in _references(node, names):
            if prefix := next((p for p in _UNREPEATABLE if f"{name}.".startswith(f"{p}.")), None):
                return f"depends on {_UNREPEATABLE[prefix]}: `{name}`"
        if isinstance(node, ast.Call) and not node.args and not node.keywords:
            called = next(iter(_references(node.func, names)), "")
            if called.startswith("numpy.random.") and called.endswith(_GENERATORS):
                return f"depends on unseeded numbers: `{called}()`"
    return None


def _imported_names(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield each name that an import statement binds, with the full name of the object that it refers to."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                first = alias.name.partition(".")[0]
                yield (alias.asname, alias.name) if alias.asname else (first, first)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                yield alias.asname or alias.name, f"{node.module}.{alias.name}"


def _references(node: ast.AST, names: dict[str, str]) -> list[str]:
    """Return the full names that a node refers to."""
    match node:
        case ast.Import():
            return [alias.name for alias in node.names]
        case ast.ImportFrom(module=str(module), level=0):
            return [f"{module}.{alias.name}" for alias in node.names]
        case ast.Name():
            return [names.get(node.id, node.id)] if node.id in names or node.id in _UNREPEATABLE else []
        case ast.Attribute():
            return [f"{value}.{node.attr}" for value in _references(node.value, names)]
        case _:
            return []


def _imported(text: str) -> Iterator[str]:
    """Yield the full names of the modules that a text of Python may import."""
    for node in ast.walk(_parsed(text) or ast.Module([], [])):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _parsed(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return None
