"""The installation that imports a model: Python, the installed distributions, and where Python looks for modules."""

from __future__ import annotations

import os
import platform
import sys
import sysconfig
from functools import cache
from typing import Any

from fuseflow.package_digest import PACKAGE, package_digest

_VARIABLES = ("HF_", "HOME", "HUGGINGFACE", "PYG", "PYTORCH", "TORCH", "TRANSFORMERS", "XDG_")
"""The beginnings of the names of environment variables that tell PyTorch and its libraries where files are and how to work."""


def describe_installation() -> dict[str, Any]:
    """Return all that decides which code an `import` statement runs, as plain values.

    A distribution is known by the name of its metadata directory, such as `torch-2.13.0.dist-info`, which has its version. fuseflow itself
    is known by its sources, since a clone keeps its version while it changes. A directory of the user's own modules is known by the
    names of the modules, because a new one can take the place of an installed one. Of the environment, only what libraries of models go by
    decides: a model that reads the environment itself is not kept.
    """
    return {
        "python": f"{sys.version} {platform.machine()}",
        "fuseflow": package_digest(),
        "path": {folder: importable_names(folder) for folder in sys.path},
        "environment": {name: value for name, value in sorted(os.environ.items()) if name.startswith(_VARIABLES)},
    }


def importable_names(folder: str) -> list[str]:
    """Return the names in a directory that an `import` can find there: modules, packages and metadata of distributions."""
    try:
        with os.scandir(folder or ".") as entries:
            return sorted(e.name for e in entries if _decides(e))
    except OSError:
        return []


def is_installed(path: str) -> bool:
    """Return whether a file belongs to Python, to an installed distribution or to fuseflow, which `describe_installation` tells apart."""
    return path.startswith(_installed_prefixes())


@cache
def _installed_prefixes() -> tuple[str, ...]:
    folders = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    folders |= {folder for folder in sys.path if any(name.endswith(".dist-info") for name in importable_names(folder))}
    archives = [folder for folder in sys.path if folder.endswith(".zip")]
    real = {os.path.realpath(folder) for folder in folders}
    return (*(folder + os.sep for folder in sorted(folders | real | {str(PACKAGE)})), *archives)


def _decides(entry: os.DirEntry[str]) -> bool:
    name = entry.name
    if name.endswith((".py", ".so", ".pth", ".dist-info", ".egg-info")):
        return True
    return entry.is_dir() and name.isidentifier() and os.path.exists(os.path.join(entry.path, "__init__.py"))
