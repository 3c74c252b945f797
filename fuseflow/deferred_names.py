"""Names of a package whose modules are imported when the names are first used.

A package writes these names once: as the imports that type checkers read, each in the form that exports it again.

    if TYPE_CHECKING:
        from package.module import Name as Name
    else:
        __getattr__, __dir__, __all__ = deferred_names(__name__, __file__)
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any

_EXPORT = re.compile(r"^    from (\S+) import (\w+) as \2$", re.MULTILINE)


def deferred_names(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return the `__getattr__`, the `__dir__` and the `__all__` of a package, whose source is in a file.

    With it, a module of the package can be imported without the others, as `fuseflow --help` does.
    """
    with open(file, encoding="utf-8") as stream:
        modules = {name: module for module, name in _EXPORT.findall(stream.read())}

    def get(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}", name=name, obj=None)
        module = modules[name]
        value = import_module(f"{package}.{name}") if module == package else getattr(import_module(module), name)
        setattr(sys.modules[package], name, value)
        return value

    class Package(ModuleType):
        """A package whose names win over its modules that are called the same: `fuseflow.sweep` is a function, and the folder of its
        implementation, too, which an import would put in its place."""

        def __setattr__(self, name: str, value: Any) -> None:
            if not isinstance(value, ModuleType) or modules.get(name, package) == package:
                super().__setattr__(name, value)

    sys.modules[package].__class__ = Package

    def known() -> list[str]:
        return sorted({*vars(sys.modules[package]), *modules})

    return get, known, sorted(modules)
