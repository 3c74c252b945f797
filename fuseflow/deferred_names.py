"""Names of a package whose modules are imported when the names are first used.

A package writes these imports once, below `if TYPE_CHECKING:`, where type checkers read them:

    if TYPE_CHECKING:
        from package.module import Name

    __all__ = ["Name"]

    if not TYPE_CHECKING:
        __getattr__, __dir__ = deferred_names(__name__, __file__, __all__)
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from typing import Any

_IMPORT = re.compile(r"^    from (\S+) import (?:\(([^)]*)\)|(.*))$", re.MULTILINE)


def deferred_names(package: str, file: str, names: Sequence[str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the `__getattr__` and the `__dir__` of a package. `file` is its source, and `names` are its public names.

    A module of the package can be imported without the others then, which `fuseflow --help` does.
    """

    @cache
    def modules() -> dict[str, str]:
        with open(file, encoding="utf-8") as stream:
            imports = _IMPORT.findall(stream.read())
        return {name: module for module, several, one in imports for name in re.findall(r"\w+", several or one)}

    def get(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {package!r} has no attribute {name!r}", name=name, obj=None)
        module = modules()[name]
        value = import_module(f"{package}.{name}") if module == package else getattr(import_module(module), name)
        setattr(sys.modules[package], name, value)
        return value

    def known() -> list[str]:
        return sorted({*vars(sys.modules[package]), *names})

    return get, known
