"""References to the function that builds a model: a model file, `file.py:function`, or `package.module:function`."""

from __future__ import annotations

import importlib
import importlib.util
import os
import pkgutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from fuseflow.errors import FileError, did_you_mean

DEFAULT_FUNCTION = "build"
"""The function of a model file that builds its model, if no other one is named."""


@dataclass(frozen=True, slots=True)
class Factory:
    """The place of a function that builds a model. `module` is the full name of a Python module, or '' for a function in `file`."""

    function: str
    file: Path = Path()
    module: str = ""

    @classmethod
    def parse(cls, text: str) -> Factory | None:
        """Return the function that a text names, or None if it names no function of Python.

        >>> Factory.parse("package.module:small").module, Factory.parse("models/gcn.py").function, Factory.parse("gcn.ein")
        ('package.module', 'build', None)
        """
        path = Path(text)
        if path.suffix == ".py":
            return cls(DEFAULT_FUNCTION, path)
        place, colon, function = text.rpartition(":")
        if not (colon and function.isidentifier()):
            return None
        if place.endswith(".py"):
            return cls(function, Path(place))
        return cls(function, module=place) if all(name.isidentifier() for name in place.split(".")) else None

    @property
    def place(self) -> Path:
        """The file or the module, as messages call it."""
        return Path(self.module) if self.module else self.file

    @property
    def stem(self) -> str:
        """The name of the model: the name of its function, or of its file or module if the function has the usual name."""
        place = self.module.rpartition(".")[2] or self.file.stem
        return place if self.function == DEFAULT_FUNCTION else self.function


@contextmanager
def importable_from_here() -> Iterator[None]:
    """Let `import` look in the current directory first inside the block, as `python -m` does."""
    folder = os.getcwd()
    importlib.invalidate_caches()  # a module that was written a moment ago
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path.remove(folder)


def require_module(name: str) -> None:
    """Raise `FileError` with the nearest name for a module that Python cannot find. Only the packages around it are imported."""
    parts = name.split(".")
    for n in range(1, len(parts) + 1):
        path = ".".join(parts[:n])
        if path in sys.modules or importlib.util.find_spec(path) is not None:
            continue
        parent = ".".join(parts[: n - 1])
        where = f"package `{parent}`" if parent else "the current directory and the installed packages"
        near = did_you_mean(parts[n - 1], _modules_in(parent))
        hint = near if near.startswith("did") else f"give a module that `python -c 'import {name}'` can import, or a model file"
        raise FileError(f"there is no module `{path}` in {where}", hint=hint)


def _modules_in(package: str) -> Iterator[str]:
    """Return the names of the modules in a package, or of the modules that can be imported on their own if `package` is ''."""
    folders = getattr(sys.modules.get(package, ModuleType(package)), "__path__", ()) if package else sys.path
    return (module.name for module in pkgutil.iter_modules(folders))
