"""Names of a package whose modules are imported when the names are first used."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def deferred_names(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the `__getattr__` of a package. `modules` has the module of each name, below the package, and "" for a name that is a module
    itself.

    A module of the package can be imported without the others then, which `fuseflow --help` does.
    """

    def get(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}", name=name, obj=None)
        module = modules[name]
        value = getattr(import_module(f"{package}.{module}"), name) if module else import_module(f"{package}.{name}")
        setattr(sys.modules[package], name, value)
        return value

    return get
